"""What distorts figures on this machine, by how much, and how to fix it.

Each rule is one file in `rules/`. A rule says nothing when what it looks at is unknown. To add one: a new
file there and its line here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from latlab.doctor.host import Host, Rule
from latlab.doctor.rules import (
    affinity,
    battery,
    clock_drift,
    clock_fallback,
    clock_not_invariant,
    clock_quantum,
    clock_ticks,
    container,
    cpu_quota,
    cpus_differ,
    directory,
    disturbed_cpu,
    effective_pages,
    governor,
    huge_pages,
    hybrid_cpu,
    load,
    memory_limit,
    mitigations,
    one_cpu,
    other_disks,
    other_system,
    perf_events,
    quietest_cpu,
    smt,
    standing_causes,
    swap,
    unprivileged,
    virtual_machine,
    wsl,
)
from latlab.run.model import ClockFacts, Finding, Machine, Settings

if TYPE_CHECKING:
    from latlab.run.noise import Survey
    from latlab.run.run import Run

__all__ = ["RULES", "Host", "examine", "important"]

#: What falsifies figures first, then what makes them less certain, then what is good to know.
RULES: tuple[Rule, ...] = (
    clock_drift.finding,
    clock_fallback.finding,
    clock_not_invariant.finding,
    clock_quantum.finding,
    load.finding,
    disturbed_cpu.finding,
    standing_causes.finding,
    quietest_cpu.finding,
    cpus_differ.finding,
    cpu_quota.finding,
    memory_limit.finding,
    swap.finding,
    effective_pages.finding,
    virtual_machine.finding,
    wsl.finding,
    other_system.finding,
    one_cpu.finding,
    hybrid_cpu.finding,
    governor.finding,
    battery.finding,
    huge_pages.finding,
    affinity.finding,
    smt.finding,
    container.finding,
    clock_ticks.finding,
    directory.finding,
    other_disks.finding,
    perf_events.finding,
    mitigations.finding,
    unprivileged.finding,
)

_RANK = {"warning": 0, "caution": 1, "note": 2}


def examine(
    machine: Machine | Mapping[str, Any],
    clock: ClockFacts | Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    *,
    last: Run | None = None,
    load_now: float | None = None,
    heard: Survey | None = None,
) -> tuple[Finding, ...]:
    """All findings, the gravest first, rules of equal severity in the order of :data:`RULES`.

    Args:
        machine: What the computer is, as `_core.describe` or a run's header says it.
        clock: The clock's facts; rules about the clock are silent without them.
        settings: What was asked for.
        last: An earlier run on this machine, for what only a measurement can tell.
        load_now: Runnable threads now, see :func:`load_average`.
        heard: What a short listen found, see :func:`latlab.run.noise.survey`.
    """
    from latlab.run.cpus import differing  # noqa: PLC0415 - 20 ms that only a last run needs
    from latlab.run.ladder import curve_findings  # noqa: PLC0415 - see above

    learnt = curve_findings(last) if last is not None else {}
    host = Host(
        machine=machine if isinstance(machine, Machine) else Machine(machine),
        clock=clock
        if clock is None or isinstance(clock, ClockFacts)
        else msgspec.convert(dict(clock), ClockFacts),
        settings=settings or Settings(),
        effective_page_bytes=_number(learnt.get("effective_page_bytes")),
        core_ghz=_number(learnt.get("core_ghz")),
        load=load_now,
        heard=heard,
        differing=differing(last) if last is not None else None,
    )
    found = [result for rule in RULES if (result := rule(host)) is not None]
    return tuple(sorted(found, key=lambda finding: _RANK[finding.severity]))


def important(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Those that a reader must know before trusting a figure: no notes."""
    return tuple(finding for finding in findings if finding.severity != "note")


def load_average() -> float | None:
    """Runnable threads, mean of the last minute; None where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
