"""Latency under load."""

from __future__ import annotations

from latlab.charts import loaded as chart
from latlab.report.document import Section, sentence
from latlab.report.evidence import evidence
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings
from latlab.run.run import Run
from latlab.units import format_ns, format_rate

_CAPTION = (
    "One CPU follows a chain of dependent loads while the others move data, faster from point to point. Left"
    " end: nobody else. Ring: where waiting begins to climb. Thin line: 99 of 100 windows of loads were"
    " faster; where it is missing, it lies above the chart or there were too few windows."
)


def section(run: Run, probes: Probes) -> Section:
    """A curve per share of reading."""
    curves = findings(run, chart.PROBE).sections("curves")
    notes = dict.fromkeys(sentence(note) for curve in curves if (note := curve.text("note")))
    return Section(
        id="loaded",
        title=chart.TITLE,
        sentences=_sentences(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=(*notes, *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    found, idle = chart.lines(run), chart.idle_ns(run)
    if not found or idle is None:
        return ()
    name, curve = next(iter(found.items()))
    last = curve[-1]
    if curve[0].disturbed or last.disturbed:
        return (
            f"A load from memory takes {format_ns(idle)} without load and {format_ns(last.value)} while other"
            f" threads move {format_rate(last.load)} ({name}).",
            "Other programs used the CPUs meanwhile, so these figures may be theirs: measure again when it is"
            " quiet.",
        )
    sentences = [
        f"A load from memory takes {format_ns(idle)} while the machine is idle and {format_ns(last.value)}"
        f" while other threads move {format_rate(last.load)} ({name}), {last.value / idle:.1f} times as long."
    ]
    knee = next((knee for knee in chart.knees(run) if knee.series == name), None)
    if knee is not None:
        sentences.append(f"Waiting begins to climb at {knee.stated}: stay below that where latency counts.")
    return tuple(sentences)
