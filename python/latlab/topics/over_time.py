"""When the slow operations were: each one at its time, beside the medians of the blocks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from latlab.run.disturbances import UNEXPLAINED, cause_name
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import slow_operations
from latlab.topics.tail_causes import OTHERS
from latlab.units import format_count, format_ns
from latlab.view.figure import Absent
from latlab.view.plot import Drawing, Row
from latlab.view.points import began_at, drawable
from latlab.view.table import table_of
from latlab.view.topic import Chart

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

#: Slow operations that are drawn: the slowest. More would be a band of ink.
_MOST = 150
#: Causes with a colour and a shape of their own; what nothing explains always has them.
_NAMED = 4
_WIDTH, _HEIGHT = 680, 280


def record_of(run: Run) -> Record | Absent:
    """The record of the other charts, if times were kept; else the one with most of them."""
    first, records = slow_operations.record_of(run), slow_operations.long_ones(run)
    kept = [record for record in records if slow(record)]
    if first is not None and any(record is first for record in kept):
        return first
    if kept:
        return max(kept, key=lambda record: len(record.tail))
    return Absent(
        "no operation was slow enough for its time to be kept" if records else slow_operations.why_absent(run)
    )


def slow(record: Record) -> list[tuple[float, float, str]]:
    """Seconds since the record's first block, ns, cause; the slowest, in order of time."""
    start = began_at(record)
    slowest = sorted(record.tail, key=lambda sample: -sample.value)[:_MOST]
    return sorted(
        ((s.at_ns - start) / 1e9, s.value, _cause(record, s.cause)) for s in slowest if drawable(s.value)
    )


def _cause(record: Record, cause: str | None) -> str:
    """Empty where no cause was looked for."""
    if cause is None:
        return UNEXPLAINED if record.tail_causes is not None else ""
    return cause_name(cause)


def _named(dots: list[tuple[float, float, str]]) -> list[str]:
    """Names of the legend; none where no cause was looked for."""
    counts = Counter(cause for *_, cause in dots if cause)
    unexplained = counts.pop(UNEXPLAINED, 0)
    names = [name for name, _ in counts.most_common()]
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], OTHERS]
    return [*names, *((UNEXPLAINED,) if unexplained else ())]


def blocks(record: Record) -> list[tuple[float, float, float]]:
    """Begin and end in seconds, median."""
    start = began_at(record)
    return sorted(
        ((block.at_ns - start) / 1e9, (block.at_ns + block.duration_ns - start) / 1e9, block.p50)
        for block in record.blocks
        if drawable(block.p50)
    )


def _picture(record: Record) -> Drawing:
    dots, bars = slow(record), blocks(record)
    kept = len(record.tail) + record.tail_dropped
    values = [value for _, value, _ in dots]
    words = (
        f"The {format_count(len(dots))} slowest of {format_count(kept)} {slow_operations.name_of(record)}"
        f" that took over {format_ns(record.tail_threshold)}, each at its time, from {format_ns(min(values))}"
        f" to {format_ns(max(values))}, beside the medians of {len(bars)} blocks{_in_words(dots)}."
    )
    return Drawing(words, lambda: _drawn(record))


def _in_words(dots: list[tuple[float, float, str]]) -> str:
    counts = Counter(cause for *_, cause in dots if cause)
    parts = [f"{format_count(count)} {name}" for name, count in counts.most_common()]
    return f"; causes: {', '.join(parts)}" if parts else ""


def _drawn(record: Record) -> AnyChart:
    """Dots are single operations; grey are the blocks, each with a bar at its median."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes, curves, drawing  # noqa: PLC0415 - as above

    dots, bars = slow(record), blocks(record)
    names = _named(dots)
    values = [value for _, value, _ in dots] + [median for *_, median in bars]
    low, high = axes.widened(values, down=1.6, up=1.6)
    last = max([at for at, *_ in dots] + [end for _, end, _ in bars])
    x = alt.X(
        "x:Q",
        title="seconds since the first of them",
        scale=alt.Scale(domain=[-0.01 * last, last * 1.01], nice=False),
        axis=alt.Axis(grid=False, tickCount=8),
    )
    y = axes.duration_y("y", "one operation", low, high)
    rows: list[Row] = [
        {"x": at, "y": value, "series": cause if cause in names else OTHERS,
         "text": f"{at:.3f} s: {format_ns(value)}{f', {cause}' if cause else ''}"}
        for at, value, cause in dots
    ]  # fmt: skip
    # A block of a millisecond in a run of a minute would be no bar at all.
    least = last / 250
    spans = [
        {"x": begin, "to": max(end, begin + least), "y": median, "bottom": low, "top": high,
         "text": f"{begin:.3f} s: a block, median {format_ns(median)}"}
        for begin, end, median in bars
    ]  # fmt: skip
    layers = []
    if spans:
        base = alt.Chart(drawing.inline(spans))
        ground = y.copy()
        ground["shorthand"] = "bottom:Q"
        layers += [
            base.mark_rect(style="span").encode(x=x, x2=alt.X2("to:Q"), y=ground, y2=alt.Y2("top:Q")),
            base.mark_rule(style="whisker", strokeWidth=3).encode(
                x=x, x2=alt.X2("to:Q"), y=y, tooltip=alt.Tooltip("text:N")
            ),
        ]
    points = alt.Chart(drawing.inline(rows))
    if names:
        color, shape = curves.series_encodings(names)
        drawn = points.mark_point(filled=True, size=34, opacity=0.85).encode(color=color, shape=shape)
    else:
        drawn = points.mark_point(style="level", filled=True, size=30)
    layers.append(drawn.encode(x=x, y=y, tooltip=alt.Tooltip("text:N")))
    return drawing.layered(layers, width=_WIDTH, height=_HEIGHT)


CHART: Final = Chart(
    id="over_time",
    title="When did the slow operations occur?",
    caption="Dots: single operations above the threshold at which times are kept. Grey: blocks, with "
    "a short mark at their median; other points were measured between them.",
    probe="",
    measured=record_of,
    picture=_picture,
    table=lambda record: table_of(
        slow(record),
        ("at", "seconds", lambda dot: round(dot[0], 6)),
        ("took", "ns", lambda dot: dot[1]),
        ("cause", "text", lambda dot: dot[2]),
    ),
)
