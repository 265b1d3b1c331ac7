"""Latency of a dependent load while other CPUs move data, against how much they move."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt

from latlab.run.findings import findings, found, positive, stated
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_ns, format_rate
from latlab.view import curves
from latlab.view.axes import linear_duration_y, linear_rate_x
from latlab.view.curves import dashed_lines, series_encodings
from latlab.view.drawing import inline, layered
from latlab.view.points import drawable, is_disturbed, why_absent, with_figures
from latlab.view.table import Column, Table, range_cells

ID = "loaded"
TITLE = "How much slower is memory while others use it?"
PROBE = "memory.loaded"
_MOST_CURVES = 6
#: What is slower than so many times the slowest median has no place on a linear axis.
_HIGHEST = 3.0


@dataclass(frozen=True, slots=True)
class Point:
    """Latency at one load.

    Attributes:
        load: What the load threads moved meanwhile, bytes a second; 0 without load.
        value: Median latency, ns.
        low: Lower end of its 95 % interval.
        high: Upper end likewise.
        p99: 99th percentile of windows, ns; absent with too few.
        samples: Windows behind it.
        disturbed: Something else ran while it was measured.
    """

    load: float
    value: float
    low: float
    high: float
    p99: float | None
    samples: int
    disturbed: bool


@dataclass(frozen=True, slots=True)
class Knee:
    """Where latency begins to climb: of which line, at which load (with its range), how long one takes."""

    series: str
    load: float
    latency: float
    stated: str


def lines(run: Run) -> dict[str, list[Point]]:
    """One curve for each share of reading and number of load threads, ascending in load; idle begins each."""
    records = with_figures(run, PROBE, "batch_mean")
    idle = [_point(record, 0.0) for record in records if not record.point.threads]
    found: dict[str, list[Point]] = {}
    loads = [record for record in records if record.point.threads and _load(record) is not None]
    kinds = sorted({(-(r.point.read_percent or 0), r.point.threads or 0) for r in loads})
    for percent, threads in kinds:
        own = [r for r in loads if -(r.point.read_percent or 0) == percent and r.point.threads == threads]
        points = [_point(record, _load(record) or 0.0) for record in own]
        found[series(-percent, threads)] = sorted([*idle, *points], key=lambda point: point.load)
    return dict(list(found.items())[:_MOST_CURVES])


def series(read_percent: int, threads: int) -> str:
    """What a line is called."""
    return f"{read_percent} % reads, {threads} thread{'' if threads == 1 else 's'}"


def idle_ns(run: Run) -> float | None:
    """Latency without load, ns."""
    for curve in lines(run).values():
        if curve[0].load == 0:
            return curve[0].value
    return None


def knees(run: Run) -> list[Knee]:
    """The knees that were found, of the lines that are drawn."""
    names = lines(run)
    found = []
    for entry in findings(run, PROBE).sections("curves"):
        percent, threads = entry.integer("read_percent"), entry.integer("threads")
        load, latency = positive(entry, "knee.load_bytes_per_s"), positive(entry, "knee.latency_ns")
        if percent is None or threads is None or load is None or latency is None:
            continue
        if series(percent, threads) in names:
            at = stated(entry, "knee.load_bytes_per_s", format_rate)
            found.append(Knee(series(percent, threads), load, latency, at))
    return found


def _load(record: Record) -> float | None:
    load = found(record).number("load_bytes_per_s")
    return load if load is not None and drawable(load) else None


def _point(record: Record, load: float) -> Point:
    value = record.value or 0.0
    ends = [value, *filter(drawable, record.interval or ())]
    p99 = record.summary.p99 if record.summary else None
    slow = p99 if drawable(p99) and p99 >= value else None
    return Point(load, value, min(ends), max(ends), slow, record.samples, is_disturbed(record))


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    if lines(run):
        return None
    if with_figures(run, PROBE, "batch_mean"):
        return "only memory without load was measured"
    return why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """Linear axes from zero, as such curves are drawn: the level part, the knee and the climb."""
    found = lines(run)
    if not found:
        return None
    names = list(found)
    everything = [point for curve in found.values() for point in curve]
    right = 1.08 * max(point.load for point in everything)
    # A 99th percentile of windows that lost their CPU would press all curves flat: it is left to the table.
    most = _HIGHEST * max(point.value for point in everything)
    slow = [point.p99 for point in everything if point.p99 is not None and point.p99 <= most]
    top = 1.1 * max([point.value for point in everything] + [min(p.high, most) for p in everything] + slow)
    rows = [
        {
            "series": name,
            "number": names.index(name),
            "x": point.load,
            "value": point.value,
            "low": point.low,
            "high": point.high,
            "p99": point.p99 if point.p99 is not None and point.p99 <= top else None,
            "doubt": int(point.disturbed),
            "text": _spoken(name, point),
        }
        for name, curve in found.items()
        for point in curve
    ]
    x = linear_rate_x("x", "what the other threads move meanwhile", right)
    y, low, at_p99 = (
        linear_duration_y(field, "one dependent load", top) for field in ("value", "low", "p99")
    )
    color, shape = series_encodings(names)
    base = alt.Chart()
    layers = [
        base.mark_area(opacity=0.18).encode(x=x, y=low, y2=alt.Y2("high:Q"), color=color),
        base.transform_filter("isNumber(datum.p99)")
        .mark_line(strokeWidth=0.8, opacity=0.8)
        .encode(x=x, y=at_p99, color=color),
        *(line.encode(x=x, y=y, color=color) for line in dashed_lines(len(names))),
        base.mark_point(size=34, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")
        ),
        base.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=x, y=y, tooltip=alt.Tooltip("text:N")),
        *_marks(run, x, y, right, top),
    ]
    return layered(layers, data=inline(rows), width=curves.WIDTH, height=curves.HEIGHT)


def _marks(run: Run, x: alt.X, y: alt.Y, right: float, top: float) -> list[alt.Chart]:
    marks: list[alt.Chart] = []
    idle = idle_ns(run)
    if idle is not None:
        rule = alt.Chart(inline([{"x": right, "value": idle, "name": f"idle: {format_ns(idle)}"}]))
        marks += [
            rule.mark_rule(style="reported").encode(y=y),
            rule.mark_text(style="note", align="right", dx=-4, dy=10).encode(
                x=x, y=y, text=alt.Text("name:N")
            ),
        ]
    rings = [
        {
            "x": knee.load,
            "value": knee.latency,
            "text": f"knee, {knee.series}: {format_ns(knee.latency)} at {knee.stated}",
        }
        for knee in knees(run)
        if knee.load <= right and knee.latency <= top
    ]
    if rings:
        ring = alt.Chart(inline(rings))
        marks += [
            ring.mark_point(shape="circle", size=200, filled=False, style="crossed").encode(
                x=x, y=y, tooltip=alt.Tooltip("text:N")
            ),
            ring.transform_window(order="row_number()")
            .transform_filter("datum.order == 1")
            .transform_calculate(name="'knee'")
            .mark_text(style="name", dy=21)
            .encode(x=x, y=y, text=alt.Text("name:N")),
        ]
    return marks


def _spoken(name: str, point: Point) -> str:
    slow = f", p99 of windows {format_ns(point.p99)}" if point.p99 is not None else ""
    load = f"while {format_rate(point.load)} move" if point.load else "without load"
    return f"{name}: {format_ns(point.value)} {load}{slow}"


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for name, curve in lines(run).items():
        first, last = curve[0], curve[-1]
        start = "idle" if first.load == 0 else f"at {format_rate(first.load)}"
        parts.append(
            f"{name}: {format_ns(first.value)} {start}, {format_ns(last.value)} at {format_rate(last.load)}"
        )
    found = [f"{knee.series} at {knee.stated}" for knee in knees(run)]
    text = "Line chart: latency of one dependent load against what other threads move meanwhile. "
    return text + "; ".join(parts) + (f". Knees: {'; '.join(found)}." if found else ". No knee was found.")


def table(run: Run) -> Table:
    """Every point of every curve."""
    columns = (
        Column("load"),
        Column("moved meanwhile", "bytes_per_s"),
        Column("one load, median", "ns"),
        Column("95 % from", "ns"),
        Column("95 % to", "ns"),
        Column("p99 of windows", "ns"),
        Column("samples", "count"),
        Column("disturbed"),
    )
    rows = tuple(
        (
            name,
            point.load,
            point.value,
            *range_cells(point.low, point.high),
            point.p99,
            point.samples,
            "yes" if point.disturbed else "no",
        )
        for name, curve in lines(run).items()
        for point in curve
    )
    return Table(columns, rows)
