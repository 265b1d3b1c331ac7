"""The notebook's two panels: pokes below and above a limit, each against a normal distribution."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_ns, format_percent
from latlab.view.axes import decades, duration_x
from latlab.view.distribution import counts, normal_share, single_pokes, size_name, slower_than
from latlab.view.drawing import inline, layered
from latlab.view.points import drawable, why_absent
from latlab.view.table import Column, Table

ID = "poke_histogram"
TITLE = "What does the histogram show, and what does it hide?"
PROBE = "memory.poke"
_BINS = 30
#: Where bars on a log axis stand: one poke must still be a bar.
_HALF = 0.5
#: A clock step below this share of the limit makes no comb in so few bins.
_FINEST = 10_000
_COUNT_LABEL = "format(datum.value, ',.0f')"


def record_of(run: Run) -> Record | None:
    """The read pokes of the largest array."""
    records = [r for r in single_pokes(run, "read") if r.point.working_set_bytes] or single_pokes(run)
    return records[-1] if records else None


def limit_ns(record: Record) -> float:
    """Where the panels part: the power of ten that all but the slowest hundredth of pokes stay below."""
    p99 = record.summary.p99 if record.summary else None
    slow = p99 if drawable(p99) else counts(record)[-1][0]
    return 10.0 ** math.ceil(math.log10(slow * 1.001))


def fraction_of_zeros(record: Record) -> float:
    """Share of pokes that took no step of the clock, as the course notebook counts them."""
    return 1.0 - slower_than(record, 0.0)


def below_zero(record: Record) -> float:
    """Share of the normal that would take negative time."""
    share = normal_share(record, 0.0)
    return 0.0 if share is None else 1.0 - share


def body_bins(record: Record) -> list[tuple[float, float, int, float]]:
    """`(from, to, pokes, pokes that the normal predicts)` below the limit.

    Bins are whole clock steps wide and centred on them: any other width would show the clock's comb.
    """
    limit = limit_ns(record)
    step = record.resolution_ns or 0.0
    step = step if limit / _FINEST < step < limit else 0.0
    width = step * max(1, round(limit / _BINS / step)) if step else limit / _BINS
    total = record.samples
    bins = []
    start = -step / 2
    pairs = counts(record)
    while start < limit:
        end = start + width
        inside = sum(count for at, count in pairs if start <= at < end)
        expected = total * ((normal_share(record, start) or 0.0) - (normal_share(record, end) or 0.0))
        bins.append((start, end, inside, expected))
        start = end
    return bins


def tail_bins(record: Record) -> list[tuple[float, float, int, float]]:
    """The same above the last bin of the body, six bins a power of ten."""
    start = body_bins(record)[-1][1]
    pairs = [(at, count) for at, count in counts(record) if at >= start]
    if not pairs:
        return []
    total = record.samples
    bins = []
    while start <= pairs[-1][0]:
        end = start * 10 ** (1 / 6)
        inside = sum(count for at, count in pairs if start <= at < end)
        expected = total * ((normal_share(record, start) or 0.0) - (normal_share(record, end) or 0.0))
        bins.append((start, end, inside, expected))
        start = end
    return bins


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if record_of(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """Body on linear axes, tail on log axes: on the body's axes the tail is invisible."""
    record = record_of(run)
    if record is None:
        return None
    limit = format_ns(limit_ns(record), digits=1)
    zeros = f"{format_percent(fraction_of_zeros(record))} zeros"
    body = _panel(_rows(body_bins(record)), log=False, title=f"below {limit}, linear; {zeros}")
    tail = tail_bins(record)
    if not tail:
        return alt.hconcat(body)
    slow = f"{format_count(sum(inside for _, _, inside, _ in tail))} pokes"
    return alt.hconcat(body, _panel(_rows(tail), log=True, title=f"above {limit}, logarithmic; {slow}"))


def _rows(bins: list[tuple[float, float, int, float]]) -> list[dict[str, Any]]:
    return [
        {
            "from": start,
            "to": end,
            "middle": (start + end) / 2,
            "pokes": inside,
            "expected": expected,
            "text": f"{format_ns(max(start, 0.0))} to {format_ns(end)}: {format_count(inside)} pokes",
        }
        for start, end, inside, expected in bins
    ]


def _panel(rows: list[dict[str, Any]], *, log: bool, title: str) -> alt.LayerChart:
    left, right = rows[0]["from"], rows[-1]["to"]
    highest = max(max(row["pokes"], row["expected"]) for row in rows)
    if log:
        x = duration_x("from", "one poke", left, right)
        scale = alt.Scale(type="log", domain=[_HALF, max(highest, 10) * 1.5], nice=False, clamp=True)
        ticks = alt.Axis(values=decades(_HALF, max(highest, 10) * 1.5), labelExpr=_COUNT_LABEL)
    else:
        axis = alt.Axis(tickCount=6, grid=False)
        x = alt.X(
            "from:Q",
            title="one poke, ns",
            scale=alt.Scale(domain=[min(left, 0.0), right], nice=False),
            axis=axis,
        )
        scale = alt.Scale(domain=[0, highest * 1.05], nice=False)
        ticks = alt.Axis(labelExpr=_COUNT_LABEL, tickCount=5)
    y, middle, expected = (
        alt.Y("pokes:Q", title="pokes", scale=scale, axis=ticks),
        x.copy(),
        alt.Y("expected:Q", title="pokes", scale=scale, axis=ticks),
    )
    middle["shorthand"] = "middle:Q"
    filled = [{**row, "floor": _HALF if log else 0} for row in rows if row["pokes"]]
    bars = alt.Chart(inline(filled)).mark_rect(style="level")
    predicted = [row for row in rows if not log or row["expected"] >= _HALF]
    normal = alt.Chart(inline(predicted)).mark_line(style="predicted")
    drawn = [bars.encode(x=x, x2=alt.X2("to:Q"), y=y, y2=alt.Y2("floor:Q"), tooltip=alt.Tooltip("text:N"))]
    if predicted:
        drawn.append(normal.encode(x=middle, y=expected))
    return layered(drawn, width=320, height=260, title=title)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    record = record_of(run)
    if record is None or record.summary is None:
        return "No histogram."
    slow = sum(inside for _, _, inside, _ in tail_bins(record))
    return (
        f"Two histograms of {format_count(record.samples)} read pokes in an array of"
        f" {size_name(record)}, mean"
        f" {format_ns(record.summary.mean)}, standard deviation {format_ns(record.summary.std)},"
        f" {format_percent(fraction_of_zeros(record))} of them zero,"
        " each with a normal curve"
        f" of the same mean and deviation. {format_count(slow)} pokes lie in the second panel. The"
        " normal would give"
        f" {format_percent(below_zero(record))} of pokes a negative time."
    )


def table(run: Run) -> Table:
    """Every bin that holds something."""
    columns = (
        Column("from", "ns"),
        Column("to", "ns"),
        Column("pokes", "count"),
        Column("a normal predicts", "number"),
    )
    record = record_of(run)
    bins = [*body_bins(record), *tail_bins(record)] if record is not None else []
    return Table(
        columns,
        tuple((max(a, 0.0), b, inside, round(expected, 1)) for a, b, inside, expected in bins if inside),
    )
