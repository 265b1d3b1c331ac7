"""One row a thing, a dot at its cost on a log axis, a whisker to its slow end: unlike things side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from latlab.run.model import Record
from latlab.units import format_ns
from latlab.view.axes import duration_x, widened
from latlab.view.drawing import inline, layered
from latlab.view.points import drawable, is_disturbed
from latlab.view.table import Column, Table, range_cells

#: Rows that are drawn: what fits on a page of paper.
MOST_ROWS = 40
_ROW_PIXELS = 23
_TAIL = "slow end of single operations (p99, or p90 of few)"


@dataclass(frozen=True, slots=True)
class Dot:
    """One row.

    Attributes:
        name: What it is.
        value: Its median, ns.
        low: Lower end of the median's 95 % interval.
        high: Upper end likewise.
        tail: The slow end of single operations, ns; absent for window means.
        tail_name: Which quantile that is.
        samples: Values behind it.
        disturbed: Something else ran while it was measured.
    """

    name: str
    value: float
    low: float
    high: float
    tail: float | None
    tail_name: str
    samples: int
    disturbed: bool


def dot(name: str, record: Record) -> Dot:
    """The row of a record that has a figure."""
    value = record.value or 0.0
    ends = [value, *filter(drawable, record.interval or ())]
    tail, tail_name = None, ""
    if record.kind == "per_op" and record.summary is not None:
        for quantile, called in ((record.summary.p99, "p99"), (record.summary.p90, "p90")):
            if drawable(quantile) and quantile >= value:
                tail, tail_name = quantile, called
                break
    return Dot(name, value, min(ends), max(ends), tail, tail_name, record.samples, is_disturbed(record))


def chart(dots: Sequence[Dot], title: str) -> alt.LayerChart | None:
    """The rows from top to bottom; nothing when there are none."""
    rows = list(dots)[:MOST_ROWS]
    if not rows:
        return None
    names = [row.name for row in rows]
    ends = [end for row in rows for end in (row.low, row.high, row.tail)]
    # A figure stands to the right of its last mark.
    left, right = widened((end for end in ends if end is not None), down=2.0, up=4.0)
    axis = alt.Axis(grid=True, ticks=False, domain=False, labelPadding=8, labelLimit=330)
    y = alt.Y("name:N", title=None, sort=None, scale=alt.Scale(domain=names), axis=axis)
    value, low, label = (duration_x(field, title, left, right) for field in ("value", "low", "right"))
    data = alt.Chart()
    values = [
        {
            "name": row.name,
            "value": row.value,
            "low": row.low,
            "high": row.high,
            "tail": row.tail,
            "right": row.tail or row.high,
            "figure": format_ns(row.value),
            "doubt": int(row.disturbed),
            "text": spoken(row),
            "tail_text": f"{row.name}: {row.tail_name} {format_ns(row.tail)}",
        }
        for row in rows
    ]
    single = data.transform_filter("isNumber(datum.tail)")
    shapes = alt.Scale(domain=[_TAIL], range=["square"])
    legend = alt.Legend(title=None, symbolStrokeWidth=1.8)
    tails = any(row.tail is not None for row in rows)
    layers = [
        data.mark_rule(style="level", strokeWidth=5, opacity=0.35).encode(x=low, x2=alt.X2("high:Q"), y=y),
        single.mark_rule(style="whisker").encode(x=value, x2=alt.X2("tail:Q"), y=y),
    ]
    if tails:
        at_tail = duration_x("tail", title, left, right)
        layers += [
            single.transform_calculate(mark=f"'{_TAIL}'")
            .mark_point(size=55, filled=True, opacity=1, style="outlined")
            .encode(
                x=at_tail,
                y=y,
                shape=alt.Shape("mark:N", legend=legend, scale=shapes),
                tooltip=alt.Tooltip("tail_text:N"),
            )
        ]
    layers += [
        data.mark_point(shape="circle", size=75, filled=True, opacity=1, style="level").encode(
            x=value, y=y, tooltip=alt.Tooltip("text:N")
        ),
        data.mark_text(style="name", align="left", dx=9).encode(x=label, y=y, text=alt.Text("figure:N")),
        data.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=value, y=y, tooltip=alt.Tooltip("text:N")),
    ]
    return layered(layers, data=inline(values), width=520, height=_ROW_PIXELS * len(rows) + 8)


def spoken(row: Dot) -> str:
    """`thread, started and joined: 42.1 µs, p99 61.0 µs`."""
    tail = f", {row.tail_name} {format_ns(row.tail)}" if row.tail is not None else ""
    return f"{row.name}: {format_ns(row.value)}{tail}"


def table(dots: Sequence[Dot], heading: str) -> Table:
    """Every row."""
    columns = (
        Column(heading),
        Column("median", "ns"),
        Column("95 % from", "ns"),
        Column("95 % to", "ns"),
        Column("slow end", "ns"),
        Column("which is"),
        Column("samples", "count"),
        Column("disturbed"),
    )
    rows = tuple(
        (
            row.name,
            row.value,
            *range_cells(row.low, row.high),
            row.tail,
            row.tail_name or None,
            row.samples,
            "yes" if row.disturbed else "no",
        )
        for row in dots
    )
    return Table(columns, rows)
