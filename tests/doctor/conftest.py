from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from latlab.doctor import Host
from latlab.run.model import ClockFacts, ClockOverhead, Machine, Settings
from latlab.run.noise import CauseRow, CpuNoise, Noise, PeriodicInterference, Survey

HostMaker = Callable[..., Host]


@pytest.fixture
def host() -> HostMaker:
    """Makes a host from the few facts that a test is about; everything else is unknown."""

    def make(
        machine: Mapping[str, Any] | None = None,
        *,
        clock: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        **learnt: object,
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


@pytest.fixture
def survey() -> Callable[..., Survey]:
    """Makes what a short listen may find."""
    return made_survey


@pytest.fixture
def ticking() -> Callable[[str, float, float], PeriodicInterference]:
    """Makes a periodic cause: its name, its rate, what it usually takes."""
    return made_periodic


def made_cause(name: str, per_s: float, ns: float) -> CauseRow:
    return CauseRow(
        cause=name, count=int(per_s), per_s=per_s, total_ns=per_s * ns, ns_per_s=per_s * ns, median_ns=ns,
        largest_ns=3 * ns, share_time=0.5,
    )  # fmt: skip


def made_periodic(name: str, hz: float, ns: float) -> PeriodicInterference:
    return PeriodicInterference(
        cause=name, reason="counted", hz=hz, period_ns=1e9 / hz, phase_ns=0.0,
        ticks=200, hit=200, by_chance=1.0, typical_ns=ns, gaps=200, ns=200 * ns, share_time=0.5,
    )  # fmt: skip


def made_survey(
    lost: tuple[float, ...] = (0.02, 0.004),
    periodic: tuple[PeriodicInterference, ...] = (),
    **changes: object,
) -> Survey:
    """CPUs by their numbers with what each lost; one second of the quietest."""
    best = min(range(len(lost)), key=lambda cpu: lost[cpu])
    plain: dict[str, Any] = {
        "cpu": best, "pinned": True, "stopped_by": "completed", "seconds": 1.0, "threshold_ns": 1000.0,
        "level": "perf records", "levels": (), "gaps": 400, "gaps_ns": lost[best] * 1e9,
        "causes": (made_cause("timer-tick", 250.0, 2e4), made_cause("unexplained", 150.0, 2e3)),
        "periodic": periodic,
        "explained": (), "lost_records": 0, "dropped_gaps": 0,
    }  # fmt: skip
    cpus = tuple(CpuNoise(cpu=cpu, seconds=0.2, gaps=80, lost_share=share) for cpu, share in enumerate(lost))
    return Survey(cpus=cpus, allowed=len(lost), quietest=Noise(**(plain | changes)))
