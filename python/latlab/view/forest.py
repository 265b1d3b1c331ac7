"""Ratios of two sides with their intervals, a row a figure: what changed, what is the same, what is unknown.

Marks have the verdict as their shape and no colour: colours are of the sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from latlab.view.axes import names_y
from latlab.view.drawing import inline, layered

_ROW_PIXELS: Final = 24
#: The axis holds at least a change by half, and at most so many times: what is wider goes on beyond it.
_LEAST: Final = 1.5
_MOST: Final = 16.0
#: Shapes of the verdicts.
_SHAPES: Final = {"changed": "diamond", "the same": "circle", "cannot tell": "triangle-right"}
_TICKS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1 / 1.5, 1 / 1.2, 1, 1.2, 1.5, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Row:
    """A figure.

    Attributes:
        name: What stands to the left of it; no two rows have the same.
        ratio: The second side over the first; None where there is none.
        low: Lower end of its interval.
        high: Upper end.
        verdict: One of three words; of a row without a ratio why in a few, which stands in its place.
        words: All of it, for who points at it.
    """

    name: str
    ratio: float | None
    low: float
    high: float
    verdict: str
    words: str


def drawn(rows: Sequence[Row], same: float, title: str) -> alt.LayerChart:
    """The rows from top to bottom on a logarithmic axis, what counts as the same shaded.

    Args:
        rows: At least one.
        same: Changes up to this share count as none.
        title: Of the axis.
    """
    judged = [each for each in rows if each.ratio]
    reach = max((abs(math.log(each.ratio or 1.0)) for each in judged), default=0.0)
    sure = (each for each in judged if each.verdict != "cannot tell")
    ends = max((max(-math.log(each.low), math.log(each.high)) for each in sure), default=0.0)
    most = min(max(math.exp(max(reach, ends)) * 1.1, _LEAST, 1 + 2 * same), _MOST)
    ticks = [tick for tick in _TICKS if 1 / most <= tick <= most]
    scale = alt.Scale(type="log", domain=[1 / most, most], nice=False)

    def across(field: str) -> alt.X:
        axis = alt.Axis(values=ticks, format=".2~f", grid=True)
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

    y = names_y("name", [each.name for each in rows], {"labelPadding": 8})
    values: list[dict[str, Any]] = [
        {
            "name": each.name,
            "ratio": min(max(each.ratio, 1 / most), most),
            "low": max(each.low, 1 / most),
            "high": min(each.high, most),
            "verdict": each.verdict,
            "text": each.words,
        }
        for each in rows
        if each.ratio is not None
    ]
    without = [{"name": each.name, "text": each.verdict} for each in rows if each.ratio is None]
    band = alt.Chart(inline([{"from": 1 / (1 + same), "to": 1 + same}]))
    marks = alt.Chart(inline(values))
    shape = alt.Shape(
        "verdict:N",
        legend=alt.Legend(title=None, symbolStrokeWidth=1.8),
        scale=alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values())),
    )
    layers = [
        band.mark_rect(style="span").encode(x=across("from"), x2=alt.X2("to:Q")),
        alt.Chart(inline([{"from": 1}])).mark_rule(style="reported").encode(x=across("from")),
        marks.mark_rule(style="whisker").encode(x=across("low"), x2=alt.X2("high:Q"), y=y),
        marks.mark_point(size=80, filled=True, opacity=1, style="outlined").encode(
            x=across("ratio"), y=y, shape=shape, tooltip=alt.Tooltip("text:N")
        ),
        alt.Chart(inline(without))
        .mark_text(style="note", align="left", dx=4)
        .encode(x=alt.value(0), y=y, text=alt.Text("text:N")),
    ]
    return layered(layers, width=560, height=_ROW_PIXELS * len(rows) + 8)
