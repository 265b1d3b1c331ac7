"""When the slow operations were: each one at its time, beside the medians of the blocks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import altair as alt

from latlab.charts import tail_data
from latlab.charts.tail_causes import OTHERS
from latlab.run.disturbances import UNEXPLAINED, cause_name
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_ns
from latlab.view.axes import duration_y, widened
from latlab.view.curves import series_encodings
from latlab.view.drawing import inline, layered
from latlab.view.points import began_at, drawable
from latlab.view.table import Column, Table

ID = "over_time"
TITLE = "When were the slow ones?"
#: Slow operations that are drawn: the slowest. More would be a band of ink.
_MOST = 150
#: Causes with a colour and a shape of their own; what nothing explains always has them.
_NAMED = 4
_WIDTH, _HEIGHT = 680, 280


def record_of(run: Run) -> Record | None:
    """The record of the other charts, if times were kept; else the one with most of them."""
    first = tail_data.record_of(run)
    if first is not None and first.tail:
        return first
    return max(
        (record for record in tail_data.long_ones(run) if record.tail),
        key=lambda record: len(record.tail),
        default=None,
    )


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    if record_of(run) is not None:
        return None
    return (
        "no operation was slow enough to keep its time"
        if tail_data.long_ones(run)
        else tail_data.why_absent(run)
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


def chart(run: Run) -> alt.LayerChart | None:
    """Dots are single operations; grey are the blocks, each with a bar at its median."""
    record = record_of(run)
    if record is None:
        return None
    dots, bars = slow(record), blocks(record)
    names = _named(dots)
    values = [value for _, value, _ in dots] + [median for *_, median in bars]
    low, high = widened(values, down=1.6, up=1.6)
    last = max([at for at, *_ in dots] + [end for _, end, _ in bars])
    x = alt.X(
        "x:Q",
        title="seconds since the first of them",
        scale=alt.Scale(domain=[-0.01 * last, last * 1.01], nice=False),
        axis=alt.Axis(grid=False, tickCount=8),
    )
    y = duration_y("y", "one operation", low, high)
    rows: list[dict[str, Any]] = [
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
        base = alt.Chart(inline(spans))
        ground = y.copy()
        ground["shorthand"] = "bottom:Q"
        layers += [
            base.mark_rect(style="span").encode(x=x, x2=alt.X2("to:Q"), y=ground, y2=alt.Y2("top:Q")),
            base.mark_rule(style="whisker", strokeWidth=3).encode(
                x=x, x2=alt.X2("to:Q"), y=y, tooltip=alt.Tooltip("text:N")
            ),
        ]
    points = alt.Chart(inline(rows))
    if names:
        color, shape = series_encodings(names)
        drawn = points.mark_point(filled=True, size=34, opacity=0.85).encode(color=color, shape=shape)
    else:
        drawn = points.mark_point(style="level", filled=True, size=30)
    layers.append(drawn.encode(x=x, y=y, tooltip=alt.Tooltip("text:N")))
    return layered(layers, width=_WIDTH, height=_HEIGHT)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    record = record_of(run)
    if record is None:
        return "No slow operations with their times."
    dots, bars = slow(record), blocks(record)
    kept = len(record.tail) + record.tail_dropped
    values = [value for _, value, _ in dots]
    return (
        f"The {format_count(len(dots))} slowest of {format_count(kept)} {tail_data.name_of(record)} that"
        f" took over {format_ns(record.tail_threshold)}, each at its time, from {format_ns(min(values))} to"
        f" {format_ns(max(values))}, beside the medians of {len(bars)} blocks{_in_words(dots)}."
    )


def _in_words(dots: list[tuple[float, float, str]]) -> str:
    counts = Counter(cause for *_, cause in dots if cause)
    parts = [f"{format_count(count)} {name}" for name, count in counts.most_common()]
    return f"; causes: {', '.join(parts)}" if parts else ""


def table(run: Run) -> Table:
    """Every dot."""
    columns = (Column("at", "seconds"), Column("took", "ns"), Column("cause"))
    record = record_of(run)
    rows = () if record is None else tuple((round(at, 6), value, cause) for at, value, cause in slow(record))
    return Table(columns, rows)
