"""Stacked bars: what the parts of a time add up to."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from latlab.units import format_ns
from latlab.view.axes import DURATION_FROM_ZERO, names_y
from latlab.view.drawing import inline, layered
from latlab.view.plot import Bar, Bars, Row

#: Pixels of the whole, of the names beside it, between two panels, and of a row.
_WIDTH, _NAMES, _SPACING, _ROW = 720, 150, 24, 36
#: A part of a bar bears its name where that fits: width of a letter, and of what stays free beside, pixels.
_LETTER, _BESIDE = 7.5, 8
#: A figure stands to the right of its bar.
_ROOM = 1.55


def drawn(picture: Bars) -> alt.HConcatChart | None:
    """One panel beside the other; none without bars."""
    panels = picture.panels
    if not panels:
        return None
    names = list(dict.fromkeys(bar.row for own in panels.values() for bar in own))
    width = (_WIDTH - _NAMES - _SPACING * (len(panels) - 1)) // len(panels)
    charts = [
        _panel(picture, title, own, names, width, first=number == 0)
        for number, (title, own) in enumerate(panels.items())
    ]
    return alt.hconcat(*charts, spacing=_SPACING)


def _panel(
    picture: Bars, title: str, own: Sequence[Bar], names: list[str], width: int, *, first: bool
) -> alt.LayerChart:
    top = _ROOM * max(sum(bar.parts.values()) for bar in own)
    rows: list[Row] = []
    sums: list[Row] = []
    for bar in own:
        at = 0.0
        for part in picture.parts:
            length = bar.parts.get(part, 0.0)
            if length:
                rows.append(
                    {
                        "row": bar.row,
                        "phase": part,
                        "from": at,
                        "to": at + length,
                        "middle": at + length / 2,
                        "label": part if length / top * width > _LETTER * len(part) + _BESIDE else "",
                        "text": bar.says(part, length),
                    }
                )
            at += length
        sums.append({"row": bar.row, "to": at, "text": format_ns(at)})
    look = {"labels": first, "labelPadding": 6, "labelLimit": 190}
    y = names_y("row", names, look, paddingInner=0.35)
    x = alt.X(
        "from:Q",
        title=picture.x,
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(labelExpr=DURATION_FROM_ZERO, tickCount=3, grid=True),
    )
    color = alt.Color("phase:N", legend=alt.Legend(title=None), scale=alt.Scale(domain=list(picture.parts)))
    bars, ends = alt.Chart(inline(rows)), alt.Chart(inline(sums))
    tip = alt.Tooltip("text:N")
    layers = [
        bars.mark_bar(height=20).encode(x=x, x2=alt.X2("to:Q"), y=y, color=color, tooltip=tip),
        bars.transform_filter("datum.label != ''")
        .mark_text(style="on-level")
        .encode(x=alt.X("middle:Q"), y=y, text=alt.Text("label:N")),
        ends.mark_text(style="name", align="left", dx=5).encode(
            x=alt.X("to:Q"), y=y, text=alt.Text("text:N")
        ),
    ]
    return layered(layers, width=width, height=_ROW * len(names), title=title)
