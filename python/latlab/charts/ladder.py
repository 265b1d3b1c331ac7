"""The ladder as bars: what one access costs at each level, with its tail and the textbook's figure."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from latlab.run.distance import DISTANCE_M, FLOOR_NS, USUAL_NS
from latlab.run.ladder import ladder
from latlab.run.operations import PACKET
from latlab.run.run import Run
from latlab.run.rung import Rung
from latlab.units import format_ns, format_span, format_stated
from latlab.view.axes import duration_x
from latlab.view.drawing import inline, layered
from latlab.view.points import drawable, why_absent
from latlab.view.table import Column, Table

ID = "ladder"
TITLE = "What does one access cost at each level of this machine?"

#: Legend entry, shape; in this order.
_MARKS = (
    ("slow end of single accesses", "circle"),
    ("slow end of window means", "square"),
    ("textbook", "diamond"),
    ("light in fibre: no less is possible", "triangle-right"),
    ("usual", "triangle-up"),
)

#: Pixels a row: bars keep their distance where there are few, and fit on a page where there are many.
_TALL, _LOW, _MANY = 44, 30, 9


def rungs(run: Run) -> list[Rung]:
    """The measured levels, or the pokes when no level was measured; then the operations."""
    measured = [rung for rung in ladder(run) if drawable(rung.latency_p50_ns)]
    operations = [rung for rung in measured if rung.group == "operations"]
    levels = [rung for rung in measured if rung.group == "levels"]
    return ([rung for rung in levels if not rung.key.startswith("poke:")] or levels) + operations


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if rungs(run) else why_absent(run, "memory.load.dependent")


def label(rung: Rung) -> str:
    """The figure as it stands beside the bar: a range where there was no single level."""
    if rung.is_range and rung.interval is not None:
        return format_span(*rung.interval)
    return format_ns(rung.latency_p50_ns)


def chart(run: Run) -> alt.LayerChart | None:
    """One bar a level on a log axis; a bar's length is a number of powers of ten."""
    found = rungs(run)
    if not found:
        return None
    values = [_row(rung) for rung in found]
    marks = [mark for rung in found for mark in _marks(rung)]
    marks += _packet(run)
    # A decade of bar below the fastest level, so that its figure fits inside.
    floor = 10.0 ** (math.floor(math.log10(min(row["from"] for row in values))) - 1)
    floor = min([floor, *(mark["x"] / 1.5 for mark in marks)])
    top = 1.6 * max(row["to"] for row in [*values, *({"to": mark["x"]} for mark in marks)])
    for row in values:
        row["floor"] = floor
    title = "one access, logarithmic"
    bar_from, figure_to, whisker_from, mark_at = (
        duration_x(field, title, floor, top) for field in ("floor", "from", "since", "x")
    )
    names = list(dict.fromkeys(row["name"] for row in [*values, *marks]))
    axis = alt.Axis(grid=False, ticks=False, domain=False, labelFontSize=13, labelPadding=8)
    y = alt.Y("name:N", title=None, sort=None, scale=alt.Scale(domain=names), axis=axis)
    tip = alt.Tooltip("text:N")
    bars = alt.Chart(inline(values))
    ranges = bars.transform_filter("datum.to > datum.from")
    layers: list[alt.Chart] = [
        *(
            bars.transform_filter(f"datum.group == '{group}'")
            .mark_bar(style=style, height=22)
            .encode(x=bar_from, x2=alt.X2("from:Q"), y=y, tooltip=tip)
            for group, style in (("levels", "level"), ("operations", "operation"))
        ),
        ranges.mark_bar(style="range", height=22).encode(x=figure_to, x2=alt.X2("to:Q"), y=y, tooltip=tip),
        bars.mark_text(style="on-level", align="left", dx=6).encode(
            x=bar_from, y=y, text=alt.Text("figure:N")
        ),
    ]
    if marks:
        present = [entry for entry in _MARKS if any(mark["mark"] == entry[0] for mark in marks)]
        shapes = alt.Scale(domain=[name for name, _ in present], range=[drawn for _, drawn in present])
        # All five in a row are wider than the chart.
        outlined = alt.Legend(title=None, columns=3, symbolStrokeWidth=1.8)
        data = alt.Chart(inline(marks))
        whiskers = data.transform_filter("isNumber(datum.since) && datum.since < datum.x")
        points = data.mark_point(size=70, filled=True, opacity=1, style="outlined")
        layers += [
            whiskers.mark_rule(style="whisker").encode(x=whisker_from, x2=alt.X2("x:Q"), y=y),
            points.encode(
                x=mark_at, y=y, shape=alt.Shape("mark:N", legend=outlined, scale=shapes), tooltip=tip
            ),
        ]
    return layered(layers, width=620, height=(_TALL if len(names) < _MANY else _LOW) * len(names))


