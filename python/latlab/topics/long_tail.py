"""The long tail: what a normal distribution predicts, the causes of slow ones, whether a power law fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.stats import tails
from latlab.stats.tails import PowerLaw
from latlab.topics import over_time, slow_operations, tail_causes
from latlab.units import format_count, format_factor, format_ns, format_percent
from latlab.view.distribution import normal_share, survival, thinned
from latlab.view.figure import Absent
from latlab.view.plot import Drawing, Row
from latlab.view.points import drawable
from latlab.view.table import Listing, Table, listed, table_of
from latlab.view.topic import Chart, StairsOfSeveral, Topic

if TYPE_CHECKING:
    import altair as alt

    from latlab.view.drawing import AnyChart

#: Records in the table: those with most operations, one of a probe.
_MOST_RECORDS = 10
_SLOWEST: Final = 1e-3
_PERCENTILES: Final = {"p90": "p90", "p99": "p99", "p999": "p99.9", "p9999": "p99.99"}
MEASURED, NORMAL = "measured", "normal with the same mean and deviation"
_STEPS = 110
_NORMAL_STEPS = 48
_TABLE_STEPS = 40
_WIDTH, _HEIGHT = 330, 300


def _picture(record: Record) -> Drawing:
    mean, deviation = (record.summary.mean, record.summary.std) if record.summary else (None, None)
    words = (
        f"Share of {slow_operations.name_of(record)} that take at least a time, once on linear axes and once"
        f" on logarithmic ones, each with a dashed normal curve; mean {format_ns(mean)}, standard"
        f" deviation {format_ns(deviation)}, slowest {format_ns(survival(record)[-1][0])}."
    )
    return Drawing(words, lambda: _drawn(record))


def _drawn(record: Record) -> AnyChart:
    """What the eye sees on linear axes, and what there is on logarithmic ones."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes  # noqa: PLC0415 - as above

    steps = thinned(survival(record), _STEPS)
    left, right = steps[0][0] / 1.5, steps[-1][0] * 1.5
    typical = max(x for x, share in steps if share >= 0.01 or x == steps[0][0]) * 1.3  # noqa: PLR2004 - p99
    lowest = steps[-1][1] / 1.5
    linear = _panel(
        record,
        [step for step in steps if step[0] <= typical],
        [typical * step / _NORMAL_STEPS for step in range(_NORMAL_STEPS + 1)],
        alt.X(
            "x:Q",
            title="takes at least",
            scale=alt.Scale(domain=[0, typical], nice=False, clamp=False),
            axis=alt.Axis(labelExpr=axes.DURATION_FROM_ZERO, tickCount=5, grid=True, labelOverlap=True),
        ),
        alt.Y(
            "share:Q",
            title="share of operations",
            scale=alt.Scale(domain=[0, 1], nice=False),
            axis=alt.Axis(format="%", tickCount=5),
        ),
        "linear: what most operations do",
    )
    logarithmic = _panel(
        record,
        steps,
        slow_operations.steps_between(left, right, _NORMAL_STEPS),
        axes.duration_x("x", "takes at least", left, right),
        axes.share_y("share", "share of operations", lowest),
        "logarithmic: the tail",
        lowest / 2,
    )
    return alt.hconcat(linear, logarithmic, spacing=24)


def _panel(
    record: Record,
    steps: Sequence[tuple[float, float]],
    places: Sequence[float],
    x: alt.X,
    y: alt.Y,
    title: str,
    lowest: float = 0.0,
) -> AnyChart:
    """The measured staircase, and the normal at `places` down to the lowest share."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import drawing  # noqa: PLC0415 - as above
    from latlab.view.theme import DASHES  # noqa: PLC0415 - as above

    curves = {MEASURED: steps, NORMAL: [(at, normal_share(record, at)) for at in places]}
    rows: list[Row] = [
        {"series": name, "x": at, "share": share}
        for name, curve in curves.items()
        for at, share in curve
        if share is not None and share >= lowest
    ]
    colour = alt.Color(
        "series:N",
        legend=alt.Legend(title=None, columns=2, symbolType="stroke", symbolStrokeWidth=3),
        scale=alt.Scale(domain=list(curves)),
    )
    base = alt.Chart().encode(x=x, y=y, color=colour)
    normal = base.transform_filter(f"datum.series == '{NORMAL}'")
    measured = base.transform_filter(f"datum.series == '{MEASURED}'")
    layers = [
        *_marks(record, x),
        normal.mark_line(strokeDash=list(DASHES[1]), strokeWidth=1.6, clip=True),
        measured.mark_line(strokeWidth=2.6, clip=True, interpolate="step-before"),
    ]
    return drawing.layered(layers, data=drawing.inline(rows), width=_WIDTH, height=_HEIGHT, title=title)


def _marks(record: Record, x: alt.X) -> list[alt.Chart]:
    """The mean, and one and six deviations above it, where the axis reaches."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import drawing  # noqa: PLC0415 - as above

    mean, deviation = (record.summary.mean, record.summary.std) if record.summary else (None, None)
    left, right = x["scale"]["domain"]
    places = [("mean", mean)]
    if mean is not None and deviation is not None:
        places += [("+1 dev.", mean + deviation), ("+6 dev.", mean + 6 * deviation)]
    inside = [(name, at) for name, at in places if at is not None and left < at < right]
    layers = []
    for number, (name, at) in enumerate(inside):
        data = alt.Chart(drawing.inline([{"x": at, "text": name}]))
        layers.append(data.mark_rule(style="reported").encode(x=x))
        # Names of lines that may stand side by side: one under the other, the middle one's before its line.
        before = number == 1
        text = data.mark_text(
            style="note", align="right" if before else "left", dx=-3 if before else 3, dy=8 + 13 * number
        )
        layers.append(text.encode(x=x, y=alt.value(0), text=alt.Text("text:N")))
    return layers


