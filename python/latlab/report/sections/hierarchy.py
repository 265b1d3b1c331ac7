"""The latency curve."""

from __future__ import annotations

from latlab.charts import hierarchy as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.ladder import curve_findings
from latlab.run.model import Level
from latlab.run.run import Run
from latlab.text import listed
from latlab.units import format_bytes, format_ns, format_span
from latlab.view.evidence import evidence
from latlab.view.table import Column, Listing, Table

_CAPTION = (
    "Shaded: between which working sets the curve says that a level ends. Dotted: where the CPU"
    " says so. A cross marks a"
    " point to doubt, since something else ran beside it. Bands are 95 % intervals over the"
    " rounds, where several measured a point."
)
_COLUMNS = (
    Column("level"),
    Column("one load", "ns"),
    Column("spread over its sizes"),
    Column("core cycles", "number"),
    Column("ends between"),
    Column("CPU reports", "bytes"),
    Column("rounds agree"),
    Column("note"),
)


def section(run: Run, probes: Probes) -> Section:
    """The latency curve, the levels found in it, and those that the CPU reports."""
    levels = run.levels
    return Section(
        id="hierarchy",
        title=chart.TITLE,
        sentences=_sentences(levels),
        figures=figure(run, chart.ID, _CAPTION),
        listings=(Listing("Levels found", Table(_COLUMNS, tuple(map(_row, levels)))),) if levels else (),
        evidence=(*_clock_rate(run), *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(levels: list[Level]) -> tuple[str, ...]:
    costs = [f"{_cost(level)} in {level.name}" for level in levels if level.latency_ns is not None]
    ends = [
        f"{level.name} ends between {format_bytes(ends[0])} and {format_bytes(ends[1])}"
        + (f" (CPU: {format_bytes(level.reported_bytes)})" if level.reported_bytes else "")
        for level in levels
        if level.end_bytes and (ends := level.end_bytes.ends)
    ]
    sentences = []
    if costs:
        sentences.append(f"One load that must wait for the one before costs {listed(costs)}.")
    if ends:
        sentences.append(f"In the curve, {listed(ends)}.")
    return tuple(sentences)


def _clock_rate(run: Run) -> tuple[str, ...]:
    rate = curve_findings(run).get("core_ghz")
    known = isinstance(rate, int | float) and rate > 0
    return (f"Cycles are the core's own, measured at {rate:.3g} GHz beside the loads.",) if known else ()


def _cost(level: Level) -> str:
    latency = level.latency_ns
    ends = latency.ends if latency else None
    if ends and ends[1] > 1.2 * ends[0]:
        return f"{format_ns(ends[0])} to {format_ns(ends[1])}"
    return format_ns(latency.value if latency else None)


def _row(level: Level) -> tuple[str | float | None, ...]:
    ends = level.latency_ns.ends if level.latency_ns else None
    bracket = level.end_bytes.ends if level.end_bytes else None
    return (
        level.name,
        level.latency_ns.value if level.latency_ns else None,
        format_span(*ends) if ends and ends[0] < ends[1] else None,
        level.cycles,
        f"{format_bytes(bracket[0])} – {format_bytes(bracket[1])}" if bracket else None,
        level.reported_bytes,
        None if level.validated is None else "yes" if level.validated else "no",
        level.note,
    )
