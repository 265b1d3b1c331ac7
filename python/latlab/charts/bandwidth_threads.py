"""Read bandwidth of all threads together against their number, one curve a working set."""

from __future__ import annotations

import altair as alt

from latlab.run.run import Run
from latlab.units import format_bytes, format_rate
from latlab.view import curves
from latlab.view.axes import count_axis, rate_y, widened
from latlab.view.drawing import layered
from latlab.view.plot import as_table
from latlab.view.points import Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "bandwidth_threads"
TITLE = "Do more threads move more data?"
PROBE = "memory.bandwidth"
_MOST_CURVES = 6


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each working set that was read by different numbers of threads; six of them at most."""
    records = [r for r in with_figures(run, PROBE, "batch_mean") if r.point.operation == "read"]
    sizes = sorted({r.point.working_set_bytes for r in records if r.point.working_set_bytes is not None})
    found = {}
    for size in sizes:
        chosen = [record for record in records if record.point.working_set_bytes == size]
        curve = spots(chosen, lambda record: record.point.threads or 1)
        if len(curve) > 1:
            found[format_bytes(size)] = curve
    if len(found) > _MOST_CURVES:
        names = list(found)
        step = (len(names) - 1) / (_MOST_CURVES - 1)
        found = {name: found[name] for name in (names[round(step * place)] for place in range(_MOST_CURVES))}
    return found


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    if lines(run):
        return None
    if with_figures(run, PROBE, "batch_mean"):
        return "bandwidth was measured with one number of threads only"
    return why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """One curve a working set, both axes logarithmic: a straight rising line is perfect scaling."""
    found = lines(run)
    if not found:
        return None
    bottom, top = widened(curves.ends(found))
    counts = sorted({round(spot.x) for spot in curves.everywhere(found)})
    x = count_axis("x", "threads", counts)
    y = rate_y("value", "bytes a second, all threads", bottom, top)
    drawn = curves.layers(found, x, y)
    data = curves.rows(found, lambda spot: f"{spot.x:.0f} threads: {spot.stated(format_rate)}")
    return layered(drawn, data=data, width=curves.WIDTH, height=curves.HEIGHT)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(lines(run), lambda spot: f"{format_rate(spot.value)} with {spot.x:.0f}")
    text = "Line chart, both axes logarithmic: read bandwidth of all threads together against their number. "
    return text + words + "."


def table(run: Run) -> Table:
    """Every point of every curve."""
    return as_table(lines(run), Column("threads", "count"), "bytes_per_s")
