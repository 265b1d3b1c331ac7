"""What more requests under way gain, and what each of them then waits."""

from __future__ import annotations

import altair as alt

from latlab.charts.storage import latency, timed
from latlab.charts.storage_random import READ, VERBS
from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_count, format_ns
from latlab.view import curves
from latlab.view.axes import count_axis, duration_y, per_second_y, widened
from latlab.view.curves import dashed_lines, series_encodings
from latlab.view.drawing import inline, layered
from latlab.view.points import Spot, is_disturbed, why_absent
from latlab.view.table import Column, Table

ID = "storage_depth"
TITLE = "How many requests should be under way at once?"
_MOST_CURVES = 6
_WIDTH, _HEIGHT = 312, 280


def lines(run: Run) -> dict[str, list[Record]]:
    """Records by block size and operation, ascending in depth; the smallest blocks first."""
    kinds: dict[tuple[int, str], list[Record]] = {}
    for probe, verb in VERBS.items():
        for record in timed(run, probe):
            if record.point.queue_depth and record.point.block_bytes and rate(record) is not None:
                kinds.setdefault((record.point.block_bytes, verb), []).append(record)
    return {
        f"{verb} {format_bytes(size)}": sorted(own, key=lambda record: record.point.queue_depth or 0)
        for (size, verb), own in sorted(kinds.items())[:_MOST_CURVES]
    }


def rate(record: Record) -> float | None:
    """Blocks a second."""
    return positive(found(record), "rate_per_s")


def latencies(run: Run) -> dict[str, list[Record]]:
    """The lines of which latency is drawn: those of the smallest block."""
    everything = lines(run)
    smallest = min((own[0].point.block_bytes or 0 for own in everything.values()), default=0)
    return {name: own for name, own in everything.items() if own[0].point.block_bytes == smallest}


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, READ)


def _quantiles(records: list[Record], quantile: str) -> list[Spot]:
    spots = (latency(record, record.point.queue_depth or 1, quantile) for record in records)
    return [spot for spot in spots if spot is not None]


def chart(run: Run) -> alt.HConcatChart | None:
    """Rate against depth, and latency against depth: median solid, p99 thin."""
    found_lines = lines(run)
    if not found_lines:
        return None
    rates = {
        name: [
            Spot(r.point.queue_depth or 1, per_s, per_s, per_s, r.samples, is_disturbed(r))
            for r in own
            if (per_s := rate(r)) is not None
        ]
        for name, own in found_lines.items()
    }  # fmt: skip
    depths = sorted({int(spot.x) for spot in curves.everywhere(rates)})
    if len(depths) == 1:
        depths.append(2 * depths[0])
    names = list(rates)
    x = count_axis("x", "requests under way", depths)
    y = per_second_y("value", "blocks a second", *widened(curves.ends(rates)))
    left = layered(
        curves.layers(rates, x, y, columns=2),
        data=curves.rows(rates, lambda spot: f"depth {spot.x:.0f}: {spot.stated(format_count)} a second"),
        width=_WIDTH,
        height=_HEIGHT,
        title="how many are done",
    )  # fmt: skip
    return alt.hconcat(left, _latency_panel(run, names, x), spacing=24)


def _latency_panel(run: Run, names: list[str], x: alt.X) -> alt.LayerChart:
    own = latencies(run)
    medians = {name: _quantiles(records, "p50") for name, records in own.items()}
    slow = {name: _quantiles(records, "p99") for name, records in own.items()}
    rows = [
        {
            "series": name,
            "number": names.index(name),
            "x": spot.x,
            "value": spot.value if which == "p50" else None,
            "p99": spot.value if which == "p99" else None,
            "text": f"{name}, depth {spot.x:.0f}: {which} {format_ns(spot.value)}",
        }
        for which, lines_of in (("p50", medians), ("p99", slow))
        for name, spots in lines_of.items()
        for spot in spots
    ]
    low, high = widened(spot.value for both in (medians, slow) for own in both.values() for spot in own)
    y, at_p99 = (duration_y(field, "one block", low, high) for field in ("value", "p99"))
    color, shape = series_encodings(names, 2)
    base = alt.Chart()
    slowest = base.transform_filter("isNumber(datum.p99)")
    median = base.transform_filter("isNumber(datum.value)")
    layers = [
        slowest.mark_line(strokeWidth=0.9, opacity=0.9).encode(x=x, y=at_p99, color=color),
        slowest.mark_point(size=34, filled=False, opacity=1).encode(
            x=x, y=at_p99, color=color, shape=shape, tooltip=alt.Tooltip("text:N")
        ),
        *(
            line.transform_filter("isNumber(datum.value)").encode(x=x, y=y, color=color)
            for line in dashed_lines(len(names))
        ),
        median.mark_point(size=34, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")
        ),
    ]
    title = "how long each takes: median filled, p99 hollow"
    return layered(layers, data=inline(rows), width=_WIDTH, height=_HEIGHT, title=title)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for name, own in lines(run).items():
        ends = [f"{format_count(rate(r))} a second at depth {r.point.queue_depth}" for r in (own[0], own[-1])]
        parts.append(f"{name}: {' to '.join(dict.fromkeys(ends))}")
    text = (
        "Two line charts, axes logarithmic: blocks a second and time of one block against requests"
        " under way. "
    )
    return text + "; ".join(parts) + "."


def table(run: Run) -> Table:
    """Every point."""
    columns = (
        Column("blocks"),
        Column("asked depth", "count"),
        Column("achieved depth", "number"),
        Column("a second", "count"),
        Column("bytes a second", "bytes_per_s"),
        Column("median", "ns"),
        Column("p99", "ns"),
        Column("blocks timed", "count"),
        Column("engine"),
    )
    rows = tuple(
        (
            name,
            r.point.queue_depth,
            positive(found(r), "achieved_depth"),
            rate(r),
            positive(found(r), "bytes_per_s"),
            r.value,
            r.summary.p99 if r.summary else None,
            r.samples,
            r.engine or r.point.engine,
        )
        for name, own in lines(run).items()
        for r in own
    )
    return Table(columns, rows)
