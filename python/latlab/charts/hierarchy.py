"""Latency of one dependent load against working set: where the caches end."""

from __future__ import annotations

import altair as alt

from latlab.run.run import Run
from latlab.text import clean
from latlab.units import format_bytes, format_ns
from latlab.view import curves
from latlab.view.axes import duration_y, size_axis, widened
from latlab.view.drawing import inline, layered
from latlab.view.plot import as_table
from latlab.view.points import MOST_POINTS, Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "hierarchy"
TITLE = "Where do the caches of this machine end, and what does each level cost?"
PROBE = "memory.load.dependent"
SERIES = {
    ("4k", "page-local"): "4 KiB pages, page-local",
    ("4k", "random"): "4 KiB pages, random",
    ("huge", "random"): "huge pages asked for, random",
}


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each page mode and order that was measured."""
    records = with_figures(run, PROBE, "batch_mean")
    found = {}
    for (pages, order), name in SERIES.items():
        chosen = [record for record in records if record.point.pages == pages and record.point.order == order]
        curve = spots(chosen, lambda record: record.point.working_set_bytes)
        if curve:
            found[name] = curve[:MOST_POINTS]
    return found


def brackets(run: Run) -> dict[str, tuple[float, float]]:
    """Between which working sets each level was found to end, bytes."""
    return {
        clean(level.name, most=20): ends
        for level in run.levels
        if level.end_bytes and (ends := level.end_bytes.ends)
    }


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """The three curves, the levels found (shaded) and reported (dotted)."""
    found = lines(run)
    if not found:
        return None
    low, high = widened((spot.x for spot in curves.everywhere(found)), down=1.15, up=1.15)
    bottom, top = widened(curves.ends(found))
    top *= 1.5  # room for the names of the levels
    x = size_axis("x", "working set", low, high)
    y = duration_y("value", "one dependent load, median", bottom, top)
    drawn = curves.layers(found, x, y)
    data = curves.rows(found, lambda spot: f"{format_bytes(spot.x)}: {spot.stated(format_ns)}")
    return layered([*_ends(run, x, low, high, top), *drawn], data=data, width=curves.WIDTH, height=380)


def _ends(run: Run, x: alt.X, low: float, high: float, top: float) -> list[alt.Chart]:
    """Shaded spans where the curve says that a level ends, and dotted rules where the CPU says so."""
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
    drawn: list[alt.Chart] = []
    flat = alt.Y("y:Q")
    if spans:
        data = alt.Chart(inline(spans))
        drawn.append(data.mark_rect(style="span").encode(x=x, x2=alt.X2("x2:Q")))
        drawn.append(
            data.mark_text(style="name", align="right", dx=-4, dy=9).encode(
                x=x, y=flat, text=alt.Text("name:N")
            )
        )
    if rules:
        data = alt.Chart(inline(rules))
        drawn.append(data.mark_rule(style="reported").encode(x=x))
        drawn.append(
            data.mark_text(style="note", align="left", dx=4, dy=23).encode(
                x=x, y=flat, text=alt.Text("name:N")
            )
        )
    return drawn


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(lines(run), lambda spot: f"{format_ns(spot.value)} at {format_bytes(spot.x)}")
    ends = [
        f"{name} ends between {format_bytes(a)} and {format_bytes(b)}"
        for name, (a, b) in brackets(run).items()
    ]
    text = "Line chart, both axes logarithmic: latency of one dependent load against working set. " + words
    return text + ". " + ("; ".join(ends) + "." if ends else "No end of a level was found.")


def table(run: Run) -> Table:
    """Every point of every curve."""
    return as_table(lines(run), Column("working set", "bytes"), "ns")
