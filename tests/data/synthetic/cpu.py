"""Kernels that compute."""

from __future__ import annotations

from .tools import JSON, aside, batch_mean, held


def mix_records() -> list[JSON]:
    kernels = {
        "integer-chain": 1.03,
        "unpredictable-branch": 4.41,
        "interpreter": 1.92,
        "float-chain": 1.81,
        "float-sums": 0.23,
    }
    checks = held("result", "what 3 of 3 blocks computed is what is known by other means")
    with aside():
        return [
            batch_mean("cpu.mix", {"operation": which}, ns, checks=checks) for which, ns in kernels.items()
        ]
