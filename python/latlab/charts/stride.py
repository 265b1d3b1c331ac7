"""Nanoseconds an access in sequential, strided and random order, one curve an array."""

from __future__ import annotations

from typing import Any

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view import curves
from latlab.view.axes import duration_y, widened
from latlab.view.curves import dashed_lines, series_encodings
from latlab.view.drawing import inline, layered
from latlab.view.points import Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table, range_cells

ID = "stride"
TITLE = "How much does the order of accesses matter?"
PROBE = "memory.stride"
SEQUENTIAL, RANDOM = "sequential", "random"
_ORDERS = ("sequential", "strided", "random")


def order_name(record: Record) -> str:
    """The order as it stands on the axis."""
    if record.point.order == "strided":
        return format_bytes(record.point.stride_bytes)
    return SEQUENTIAL if record.point.order == "sequential" else RANDOM


def orders(run: Run) -> list[str]:
    """The orders that were measured, from the friendliest to the least friendly."""
    records = [record for record in with_figures(run, PROBE, "batch_mean") if record.point.order in _ORDERS]
    records.sort(key=lambda record: (_ORDERS.index(record.point.order or ""), record.point.stride_bytes or 0))
    return list(dict.fromkeys(map(order_name, records)))


def lines(run: Run) -> dict[str, dict[str, Spot]]:
    """For each array, smallest first, its figure in each order."""
    names = orders(run)
    records = [record for record in with_figures(run, PROBE, "batch_mean") if record.point.order in _ORDERS]
    sizes = sorted({record.point.working_set_bytes or 0 for record in records})
    found = {}
    for size in sizes:
        chosen = [record for record in records if (record.point.working_set_bytes or 0) == size]
        curve = spots(chosen, lambda record: names.index(order_name(record)))
        found[format_bytes(size)] = {names[int(spot.x)]: spot for spot in curve}
    return found


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """One curve an array, over the orders as steps of an axis."""
    found = lines(run)
    if not found:
        return None
    values = [row for number, (size, curve) in enumerate(found.items()) for row in _rows(number, size, curve)]
    bottom, top = widened(end for row in values for end in (row["low"], row["high"]))
    x = alt.X(
        "order:N",
        title="order: sequential, one access every so many bytes, random",
        scale=alt.Scale(domain=orders(run)),
        axis=alt.Axis(labelAngle=0, grid=True),
        sort=None,
    )
    y, low = (duration_y(field, "one access, median", bottom, top) for field in ("value", "low"))
    color, shape = series_encodings(list(found))
    base = alt.Chart()
    tip = alt.Tooltip("text:N")
    layers = [
        base.mark_area(opacity=0.18).encode(x=x, y=low, y2=alt.Y2("high:Q"), color=color),
        *(line.encode(x=x, y=y, color=color) for line in dashed_lines(len(found))),
        base.mark_point(size=45, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=tip
        ),
        base.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=x, y=y, tooltip=tip),
    ]
    return layered(layers, data=inline(values), width=curves.WIDTH, height=curves.HEIGHT)


def _rows(number: int, size: str, curve: dict[str, Spot]) -> list[dict[str, Any]]:
    return [
        {
            "series": size,
            "number": number,
            "order": order,
            "value": spot.value,
            "low": spot.low,
            "high": spot.high,
            "doubt": int(spot.disturbed),
            "text": f"{size}, {order}: {format_ns(spot.value)}",
        }
        for order, spot in curve.items()
    ]


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = [
        f"{size}: " + ", ".join(f"{_spoken(order)} {format_ns(spot.value)}" for order, spot in curve.items())
        for size, curve in lines(run).items()
    ]
    text = (
        "Line chart, vertical axis logarithmic: time of one access by the order of accesses and the array. "
    )
    return text + "; ".join(parts) + "."


def _spoken(order: str) -> str:
    return order if order in {SEQUENTIAL, RANDOM} else f"every {order}"


def table(run: Run) -> Table:
    """Every point of every curve."""
    columns = (
        Column("array"),
        Column("order"),
        Column("one access, median", "ns"),
        Column("95 % from", "ns"),
        Column("95 % to", "ns"),
        Column("samples", "count"),
        Column("disturbed"),
    )
    rows = tuple(
        (
            size,
            order,
            spot.value,
            *range_cells(spot.low, spot.high),
            spot.samples,
            "yes" if spot.disturbed else "no",
        )
        for size, curve in lines(run).items()
        for order, spot in curve.items()
    )
    return Table(columns, rows)
