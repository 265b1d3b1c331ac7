"""Latency of one dependent load against working set: where the caches end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.ladder import curve_findings
from latlab.run.model import Level
from latlab.run.run import Run
from latlab.text import clean
from latlab.text import listed as in_words
from latlab.topics.ladder import label
from latlab.units import format_bytes, format_span
from latlab.view.evidence import evidence
from latlab.view.plot import Axis, Ends, Mark, Plane, labelled, yes_or_no
from latlab.view.points import MOST_POINTS, Spot, series, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, CurvesOfSeveral, Topic

PROBE: Final = "memory.load.dependent"
SERIES: Final = {
    ("4k", "page-local"): "4 KiB pages, page-local",
    ("4k", "random"): "4 KiB pages, random",
    ("huge", "random"): "huge pages asked for, random",
}
_LOAD: Final = "one dependent load, median"


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each page mode and order that was measured."""
    curves = series(
        with_figures(run, PROBE, "batch_mean"),
        SERIES,
        lambda record: (record.point.pages, record.point.order),
        lambda record: record.point.working_set_bytes,
    )
    return {name: curve[:MOST_POINTS] for name, curve in curves.items()}


def brackets(run: Run) -> dict[str, tuple[float, float]]:
    """Between which working sets each level was found to end, bytes."""
    return {clean(level.name, most=20): ends for level in run.levels if (ends := _bracket(level))}


def _bracket(level: Level) -> tuple[float, float] | None:
    return level.end_bytes.ends if level.end_bytes else None


def _plane(run: Run) -> Plane | None:
    """The three curves, the levels found (shaded) and reported (dotted)."""
    own = lines(run)
    ends = [
        f"{name} ends between {format_bytes(low)} and {format_bytes(high)}"
        for name, (low, high) in brackets(run).items()
    ]
    if not own:
        return None
    return Plane(
        Axis("working set", "bytes", 1.15, 1.15),
        Axis(_LOAD, "ns", names=1.5),
        own,
        about="Line chart, both axes logarithmic: latency of one dependent load against working set.",
        after=f"{'; '.join(ends)}." if ends else "No end of a level was found.",
        marks=lambda ends: _marks(run, ends),
        height=380,
    )


def _marks(run: Run, ends: Ends) -> Iterator[Mark]:
    """Shaded spans where the curve says that a level ends, and dotted rules where the CPU says so."""
    low, high, top = ends.left, ends.right, ends.top
    spans = [
        {"x": max(bracket[0], low), "x2": min(bracket[1], high), "name": f"{name} ends", "y": top}
        for name, bracket in brackets(run).items()
        if low < bracket[1] and bracket[0] < high
    ]
    rules = [
        {"x": level.reported_bytes, "name": f"CPU: {format_bytes(level.reported_bytes)}", "y": top}
        for level in run.levels
        if level.reported_bytes is not None and low < level.reported_bytes < high
    ]
    yield from labelled("rect", spans, "span", style="name", align="right", dx=-4, dy=9)
    yield from labelled("rule", rules, "reported", style="note", align="left", dx=4, dy=23)


def prose(run: Run) -> Iterator[str]:
    """What a load costs in each level, and where they end."""
    # As the ladder has it: that of one size, where a level's median is over all of its sizes.
    rungs = {rung.key: rung for rung in run.ladder() if rung.measured}
    costs = [f"{label(rungs[level.name])} in {level.name}" for level in run.levels if level.name in rungs]
    ends = [
        f"{level.name} ends between {format_bytes(ends[0])} and {format_bytes(ends[1])}"
        + (f" (CPU: {format_bytes(level.reported_bytes)})" if level.reported_bytes else "")
        for level in run.levels
        if (ends := _bracket(level))
    ]
    if costs:
        yield f"One load that depends on the one before costs {in_words(costs)}."
    if ends:
        yield f"In the curve, {in_words(ends)}."


def _listings(run: Run) -> tuple[Listing, ...]:
    def spread(level: Level) -> str | None:
        ends = level.latency_ns.ends if level.latency_ns else None
        return format_span(*ends) if ends and ends[0] < ends[1] else None

    def end(level: Level) -> str | None:
        ends = _bracket(level)
        return f"{format_bytes(ends[0])} – {format_bytes(ends[1])}" if ends else None

    return listed(
        "Levels found",
        run.levels,
        ("level", "text", lambda level: level.name),
        ("median over its sizes", "ns", lambda level: level.latency_ns.value if level.latency_ns else None),
        ("from to", "text", spread),
        ("core cycles", "number", lambda level: level.cycles),
        ("ends between", "text", end),
        ("CPU reports", "bytes", lambda level: level.reported_bytes),
        (
            "rounds agree",
            "text",
            lambda level: None if level.validated is None else yes_or_no(level.validated),
        ),
        ("note", "text", lambda level: level.note),
    )


def _evidence(run: Run) -> Iterator[str]:
    rate = curve_findings(run).get("core_ghz")
    if isinstance(rate, int | float) and rate > 0:
        yield f"Cycles are core cycles, measured at {rate:.3g} GHz beside the loads."
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="hierarchy",
        title="How large is each cache of this machine, and what does each level cost?",
        caption="Shaded: the range in which the curve shows a level to end. Dotted: where the CPU "
        "reports it. A cross marks a disturbed point. Bands are 95 % intervals over the rounds, where "
        "several measured a point.",
        probe=PROBE,
        measured=_plane,
        table=lambda plane: plane.table("working set"),
        several=CurvesOfSeveral(
            lines, Axis("working set", "bytes", 1.3, 1.3), Axis(_LOAD, "ns"), "working set"
        ),
    ),
    prose=prose,
    listings=_listings,
    evidence=_evidence,
)
