"""The cost of finding the page: the same number of lines, packed together and spread one a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.ladder import curve_findings
from latlab.run.run import Run
from latlab.units import format_bytes, format_count, format_ns
from latlab.view.evidence import evidence
from latlab.view.figure import Absent
from latlab.view.plot import Axis, Mark, Plane, labelled
from latlab.view.points import Spot, drawable, series, with_figures
from latlab.view.topic import Chart, CurvesOfSeveral, Topic

PROBE: Final = "memory.load.dependent"
_SERIES: Final = {
    ("4k", "packed"): "packed lines, 4 KiB pages",
    ("4k", "spread"): "one line a page, 4 KiB pages",
    ("huge", "packed"): "packed lines, huge pages asked for",
    ("huge", "spread"): "one line every 4 KiB, huge pages asked for",
}
_LOAD: Final = "one dependent load, median"


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each layout and page mode that was measured."""
    return series(
        with_figures(run, PROBE, "batch_mean"),
        _SERIES,
        lambda record: (record.point.pages, record.point.order),
        lambda record: record.point.nodes,
    )


def reaches(run: Run) -> Iterator[tuple[float, float]]:
    """Between which numbers of pages the curves say that a translation buffer ends."""
    for step in curve_findings(run).sections("tlb"):
        low, high = (step.number(name if name in step else "pages") for name in ("pages_lo", "pages_hi"))
        if drawable(low) and drawable(high):
            yield low, high


def _pages(low: float, high: float) -> str:
    return format_count(low) if low == high else f"{format_count(low)} to {format_count(high)}"


def _plane(run: Run) -> Plane | Absent | None:
    """Packed against spread chains of equal length; shaded where a translation buffer ends."""
    own = lines(run)
    if not own:
        measured = with_figures(run, PROBE, "batch_mean")
        return Absent("no paired chains (packed and spread) were reached in this run") if measured else None
    counts = [round(spot.x) for curve in own.values() for spot in curve]
    least, most = min(counts), max(counts)
    found = list(reaches(run))

    def marks(top: float) -> Iterator[Mark]:
        spans = [
            {"x": max(low, least), "x2": min(high, most), "y": top, "name": f"{_pages(low, high)} pages"}
            for low, high in found
            if low <= most and high >= least
        ]
        span, *names = labelled("rect", spans, "span", style="name", align="left", dx=4, dy=9)
        yield span
        yield Mark("rule", spans, {"x": "x"}, {"style": "reported"}, only="datum.x == datum.x2", under=True)
        yield from names

    ends = f"Translation buffers end at {' and '.join(_pages(*reach) for reach in found)} pages."
    return Plane(
        Axis(
            "lines visited, each in its own page when spread",
            "count",
            1.2,
            1.2,
            ticks=tuple(4**power for power in range(16) if least <= 4**power <= most),
        ),
        Axis(_LOAD, "ns", names=1.3),
        own,
        "{x} lines: {y}",
        "Line chart, both axes logarithmic: time of one load against the number of lines visited.",
        "{y} over {x} lines",
        ends if found else "No end of a translation buffer was found.",
        lambda ends: marks(ends.top),
    )


def prose(run: Run) -> Iterator[str]:
    """What translation costs, and what a huge page is worth here."""
    own = lines(run)
    packed, spread = (own.get(_SERIES["4k", order]) for order in ("packed", "spread"))
    if packed and spread and packed[-1].x == spread[-1].x:
        cost = spread[-1].value - packed[-1].value
        if cost > 0:
            yield (
                f"Visiting {format_count(spread[-1].x)} lines costs {format_ns(cost)} more per line "
                f"when each is in its own page: {format_ns(spread[-1].value)} against "
                f"{format_ns(packed[-1].value)}."
            )
    page = curve_findings(run).get("effective_page_bytes")
    if isinstance(page, int | float) and page > 0:
        yield f"Where huge pages were asked for, the hardware translates pages of {format_bytes(page)}."


TOPIC: Final = Topic(
    Chart(
        id="translation",
        title="What does address translation cost, apart from fetching the data?",
        caption="Both chains visit the same number of cache lines; only the number of pages differs, "
        "so the gap between them is the cost of translation. Shaded: where a translation buffer was "
        "found to end.",
        probe=PROBE,
        measured=_plane,
        table=lambda plane: plane.table("lines"),
        several=CurvesOfSeveral(lines, Axis("lines visited", "count"), Axis(_LOAD, "ns"), "lines"),
    ),
    prose=prose,
    evidence=lambda run: evidence(run, PROBE) if lines(run) else (),
)
