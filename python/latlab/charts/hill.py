"""Is there one number for the tail? Hill's index, generalised Pareto's shape, mean excess over thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from latlab.charts import tail_data
from latlab.charts.axes import duration_x, duration_y, share_y, widened
from latlab.charts.drawing import inline, layered
from latlab.charts.table import Column, Table
from latlab.run.run import Run
from latlab.stats import tails
from latlab.stats.tails import Tail

ID = "hill"
TITLE = "Does the tail follow one law?"
_WIDTH, _HEIGHT, _SPACING = 200, 250, 20
#: An index above this is no power law that anybody would call one; the axis ends there.
_STEEPEST = 12.0


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    record = tail_data.record_of(run)
    if record is None:
        return tail_data.why_absent(run)
    if not tail_data.tail_of(tails.of_record(record)).hill:
        return f"{tail_data.name_of(record)}: half of them or more took the same time"
    return None


def tail(run: Run) -> Tail | None:
    """The plots of the chart's record."""
    record = tail_data.record_of(run)
    return None if record is None else tail_data.tail_of(tails.of_record(record))


def chart(run: Run) -> alt.HConcatChart | None:
    """Three panels over the share of operations beyond a threshold, rarest at the left of the first two."""
    found = tail(run)
    if found is None or not found.hill:
        return None
    lowest = min(point.share for point in found.hill) / 1.2
    index = [_row(p.share, p.index, p.interval, (0.0, _STEEPEST)) for p in found.hill if p.index <= _STEEPEST]
    shape = [_row(p.share, p.shape, p.interval, (-1.0, 4.0)) for p in found.shape]
    drawn = []
    if index:
        drawn.append(_panel(index, lowest, "tail index", "Hill: level where a power law holds"))
    if shape:
        drawn.append(_panel(shape, lowest, "shape", "generalised Pareto: likewise", zero=True))
    excess = [
        {"x": p.threshold, "y": p.excess} for p in found.mean_excess if p.threshold > 0 and p.excess > 0
    ]
    if excess:
        low, high = widened([row["x"] for row in excess])
        bottom, top = widened([row["y"] for row in excess])
        x, y = duration_x("x", "threshold", low, high), duration_y("y", "mean excess", bottom, top)
        base = alt.Chart().encode(x=x, y=y)
        layers = [base.mark_line(style="level"), base.mark_point(style="level", filled=True, size=28)]
        drawn.append(
            layered(
                layers,
                data=inline(excess),
                width=_WIDTH,
                height=_HEIGHT,
                title="mean excess: level if exponential",
            )
        )
    return alt.hconcat(*drawn, spacing=_SPACING) if drawn else None


def _row(
    share: float, value: float, interval: tuple[float, float] | None, ends: tuple[float, float]
) -> dict[str, Any]:
    row: dict[str, Any] = {"x": share, "y": value}
    if interval is not None:
        row |= {"low": max(interval[0], ends[0]), "high": min(interval[1], ends[1])}
    return row


def _panel(
    rows: Sequence[dict[str, Any]], lowest: float, name: str, title: str, *, zero: bool = False
) -> alt.LayerChart:
    axis = share_y("x", "beyond the threshold", lowest)
    x = alt.X("x:Q", title="beyond the threshold", scale=axis["scale"], axis=axis["axis"].copy())
    x["axis"]["labelOverlap"] = True
    bottom = min(row.get("low", row["y"]) for row in rows)
    top = max(row.get("high", row["y"]) for row in rows)
    room = 0.08 * max(top - bottom, 0.5)
    domain = [bottom - room if zero else max(0.0, bottom - room), top + room]
    y = alt.Y("y:Q", title=name, scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(tickCount=6))
    low = y.copy()
    low["shorthand"] = "low:Q"
    base = alt.Chart()
    layers = [
        base.transform_filter("isValid(datum.low)")
        .mark_area(style="range")
        .encode(x=x, y=low, y2=alt.Y2("high:Q")),
        base.mark_line(style="level").encode(x=x, y=y),
        base.mark_point(style="level", filled=True, size=28).encode(x=x, y=y),
    ]
    if zero and domain[0] < 0 < domain[1]:
        ground = alt.Chart(inline([{"y": 0}])).mark_rule(style="reported")
        layers.insert(0, ground.encode(y=y))
    return layered(layers, data=inline(rows), width=_WIDTH, height=_HEIGHT, title=title)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    record = tail_data.record_of(run)
    found = tail(run)
    if record is None or found is None or not found.hill:
        return "No Hill plot."
    outer, inner = found.hill[0], found.hill[-1]
    verdict = (
        f"It holds: {found.index.at.index:.2f} over a factor of {found.index.span:.0f}."
        if found.index
        else f"There is no one index: {found.why_no_index}."
    )
    return (
        f"Hill's tail index of {tail_data.name_of(record)} over thresholds, {outer.index:.2f} with"
        f" {outer.beyond:.0f} operations beyond, {inner.index:.2f} with {inner.beyond:,.0f}; the shape of a"
        f" generalised Pareto and the mean excess likewise. {verdict}"
    )


def table(run: Run) -> Table:
    """Every threshold of all three plots."""
    columns = (
        Column("plot"),
        Column("threshold", "ns"),
        Column("operations beyond", "count"),
        Column("value", "number"),
        Column("95 % from", "number"),
        Column("95 % to", "number"),
    )
    found = tail(run)
    if found is None:
        return Table(columns)
    rows: list[tuple[str | float | None, ...]] = [
        ("tail index", p.threshold, p.beyond, _short(p.index), *map(_short, p.interval or (None, None)))
        for p in found.hill
    ]
    rows += [
        ("shape", p.threshold, p.beyond, _short(p.shape), *map(_short, p.interval or (None, None)))
        for p in found.shape
    ]
    rows += [
        ("mean excess, ns", p.threshold, p.beyond, _short(p.excess), None, None) for p in found.mean_excess
    ]
    return Table(columns, tuple(rows))


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
