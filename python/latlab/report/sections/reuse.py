"""A new array each time, or two that change places."""

from __future__ import annotations

from latlab.charts import reuse as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view.evidence import evidence

_CAPTION = "The same work on the same numbers; only where the result is written differs."


def section(run: Run, probes: Probes) -> Section:
    """By size."""
    return Section(
        id="reuse",
        title=chart.TITLE,
        sentences=_sentences(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=evidence(run, chart.PROBE),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    found = chart.ratios(run)
    if not found:
        return ()
    size, fresh, swapped = max(found, key=lambda entry: entry[1] / entry[2])
    if fresh < 1.1 * swapped:
        return ("Keeping the array gains less than a tenth at every size measured.",)
    return (
        f"With {format_bytes(size)}, an iteration takes {format_ns(fresh)} with a new array and"
        f" {format_ns(swapped)} with one that is kept: {fresh / swapped:.1f} times as long.",
    )