def _table(record: Record) -> Table:
    """Points of the staircase, fewer than are drawn, and what the normal puts there."""
    return table_of(
        thinned(survival(record), _TABLE_STEPS),
        ("takes at least", "ns", lambda step: step[0]),
        ("share of operations", "share", lambda step: step[1]),
        ("share by the normal distribution", "share", lambda step: normal_share(record, step[0])),
    )


def verdict(record: Record) -> str:
    """A normal distribution's prediction beyond six deviations, and what was seen."""
    claim = tails.normal_claim(record)
    name = slow_operations.name_of(record)
    if claim is None:
        return f"All {name} took the same time: there is no tail."
    if claim.seen == 0:
        return (
            f"None of {format_count(claim.total)} {name} lies beyond six standard deviations above the mean"
            f" ({format_ns(claim.beyond)}): no long tail here."
        )
    return (
        f"A normal distribution with their mean and deviation predicts 1 in 10⁹ {name} above"
        f" {format_ns(claim.beyond)}; observed: {format_count(claim.seen)} of {format_count(claim.total)} (1"
        f" in {format_count(claim.total / claim.seen)})."
    )


def law(record: Record) -> str:
    """Whether a power law is possible, and what the tail means for averages."""
    found, share = _power_law(record), tails.slowest_share(record, _SLOWEST)
    slowest = (
        f" The slowest 1 in 1,000 take {format_percent(share)} of all time." if share is not None else ""
    )
    if found is None:
        why = "one of p90, p99 and p99.9 has no usable range, or p99.9 is not clearly above p90"
        return f"Whether a power law fits is unknown: {why}.{slowest}"
    quantiles = [(_PERCENTILES[quantile], _quantile(record, quantile)) for quantile in found.quantiles]
    ratios = ", ".join(
        f"{outer} is {format_factor(high / low, 2)} times {inner}"
        for (inner, low), (outer, high) in pairwise(quantiles)
        if drawable(low) and drawable(high)
    )
    if not found.possible:
        return f"No power law fits: its ratio would stay constant, but {ratios}.{slowest}"
    edge = format_factor(tails.HEAVY, 2)
    averages = {
        True: f"Averages settle up to {quantiles[-1][0]}: the last ratio is below {edge}.",
        False: f"Averages depend on the slowest few: the last ratio is above {edge}. Use percentiles.",
        None: "Too few operations are this slow to know whether averages settle. Use percentiles.",
    }[found.settles]
    fits = f"A power law is possible: {ratios}; within their ranges, these ratios can be equal."
    return f"{fits} {averages}{slowest}"


def _power_law(record: Record) -> PowerLaw | None:
    if record.summary is None:
        return None
    return tails.power_law(record.summary.intervals, record.resolution_ns or 0.0)


def _quantile(record: Record, name: str) -> float | None:
    return getattr(record.summary, name, None)


def _listings(run: Run) -> tuple[Listing, ...]:
    shown = slow_operations.record_of(run)
    largest = {} if shown is None else {shown.probe: shown}
    for record in slow_operations.long_ones(run):
        holder = largest.get(record.probe)
        if holder is None or (holder is not shown and record.samples > holder.samples):
            largest[record.probe] = record
    chosen = sorted(largest.values(), key=lambda record: -record.samples)[:_MOST_RECORDS]
    return listed(
        "The tail of each probe's longest record",
        [record for record in run.records if any(record is one for one in chosen)],
        ("operation", "text", slow_operations.name_of),
        ("number", "count", lambda record: record.samples),
        ("p90", "ns", lambda record: _quantile(record, "p90")),
        ("p99", "ns", lambda record: _quantile(record, "p99")),
        ("p99.9", "ns", lambda record: _quantile(record, "p999")),
        (
            "mean + 6 deviations",
            "ns",
            lambda record: claim.beyond if (claim := tails.normal_claim(record)) else None,
        ),
        (
            "seen beyond",
            "count",
            lambda record: claim.seen if (claim := tails.normal_claim(record)) else None,
        ),
        ("power law", "text", _is_possible),
    )


def _is_possible(record: Record) -> str | None:
    found = _power_law(record)
    return None if found is None else "possible" if found.possible else "no"


def prose(run: Run) -> Iterator[str]:
    """One sentence a question."""
    record = slow_operations.record_of(run)
    if record is not None:
        yield verdict(record)
        yield law(record)


def _of_one(run: Run) -> dict[str, Record]:
    """What is laid over that of other runs."""
    record = slow_operations.record_of(run)
    return {} if record is None else {slow_operations.name_of(record): record}


TOPIC: Final = Topic(
    Chart(
        id="long_tail",
        title="How much slower than a normal distribution are the slow operations?",
        caption="The same operations twice. Dashed: a normal distribution with their mean and deviation."
        " Dotted lines: the mean, and one and six standard deviations above it.",
        probe="",
        measured=lambda run: slow_operations.record_of(run) or Absent(slow_operations.why_absent(run)),
        picture=_picture,
        table=_table,
        several=StairsOfSeveral(_of_one, "takes at least this long"),
    ),
    others=(tail_causes.CHART, over_time.CHART),
    title="What does the long tail look like?",
    shown=slow_operations.record_of,
    prose=prose,
    listings=_listings,
)
