from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from latlab.doctor import Host
from latlab.run.model import ClockFacts, ClockOverhead, Machine, Settings

HostMaker = Callable[..., Host]


@pytest.fixture
def host() -> HostMaker:
    """Makes a host from the few facts that a test is about; everything else is unknown."""

    def make(
        machine: Mapping[str, Any] | None = None,
        *,
        clock: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        **learnt: float,
    ) -> Host:
        facts = {"machine": Machine(machine or {}), "settings": settings or Settings(), **learnt}
        if clock is not None:
            facts["clock"] = clock_facts(**clock)
        return Host(**facts)  # type: ignore[arg-type]

    return make


def clock_facts(**changed: Any) -> ClockFacts:  # noqa: ANN401 - fields of a struct
    """A good clock: a hardware counter that is fine, tight and promised."""
    good: dict[str, Any] = {
        "kind": "tsc",
        "fences": "lfence",
        "ticks_per_ns": 2.6,
        "rate_error_ppm": 0.5,
        "quantum_ns": 0.4,
        "overhead_ns": ClockOverhead(mean=9.0, p50=9.0, p99=10.0, min=8.0, samples=1000),
        "invariant": True,
    }
    return ClockFacts(**(good | changed))
