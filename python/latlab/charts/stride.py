"""Nanoseconds an access in sequential, strided and random order over the same array."""

from __future__ import annotations

import altair as alt

from latlab.charts import curves
from latlab.charts.axes import duration_y, size_axis, widened
from latlab.charts.drawing import layered
from latlab.charts.points import Spot, spots, why_absent, with_figures
from latlab.charts.table import Column, Table
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns

ID = "stride"
TITLE = "How much does the order of accesses matter?"
PROBE = "memory.stride"
_ORDERS = ("sequential", "strided", "random")


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each order and stride that was measured, from the friendliest order to the least."""
    records = with_figures(run, PROBE, "batch_mean")
    kinds = sorted(
        {(r.point.order, r.point.stride_bytes or 0) for r in records if r.point.order in _ORDERS},
        key=lambda kind: (_ORDERS.index(kind[0] or ""), kind[1]),
    )
    found = {}
    for order, stride in kinds:
        chosen = [r for r in records if r.point.order == order and (r.point.stride_bytes or 0) == stride]
        strides = {kind[1] for kind in kinds if kind[0] == order}
        name = (
            f"{order}, every {format_bytes(stride)}" if order == "strided" or len(strides) > 1 else str(order)
        )
        found[name] = spots(chosen, lambda record: record.point.working_set_bytes)
    return {name: curve for name, curve in found.items() if curve}


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """One curve an order, both axes logarithmic."""
    found = lines(run)
    if not found:
        return None
    low, high = widened((spot.x for spot in curves.everywhere(found)), down=1.3, up=1.3)
    bottom, top = widened(curves.ends(found))
    x = size_axis("x", "array", low, high)
    y = duration_y("value", "one access, median", bottom, top)
    drawn = curves.layers(found, x, y)
    data = curves.rows(found, lambda spot: f"{format_bytes(spot.x)}: {format_ns(spot.value)}")
    return layered(drawn, data=data, width=curves.WIDTH, height=curves.HEIGHT)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = [
        f"{name}: {format_ns(curve[0].value)} in {format_bytes(curve[0].x)}, {format_ns(curve[-1].value)} in"
        f" {format_bytes(curve[-1].x)}"
        for name, curve in lines(run).items()
    ]
    return (
        "Line chart, both axes logarithmic: time of one access against array size. " + "; ".join(parts) + "."
    )


def table(run: Run) -> Table:
    """Every point of every curve."""
    return curves.as_table(lines(run), Column("array", "bytes"), "ns")