def _row(rung: Rung) -> dict[str, Any]:
    low = high = rung.latency_p50_ns or 0.0
    if rung.is_range and rung.interval is not None and all(map(drawable, rung.interval)):
        low, high = rung.interval
    name = f"{rung.level} · {rung.size_text}" if rung.size_text else rung.level
    stated = (
        label(rung)
        if rung.is_range
        else format_stated(rung.latency_p50_ns, rung.interval, why_none=rung.why_no_interval)
    )
    return {
        "name": name,
        "group": rung.group,
        "from": low,
        "to": high,
        "figure": label(rung),
        "text": f"{name}: {stated}",
    }


def _marks(rung: Rung) -> list[dict[str, Any]]:
    row = _row(rung)
    marks: list[dict[str, Any]] = []
    if rung.tail is not None:
        kind = (
            "slow end of single accesses"
            if rung.tail.kind == "single accesses"
            else "slow end of window means"
        )
        text = f"{rung.tail.quantile} of {rung.tail.kind}: {format_ns(rung.tail.value_ns)}"
        marks.append(
            {"name": row["name"], "mark": kind, "since": row["to"], "x": rung.tail.value_ns, "text": text}
        )
    if rung.textbook_ns is not None:
        text = f"textbook: {format_ns(rung.textbook_ns)}"
        marks.append(
            {"name": row["name"], "mark": "textbook", "since": None, "x": rung.textbook_ns, "text": text}
        )
    return [mark for mark in marks if drawable(mark["x"])]


def _packet(run: Run) -> list[dict[str, Any]]:
    """What a packet to the other side of an ocean takes: references, where the network was looked at."""
    if not any(record.probe.startswith("network.") for record in run.records):
        return []
    references = {
        "light in fibre: no less is possible": (FLOOR_NS, f"great circle of {DISTANCE_M / 1000:,.0f} km"),
        "usual": (USUAL_NS, "with detours and routers, not measured here"),
    }
    return [
        {"name": PACKET, "mark": mark, "since": None, "x": ns, "text": f"{mark}: {format_ns(ns)}, {how}"}
        for mark, (ns, how) in references.items()
    ]


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for rung in rungs(run):
        textbook = f", textbook {format_ns(rung.textbook_ns)}" if rung.textbook_ns is not None else ""
        parts.append(f"{rung.level} {label(rung)}{textbook}")
    if _packet(run):
        parts.append(
            f"{PACKET}, references: light in fibre {format_ns(FLOOR_NS)}, usual {format_ns(USUAL_NS)}"
        )
    return "Bar chart on a logarithmic axis: time of one access at each level. " + "; ".join(parts) + "."


def table(run: Run) -> Table:
    """Every rung, the pokes included."""
    columns = (
        Column("level"),
        Column("holds"),
        Column("one access, median", "ns"),
        Column("from", "ns"),
        Column("to", "ns"),
        Column("which is"),
        Column("slow end", "ns"),
        Column("slow end is"),
        Column("one thread reads", "bytes_per_s"),
        Column("1 MiB takes", "seconds"),
        Column("1 GiB takes", "seconds"),
        Column("L1 hits", "number"),
        Column("textbook", "ns"),
        Column("samples", "count"),
        Column("note"),
        Column("group"),
    )
    rows = tuple(
        (
            rung.level,
            rung.size_text,
            rung.latency_p50_ns,
            rung.interval[0] if rung.interval else None,
            rung.interval[1] if rung.interval else None,
            rung.interval_kind if rung.interval else None,
            rung.tail.value_ns if rung.tail else None,
            f"{rung.tail.quantile} of {rung.tail.kind}" if rung.tail else rung.refused,
            rung.bandwidth,
            rung.seconds_1MiB,
            rung.seconds_1GiB,
            rung.l1_hits,
            rung.textbook_ns,
            rung.samples or None,
            rung.note,
            rung.group,
        )
        for rung in ladder(run)
    )
    return Table(columns, rows)
