"""The cost of finding the page: the same number of lines, packed together and spread one a page."""

from __future__ import annotations

import altair as alt

from latlab.run.ladder import curve_findings
from latlab.run.run import Run
from latlab.units import format_count, format_ns
from latlab.view import curves
from latlab.view.axes import count_axis, duration_y, widened
from latlab.view.drawing import inline, layered
from latlab.view.plot import as_table
from latlab.view.points import Spot, drawable, spots, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "translation"
TITLE = "What does it cost to find the page, apart from fetching the data?"
PROBE = "memory.load.dependent"
SERIES = {
    ("4k", "packed"): "packed lines, 4 KiB pages",
    ("4k", "spread"): "one line a page, 4 KiB pages",
    ("huge", "packed"): "packed lines, huge pages asked for",
    ("huge", "spread"): "one line every 4 KiB, huge pages asked for",
}


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each layout and page mode that was measured."""
    records = with_figures(run, PROBE, "batch_mean")
    found = {}
    for (pages, order), name in SERIES.items():
        chosen = [record for record in records if record.point.pages == pages and record.point.order == order]
        curve = spots(chosen, lambda record: record.point.nodes)
        if curve:
            found[name] = curve
    return found


def reaches(run: Run) -> list[tuple[float, float]]:
    """Between which numbers of pages the curves say that a translation buffer ends."""
    steps = curve_findings(run).get("tlb")
    found = []
    for step in steps if isinstance(steps, list) else []:
        ends = (
            [step.get(name, step.get("pages")) for name in ("pages_lo", "pages_hi")]
            if isinstance(step, dict)
            else []
        )
        numbers = [float(end) for end in ends if isinstance(end, int | float)]
        if len(numbers) == 2 and all(map(drawable, numbers)):  # noqa: PLR2004 - low and high
            found.append((numbers[0], numbers[1]))
    return found


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    if lines(run):
        return None
    if with_figures(run, PROBE, "batch_mean"):
        return "no paired chains (packed and spread) were reached in this run"
    return why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """Packed against spread chains of equal length; shaded where a translation buffer ends."""
    found = lines(run)
    if not found:
        return None
    counts = sorted({round(spot.x) for spot in curves.everywhere(found)})
    ticks = [4**power for power in range(16) if counts[0] <= 4**power <= counts[-1]]
    bottom, top = widened(curves.ends(found))
    top *= 1.3  # room for the notes
    x = count_axis("x", "lines visited, each in a page of its own when spread", ticks or counts)
    x["scale"]["domain"] = [counts[0] / 1.2, counts[-1] * 1.2]
    y = duration_y("value", "one dependent load, median", bottom, top)
    drawn = curves.layers(found, x, y)
    data = curves.rows(found, lambda spot: f"{format_count(spot.x)} lines: {spot.stated(format_ns)}")
    spans = [
        {
            "x": max(low, counts[0]),
            "x2": min(high, counts[-1]),
            "y": top,
            "name": f"{_pages(low, high)} pages",
        }
        for low, high in reaches(run)
        if low <= counts[-1] and high >= counts[0]
    ]
    marks: list[alt.Chart] = []
    if spans:
        places = alt.Chart(inline(spans))
        text = places.mark_text(style="name", align="left", dx=4, dy=9)
        marks = [
            places.mark_rect(style="span").encode(x=x, x2=alt.X2("x2:Q")),
            places.transform_filter("datum.x == datum.x2").mark_rule(style="reported").encode(x=x),
            text.encode(x=x, y=alt.Y("y:Q"), text=alt.Text("name:N")),
        ]
    return layered([*marks, *drawn], data=data, width=curves.WIDTH, height=curves.HEIGHT)


def _pages(low: float, high: float) -> str:
    return format_count(low) if low == high else f"{format_count(low)} to {format_count(high)}"


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(
        lines(run), lambda spot: f"{format_ns(spot.value)} over {format_count(spot.x)} lines"
    )
    text = "Line chart, both axes logarithmic: time of one load against the number of lines visited. "
    ends = [_pages(*reach) for reach in reaches(run)]
    found = (
        f" Translation buffers end at {' and '.join(ends)} pages."
        if ends
        else " No end of a translation buffer was found."
    )
    return text + words + "." + found


def table(run: Run) -> Table:
    """Every point of every curve."""
    return as_table(lines(run), Column("lines", "count"), "ns")
