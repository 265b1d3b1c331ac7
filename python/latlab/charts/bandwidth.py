"""Bandwidth of one thread against working set, one curve an operation."""

from __future__ import annotations

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_rate
from latlab.view import curves
from latlab.view.axes import rate_y, size_axis, widened
from latlab.view.drawing import layered
from latlab.view.plot import as_table
from latlab.view.points import Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "bandwidth"
TITLE = "How fast can one core move data, from each level?"
PROBE = "memory.bandwidth"
OPERATIONS = {
    "read": "read",
    "write": "write",
    "write-nt": "write around the caches",
    "copy": "copy",
    "triad": "triad",
}


def single_threaded(run: Run) -> list[Record]:
    """The records of one thread."""
    return [record for record in with_figures(run, PROBE, "batch_mean") if (record.point.threads or 1) == 1]


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each operation that was measured."""
    records = single_threaded(run)
    found = {}
    for operation, name in OPERATIONS.items():
        chosen = [record for record in records if record.point.operation == operation]
        curve = spots(chosen, lambda record: record.point.working_set_bytes)
        if curve:
            found[name] = curve
    return found


def conventions(run: Run) -> dict[str, str]:
    """What a byte means, by operation."""
    return {
        OPERATIONS[record.point.operation]: record.work.convention
        for record in with_figures(run, PROBE, "batch_mean")
        if record.point.operation in OPERATIONS and record.work.convention
    }


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """One curve an operation, both axes logarithmic."""
    found = lines(run)
    if not found:
        return None
    low, high = widened((spot.x for spot in curves.everywhere(found)), down=1.3, up=1.3)
    bottom, top = widened(curves.ends(found))
    x = size_axis("x", "working set (all arrays together)", low, high)
    y = rate_y("value", "bytes a second, one thread", bottom, top)
    drawn = curves.layers(found, x, y)
    data = curves.rows(found, lambda spot: f"{format_bytes(spot.x)}: {spot.stated(format_rate)}")
    return layered(drawn, data=data, width=curves.WIDTH, height=curves.HEIGHT)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(lines(run), lambda spot: f"{format_rate(spot.value)} at {format_bytes(spot.x)}")
    return "Line chart, both axes logarithmic: bandwidth of one thread against working set. " + words + "."


def table(run: Run) -> Table:
    """Every point of every curve."""
    return as_table(lines(run), Column("working set", "bytes"), "bytes_per_s")
