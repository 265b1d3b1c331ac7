"""Wall time as one bar."""

from __future__ import annotations

from typing import Any, Final

import altair as alt

from latlab.explain.answer import interval, percent
from latlab.explain.model import Explained
from latlab.explain.page.series import OTHERS, Series
from latlab.units import format_ns
from latlab.view.drawing import inline, layered
from latlab.view.table import Table, table_of

TITLE: Final = "Wall time, all of it"
CAPTION: Final = (
    "Each instant counts once: what the running threads did, else waiting for a CPU, else what all "
    "threads waited for."
)
_WIDTH, _HEIGHT = 760, 46
#: Characters of a label per share of the bar's width.
_CHARACTERS: Final = 105


def chart(explained: Explained, series: Series) -> alt.LayerChart:
    """The parts in order of size, labelled where there is room."""
    rows: list[dict[str, Any]] = []
    at = 0.0
    for row in explained.categories:
        if row.share <= 0:
            continue
        label = f"{row.name} {percent(row.share)}"
        rows.append(
            {
                "x": at,
                "x2": at + row.share,
                "middle": at + row.share / 2,
                "series": series.of(row.name),
                "label": label if len(label) <= _CHARACTERS * row.share else "",
                "text": f"{row.name}: {percent(row.share)}, {percent(row.low)} to {percent(row.high)}",
            }
        )
        at += row.share
    base, tip = alt.Chart(), alt.Tooltip("text:N")
    axis = alt.Axis(format="%", tickCount=10, grid=False)
    x = alt.X("x:Q", title="share of wall time", scale=alt.Scale(domain=[0, 1]), axis=axis)
    middle: dict[str, Any] = {"x": alt.X("middle:Q"), "text": "label:N"}
    layers = [
        base.mark_bar(height=_HEIGHT - 10, style="box").encode(
            x=x, x2=alt.X2("x2:Q"), color=series.color({row["series"] for row in rows}), tooltip=tip
        ),
        # A label ends where its part does, however narrow the page.
        base.transform_filter("datum.label != ''")
        .mark_text(style="on-level", limit=alt.expr("width * (datum.x2 - datum.x)"))
        .encode(**middle),
    ]
    return layered(layers, data=inline(rows), width=_WIDTH, height=_HEIGHT)


def alt_text(explained: Explained) -> str:
    """What the picture shows, for a screen reader."""
    parts = [
        f"{row.name} {percent(row.share)} ({interval(row.low, row.high)})"
        for row in explained.categories
        if row.share >= 0.01  # noqa: PLR2004 - what can be seen
    ]
    return f"A bar of wall time, divided: {', '.join(parts)}."


def table(explained: Explained) -> Table:
    """A row a category."""
    return table_of(
        explained.categories,
        ("category", "text", lambda row: row.name),
        ("share", "share", lambda row: row.share),
        ("95 % from", "share", lambda row: row.low),
        ("95 % to", "share", lambda row: row.high),
        ("time", "seconds", lambda row: row.seconds),
    )


def others(explained: Explained, series: Series) -> str:
    """What one colour stands for together; empty where each has its own."""
    names = [row.name for row in explained.categories if series.of(row.name) == OTHERS and row.share > 0]
    if len(names) < 2:  # noqa: PLR2004 - one is labelled
        return ""
    share = sum(row.share for row in explained.categories if row.name in names)
    took = format_ns(1e9 * share * explained.wall_s)
    return f" {OTHERS.capitalize()} ({percent(share)}, {took}): {', '.join(names)}."
