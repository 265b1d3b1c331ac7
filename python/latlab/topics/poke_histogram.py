"""The notebook's two panels: pokes below and above a limit, each against a normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_ns, format_percent
from latlab.view.distribution import counts, normal_share, single_pokes, size_name, slower_than
from latlab.view.plot import Drawing, Row
from latlab.view.points import drawable, quantile
from latlab.view.table import Table, table_of
from latlab.view.topic import Chart

if TYPE_CHECKING:
    import altair as alt

    from latlab.view.drawing import AnyChart

Bin = tuple[float, float, int, float]
Bins = list[Bin]
_BINS: Final = 30
#: Where bars on a log axis stand: one poke must still be a bar.
_HALF: Final = 0.5
#: A clock step below this share of the limit makes no comb in so few bins.
_FINEST: Final = 10_000
_COUNT_LABEL: Final = "format(datum.value, ',.0f')"


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


def body_bins(record: Record) -> Bins:
    """`(from, to, pokes, pokes that the normal predicts)` below the limit.

    Bins are whole clock steps wide and centred on them: any other width would show the clock's steps.
    """
    limit = limit_ns(record)
    step = record.resolution_ns or 0.0
    step = step if limit / _FINEST < step < limit else 0.0
    width = step * max(1, round(limit / _BINS / step)) if step else limit / _BINS
    bins = []
    start = -step / 2
    pairs = counts(record)
    while start < limit:
        end = start + width
        bins.append(_bin(record, pairs, start, end))
        start = end
    return bins


def _bin(record: Record, pairs: Sequence[tuple[float, int]], start: float, end: float) -> Bin:
    inside = sum(count for at, count in pairs if start <= at < end)
    share = (normal_share(record, start) or 0.0) - (normal_share(record, end) or 0.0)
    return start, end, inside, record.samples * share


def tail_bins(record: Record) -> Bins:
    """The same above the last bin of the body, six bins a power of ten."""
    start = body_bins(record)[-1][1]
    pairs = [(at, count) for at, count in counts(record) if at >= start]
    if not pairs:
        return []
    bins = []
    while start <= pairs[-1][0]:
        end = start * 10 ** (1 / 6)
        bins.append(_bin(record, pairs, start, end))
        start = end
    return bins


def _picture(record: Record) -> Drawing:
    slow = sum(inside for _, _, inside, _ in tail_bins(record))
    mean, deviation = (format_ns(quantile(record, name)) for name in ("mean", "std"))
    words = (
        f"Two histograms of {format_count(record.samples)} read pokes in an array of {size_name(record)},"
        f" mean {mean}, standard deviation {deviation}, {format_percent(fraction_of_zeros(record))} of them"
        f" zero, each with a normal distribution of the same mean and deviation."
        f" {format_count(slow)} pokes lie in the second panel. The normal distribution would give"
        f" {format_percent(below_zero(record))} of pokes a negative time."
    )
    return Drawing(words, lambda: _drawn(record))


def _drawn(record: Record) -> AnyChart:
    """Body on linear axes, tail on log axes: on the body's axes the tail is invisible."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    limit = format_ns(limit_ns(record), digits=1)
    zeros = f"{format_percent(fraction_of_zeros(record))} zeros"
    body = _panel(_rows(body_bins(record)), log=False, title=f"below {limit}, linear; {zeros}")
    tail = tail_bins(record)
    if not tail:
        return alt.hconcat(body)
    slow = f"{format_count(sum(inside for _, _, inside, _ in tail))} pokes"
    return alt.hconcat(body, _panel(_rows(tail), log=True, title=f"above {limit}, logarithmic; {slow}"))


def _rows(bins: Bins) -> list[Row]:
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


def _panel(rows: list[Row], *, log: bool, title: str) -> alt.LayerChart:
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view.axes import decades, duration_x  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - as above

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


def _table(record: Record) -> Table:
    """Every bin that holds something."""
    return table_of(
        [each for each in [*body_bins(record), *tail_bins(record)] if each[2]],
        ("from", "ns", lambda each: max(each[0], 0.0)),
        ("to", "ns", lambda each: each[1]),
        ("pokes", "count", lambda each: each[2]),
        ("normal distribution", "number", lambda each: round(each[3], 1)),
    )


CHART: Final = Chart(
    id="poke_histogram",
    title="What does the histogram show, and what does it hide?",
    caption="Dashed: what a normal distribution with the same mean and standard deviation predicts. Bins are"
    " whole steps of the clock.",
    probe="memory.poke",
    measured=record_of,
    picture=_picture,
    table=_table,
)
