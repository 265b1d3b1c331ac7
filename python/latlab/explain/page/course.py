"""The ledger over time: how each part of the run was spent."""

from __future__ import annotations

from typing import Any, Final

import altair as alt

from latlab.explain.answer import percent
from latlab.explain.model import Explained
from latlab.explain.page.series import OTHERS, Series, time_axis
from latlab.units import format_ns
from latlab.view.drawing import inline, layered
from latlab.view.table import Column, Table

TITLE: Final = "How was the time spent over the run?"
_WIDTH, _HEIGHT = 720, 220
_MOST: Final = 256
"""Bins that a screen can show."""


def _bins(explained: Explained) -> tuple[float, list[tuple[float, ...]]]:
    timeline = explained.timeline
    bins, width = list(timeline.bins), timeline.bin_s
    while len(bins) > _MOST:
        pairs = [bins[at : at + 2] for at in range(0, len(bins), 2)]
        bins = [tuple(map(sum, zip(*pair, strict=True))) for pair in pairs]
        width *= 2
    return width, bins


def chart(explained: Explained, series: Series) -> alt.LayerChart | None:
    """Areas on top of each other; every moment is whole."""
    timeline = explained.timeline
    width, bins = _bins(explained)
    end_s = timeline.end_s
    if not bins or end_s <= 0:
        return None
    order = [*series.names, OTHERS]
    rows: list[dict[str, Any]] = []
    used = {series.of(name) for name in timeline.names}
    for name in order:
        if name not in used:
            continue
        columns = [at for at, category in enumerate(timeline.names) if series.of(category) == name]
        lower = order[: order.index(name)]
        below = [at for at, category in enumerate(timeline.names) if series.of(category) in lower]
        last = (0.0, 0.0)
        for number, one in enumerate(bins):
            whole = sum(one) or 1.0
            low = sum(one[at] for at in below) / whole
            last = (low, low + sum(one[at] for at in columns) / whole)
            rows.append(_row(name, number * width, last, width))
        rows.append(_row(name, end_s, last, width))
    y = alt.Y(
        "low:Q",
        title="share of the moment",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", tickCount=5),
    )
    area = alt.Chart().mark_area(interpolate="step-after", opacity=1, line=False)
    encoded = area.encode(
        x=time_axis(end_s), y=y, y2=alt.Y2("high:Q"), color=series.color(used), tooltip=alt.Tooltip("text:N")
    )
    return layered([encoded], data=inline(rows), width=_WIDTH, height=_HEIGHT)


def _row(name: str, at_s: float, ends: tuple[float, float], width: float) -> dict[str, Any]:
    text = (
        f"{name}: {percent(ends[1] - ends[0])} of the {format_ns(1e9 * width)} from {format_ns(1e9 * at_s)}"
    )
    return {"series": name, "x": 1e9 * at_s, "low": ends[0], "high": ends[1], "text": text}


def caption(explained: Explained) -> str:
    """How to read it."""
    runs = " This is the first of the runs." if explained.runs > 1 else ""
    return (
        f"Bins of {format_ns(1e9 * _bins(explained)[0])}. Within a bin, samples and scans divide the "
        f"time; over all bins, each category sums to its share of wall time.{runs}"
    )


def alt_text(explained: Explained) -> str:
    """What the picture shows, for a screen reader."""
    timeline = explained.timeline
    thirds = [
        timeline.bins[at * len(timeline.bins) // 3 : (at + 1) * len(timeline.bins) // 3] for at in range(3)
    ]
    parts = []
    for name, third in zip(("first", "second", "last"), thirds, strict=True):
        sums = [sum(one[at] for one in third) for at in range(len(timeline.names))]
        if sum(sums) > 0:
            most = max(range(len(sums)), key=sums.__getitem__)
            parts.append(f"{name} third mostly {timeline.names[most]} ({percent(sums[most] / sum(sums))})")
    return f"Areas over time, by category: {'; '.join(parts)}."


def table(explained: Explained) -> Table:
    """A row a bin."""
    timeline = explained.timeline
    width, bins = _bins(explained)
    columns = (Column("from", "seconds"), *(Column(name, "seconds") for name in timeline.names))
    return Table(columns, tuple((number * width, *one) for number, one in enumerate(bins)))
