"""How often a single poke takes how long: 1-CDF of every array size, each against a normal distribution."""

from __future__ import annotations

from typing import Any

import altair as alt

from latlab.run.ladder import instrument
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_ns
from latlab.view.axes import duration_x, share_y
from latlab.view.distribution import normal_share, single_pokes, size_name, slower_than, survival, thinned
from latlab.view.drawing import inline, layered
from latlab.view.points import drawable, why_absent
from latlab.view.table import Column, Table
from latlab.view.theme import SHAPES

ID = "pokes"
TITLE = "How often is a single poke slow, and is that normal?"
PROBE = "memory.poke"
OPERATION = "read"
MEASURED, NORMAL = "measured", "normal with the same mean and deviation"
_NORMAL_POINTS = 80
_TABLE_POINTS = 60


def absence(run: Run, operation: str = OPERATION) -> str | None:
    """Why there is no chart, when there is none."""
    return None if single_pokes(run, operation) else why_absent(run, PROBE)


def blind_zone_ns(run: Run) -> float:
    """Up to where a reading says nothing of memory: 99 in 100 empty pokes read this much or less."""
    empty = instrument(run)
    read = empty.summary.p99 if empty is not None and empty.summary is not None else None
    return max(read if drawable(read) else 0.0, run.clock.overhead_ns.p99, run.clock.quantum_ns)


def chart(run: Run, operation: str = OPERATION) -> alt.LayerChart | None:
    """One staircase an array size, its normal dashed; grey where the clock cannot tell it from nothing."""
    records = single_pokes(run, operation)
    if not records:
        return None
    stairs = {size_name(record): survival(record) for record in records}
    names = list(stairs)
    lowest = min(share for steps in stairs.values() for _, share in steps)
    left = min(steps[0][0] for steps in stairs.values()) / 2
    right = max(steps[-1][0] for steps in stairs.values()) * 1.5
    values = [
        {"series": name, "kind": MEASURED, "x": at, "share": share}
        for name, steps in stairs.items()
        for at, share in steps
    ]
    values += [row for record in records for row in _normal_rows(record, left, right, lowest)]
    marks = [row for name, steps in stairs.items() for row in _mark_rows(name, steps)]
    x = duration_x("x", "a poke takes at least this long", left, right)
    y = share_y("share", "share of pokes", lowest / 1.5)
    color = alt.Color("series:N", title=None, scale=alt.Scale(domain=names))
    shape = alt.Shape(
        "series:N",
        title=None,
        scale=alt.Scale(domain=names, range=[SHAPES[i % len(SHAPES)] for i in range(len(names))]),
    )
    dash = alt.StrokeDash(
        "kind:N", title=None, scale=alt.Scale(domain=[MEASURED, NORMAL], range=[[1, 0], [5, 4]])
    )
    data = alt.Chart(inline(values))
    stairs_layer = data.transform_filter(f"datum.kind == '{MEASURED}'")
    normal_layer = data.transform_filter(f"datum.kind == '{NORMAL}'")
    layers = [
        *_zone(run, left, right, lowest / 1.5, x),
        normal_layer.mark_line(strokeWidth=1.5, clip=True).encode(x=x, y=y, color=color, strokeDash=dash),
        stairs_layer.mark_line(interpolate="step-before").encode(x=x, y=y, color=color, strokeDash=dash),
        alt.Chart(inline(marks))
        .mark_point(size=50, filled=True, opacity=1)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")),
    ]
    return layered(layers, width=720, height=400)


def _zone(run: Run, left: float, right: float, bottom: float, x: alt.X) -> list[alt.Chart]:
    blind = min(blind_zone_ns(run), right)
    if blind <= left:
        return []
    data = alt.Chart(inline([{"x": left, "x2": blind, "y": bottom, "text": "an empty poke reads this much"}]))
    note = data.mark_text(style="note", align="left", baseline="bottom", dx=5, dy=-5)
    return [
        data.mark_rect(style="span").encode(x=x, x2=alt.X2("x2:Q")),
        note.encode(x=x, y=share_y("y", "share of pokes", bottom), text=alt.Text("text:N")),
    ]


def _normal_rows(record: Record, left: float, right: float, lowest: float) -> list[dict[str, Any]]:
    rows = []
    for step in range(_NORMAL_POINTS + 1):
        at = left * (right / left) ** (step / _NORMAL_POINTS)
        share = normal_share(record, at)
        if share is not None and share >= lowest / 10:
            rows.append({"series": size_name(record), "kind": NORMAL, "x": at, "share": share})
    return rows


def _mark_rows(name: str, steps: list[tuple[float, float]]) -> list[dict[str, Any]]:
    """A shape at 1 in 10, 1 in 100, ... and at the slowest: the shape says which array without colour."""
    rows = []
    for power in range(1, 12):
        share = 10.0**-power
        if share < steps[-1][1]:
            break
        at, reached = next(step for step in reversed(steps) if step[1] >= share)
        text = f"{name}: 1 in {10**power:,} takes {format_ns(at)} or longer"
        rows.append({"series": name, "x": at, "share": reached, "text": text})
    at, share = steps[-1]
    rows.append(
        {"series": name, "x": at, "share": share, "text": f"{name}: the slowest took {format_ns(at)}"}
    )
    return rows


def alt_text(run: Run, operation: str = OPERATION) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for record in single_pokes(run, operation):
        steps = survival(record)
        typical = record.summary.p50 if record.summary else None
        parts.append(f"{size_name(record)}: median {format_ns(typical)}, slowest {format_ns(steps[-1][0])}")
    text = (
        f"Staircase chart, both axes logarithmic: share of {operation} pokes that take at least a"
        " given time, by array"
        " size, each with a dashed normal curve that falls to nothing long before the measured one. "
    )
    blind = format_ns(blind_zone_ns(run))
    return text + "; ".join(parts) + f". Below {blind} the clock cannot tell a poke from nothing."


def table(run: Run, operation: str = OPERATION) -> Table:
    """Points of every staircase, fewer than are drawn."""
    columns = (Column("array"), Column("a poke takes at least", "ns"), Column("share of pokes", "share"))
    rows = tuple(
        (size_name(record), at, share)
        for record in single_pokes(run, operation)
        for at, share in thinned(survival(record), _TABLE_POINTS)
    )
    return Table(columns, rows)


def summary(run: Run) -> Table:
    """The course notebook's table, both operations, with quantiles that have samples enough."""
    columns = (
        Column("array"),
        Column("operation"),
        Column("pokes", "count"),
        Column("mean", "ns"),
        Column("std. deviation", "ns"),
        Column("fraction of zeros", "share"),
        Column("no slower than an empty poke", "share"),
        Column("median", "ns"),
        Column("p99", "ns"),
        Column("p99.9", "ns"),
        Column("p99.99", "ns"),
        Column("slowest", "ns"),
        Column("over 10 µs", "share"),
    )
    blind = blind_zone_ns(run)
    return Table(columns, tuple(_row(record, blind) for record in single_pokes(run)))


def _row(record: Record, blind_ns: float) -> tuple[str | float | int | None, ...]:
    summary = record.summary
    return (
        size_name(record),
        record.point.operation or "",
        record.samples,
        *((summary.mean, summary.std) if summary else (None, None)),
        1.0 - slower_than(record, 0.0),
        1.0 - slower_than(record, blind_ns),
        *((summary.p50, summary.p99, summary.p999, summary.p9999, summary.max) if summary else (None,) * 5),
        slower_than(record, 10_000.0),
    )
