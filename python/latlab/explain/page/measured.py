"""The newest runs of this machine, for its measured curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from latlab.explain.limits import own_runs
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.run.store import Store

_MOST_RUNS: Final = 100


def newest(probes: Sequence[str], machine: Machine, store: Store | None = None) -> dict[str, Run]:
    """Of each probe the newest run of this machine that has figures of it."""
    found: dict[str, Run] = {}

    def missing() -> list[str]:
        return [probe for probe in probes if probe not in found]

    for run in own_runs(store or Store(), machine, missing, most=_MOST_RUNS):
        for probe in missing():
            if any(record.probe == probe and record.value is not None for record in run.records):
                found[probe] = run
    return found
