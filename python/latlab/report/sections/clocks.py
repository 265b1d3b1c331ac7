"""The instrument itself."""

from __future__ import annotations

from latlab.charts import clocks as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_digits, format_ns
from latlab.view.evidence import evidence
from latlab.view.prose import sentence

_CAPTION = (
    "A clock that steps by more than it costs cannot time what is shorter than its step, however"
    " often it is read."
)


def section(run: Run, probes: Probes) -> Section:
    """What the clock can tell."""
    clock = run.clock
    step, cost = format_ns(clock.quantum_ns, digits=2), format_ns(clock.overhead_ns.mean)
    error = f"{format_digits(clock.rate_error_ppm, 2)} parts per million of the system's raw clock"
    rate = f"{clock.kind}, {clock.ticks_per_ns:.6g} ticks/ns, known to {error}"
    facts = [f"Clock: {rate}.", sentence(f"Fences: {clock.fences}")]
    if clock.why_not_hardware:
        facts.append(sentence(f"The CPU's own counter is not used: {clock.why_not_hardware}"))
    if clock.backwards:
        facts.append(f"{clock.backwards} readings were smaller than the one before.")
    return Section(
        id="clocks",
        title=chart.TITLE,
        sentences=(
            f"The clock that timed this run advances in steps of {step}; an empty timed region"
            f" reads {cost} on average.",
        ),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=(*facts, *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )
