"""A working array made anew each time against two that change places."""

from __future__ import annotations

import altair as alt

from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view import curves
from latlab.view.axes import duration_y, size_axis, widened
from latlab.view.drawing import layered
from latlab.view.plot import as_table
from latlab.view.points import Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "reuse"
TITLE = "Is it worth keeping an array instead of making a new one?"
PROBE = "alloc.reuse"
SERIES = {"fresh": "a new array each time", "swapped": "two arrays that change places"}


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each way."""
    records = with_figures(run, PROBE, "batch_mean")
    found = {}
    for operation, name in SERIES.items():
        chosen = [record for record in records if record.point.operation == operation]
        curve = spots(chosen, lambda record: record.point.size_bytes or record.point.working_set_bytes)
        if curve:
            found[name] = curve
    return found


def ratios(run: Run) -> list[tuple[float, float, float]]:
    """`(size in bytes, fresh ns, swapped ns)` where both were measured, smallest first."""
    found = lines(run)
    fresh, swapped = ({spot.x: spot.value for spot in found.get(name, ())} for name in SERIES.values())
    return [(size, fresh[size], swapped[size]) for size in sorted(fresh.keys() & swapped.keys())]


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """Two curves, both axes logarithmic."""
    found = lines(run)
    if not found:
        return None
    low, high = widened((spot.x for spot in curves.everywhere(found)), down=1.3, up=1.3)
    bottom, top = widened(curves.ends(found))
    x = size_axis("x", "size of the array", low, high)
    y = duration_y("value", "one iteration, median", bottom, top)
    data = curves.rows(found, lambda spot: f"{format_bytes(spot.x)}: {spot.stated(format_ns)}")
    return layered(curves.layers(found, x, y), data=data, width=curves.WIDTH, height=280)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(lines(run), lambda spot: f"{format_ns(spot.value)} at {format_bytes(spot.x)}")
    return f"Line chart, both axes logarithmic: time of one iteration against the array's size. {words}."


def table(run: Run) -> Table:
    """Every point of both curves."""
    return as_table(lines(run), Column("array", "bytes"), "ns")
