"""Misses under way at once."""

from __future__ import annotations

from latlab.charts import parallelism as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_ns
from latlab.view.evidence import evidence

_CAPTION = (
    "Each chain is a list of its own, every load of it waiting for the one before. What is not on a falling"
    " line any more has used up what one core can have under way. Beside each line: how many misses that is."
)


def section(run: Run, probes: Probes) -> Section:
    """Independent chains."""
    return Section(
        id="parallelism",
        title=chart.TITLE,
        sentences=_sentences(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=evidence(run, chart.PROBE),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    found = list(chart.lines(run).items())
    if not found:
        return ()
    size, curve = found[-1]
    best = chart.overlapped(curve)
    if best is None:
        return ()
    least = min(spot.value for spot in curve)
    return (
        f"From {size}, one chain of loads costs {format_ns(curve[0].value)} a load and {best[1]} chains at"
        f" once {format_ns(least)} each: about {best[0]:.3g} misses were under way together.",
        "A program that knows its next addresses gains that factor; one that follows pointers does not.",
    )
