"""What Python costs."""

from __future__ import annotations

from latlab.charts import python as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_ns
from latlab.view.evidence import evidence
from latlab.view.points import with_figures

_CAPTION = (
    "On the axis equal distances are equal ratios. A row of so many elements is for all of them together."
)


def section(run: Run, probes: Probes) -> Section:
    """Every operation of the interpreter."""
    engines = sorted(
        {record.engine for record in with_figures(run, chart.PROBE, "batch_mean") if record.engine}
    )
    return Section(
        id="python",
        title=chart.TITLE,
        sentences=_sentences(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=(*(f"Measured in {engine}." for engine in engines), *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    costs: dict[str, float] = {}
    elements: dict[str, int] = {}
    for record in with_figures(run, chart.PROBE, "batch_mean"):
        costs[record.point.operation or ""] = record.value or 0.0
        elements[record.point.operation or ""] = record.point.elements or 0
    sentences = []
    if "call" in costs:
        text = f"Calling a function that does nothing costs {format_ns(costs['call'])}"
        small = costs.get("small-object")
        text += f" and making a small object {format_ns(small)}" if small is not None else ""
        sentences.append(text + ".")
    fresh, kept = costs.get("numpy-temporary"), costs.get("numpy-in-place")
    same = elements.get("numpy-temporary") == elements.get("numpy-in-place")
    if fresh is not None and kept is not None and same and fresh > 1.1 * kept:
        sentences.append(
            f"An array operation that makes a new array costs {format_ns(fresh)}, in place {format_ns(kept)}."
        )
    return tuple(sentences)
