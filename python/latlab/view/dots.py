"""One row a thing, a dot at its cost on a log axis, a whisker to its slow end: unlike things side by side."""

from __future__ import annotations

from typing import Final

import altair as alt

from latlab.units import format_ns
from latlab.view.axes import duration_x, names_y, widened
from latlab.view.drawing import inline, layered
from latlab.view.plot import Dots

_ROW_PIXELS: Final = 23
_TAIL: Final = "slow end of single operations (p99; p90 where there are few)"


def drawn(picture: Dots) -> alt.LayerChart | None:
    """The rows from top to bottom; none without dots."""
    rows = picture.drawn
    if not rows:
        return None
    names = [row.name for row in rows]
    ends = [end for row in rows for end in (row.low, row.high, row.tail)]
    # A figure stands to the right of its last mark.
    left, right = widened((end for end in ends if end is not None), down=2.0, up=4.0)
    y = names_y("name", names, {"grid": True, "labelPadding": 8, "labelLimit": 330})
    value, low, label = (duration_x(field, picture.x, left, right) for field in ("value", "low", "right"))
    data = alt.Chart()
    values = [
        {
            "name": row.name,
            "value": row.value,
            "low": row.low,
            "high": row.high,
            "tail": row.tail,
            "right": row.tail or row.high,
            "figure": format_ns(row.value),
            "doubt": int(row.disturbed),
            "text": row.words,
            "tail_text": f"{row.name}: {row.tail_name} {format_ns(row.tail)}",
        }
        for row in rows
    ]
    single = data.transform_filter("isNumber(datum.tail)")
    shapes = alt.Scale(domain=[_TAIL], range=["square"])
    legend = alt.Legend(title=None, symbolStrokeWidth=1.8)
    tails = any(row.tail is not None for row in rows)
    layers = [
        data.mark_rule(style="level", strokeWidth=5, opacity=0.35).encode(x=low, x2=alt.X2("high:Q"), y=y),
        single.mark_rule(style="whisker").encode(x=value, x2=alt.X2("tail:Q"), y=y),
    ]
    if tails:
        at_tail = duration_x("tail", picture.x, left, right)
        layers += [
            single.transform_calculate(mark=f"'{_TAIL}'")
            .mark_point(size=55, filled=True, opacity=1, style="outlined")
            .encode(
                x=at_tail,
                y=y,
                shape=alt.Shape("mark:N", legend=legend, scale=shapes),
                tooltip=alt.Tooltip("tail_text:N"),
            )
        ]
    layers += [
        data.mark_point(shape="circle", size=75, filled=True, opacity=1, style="level").encode(
            x=value, y=y, tooltip=alt.Tooltip("text:N")
        ),
        data.mark_text(style="name", align="left", dx=9).encode(x=label, y=y, text=alt.Text("figure:N")),
        data.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=value, y=y, tooltip=alt.Tooltip("text:N")),
    ]
    return layered(layers, data=inline(values), width=520, height=_ROW_PIXELS * len(rows) + 8)
