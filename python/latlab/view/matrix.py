"""Pairs as a map: the stronger the colour, the more; nothing where a pair was not measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from latlab.view.drawing import inline, layered

#: Up to so many rows there is room for figures in the cells.
MOST_FIGURES: Final = 12


def panel(
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    shade: alt.FillOpacity | alt.Opacity,
    *,
    title: str,
    ends: tuple[str, str],
    tips: Mapping[str, str],
    side: int,
    angle: int = 0,
    mirrored: bool = True,
    borders: Sequence[str] = (),
) -> alt.LayerChart:
    """A map.

    Args:
        rows: The pairs: `a`, `b`, what `shade` reads, a short `figure`; `doubt`, 1 for a cross, if at all.
        names: All rows and columns, in order.
        shade: What decides the colour.
        title: Above it.
        ends: What `a` and `b` are.
        tips: Fields that are shown on hover, and their titles.
        side: Pixels.
        angle: Of the names below it, in degrees.
        mirrored: Whether a pair is the same in both directions; otherwise `a` is the row.
        borders: Names before which there is a line.
    """
    tooltips = [alt.Tooltip(f"{field}:N", title=text) for field, text in tips.items()]
    cell = side / len(names)
    few = len(names) <= MOST_FIGURES
    scale = alt.Scale(domain=list(names), paddingInner=0.04)
    axis = alt.Axis(labelAngle=angle, labelOverlap=True, grid=False, ticks=False, domain=False)
    upright = alt.Axis(labelAngle=0, labelOverlap=True, grid=False, ticks=False, domain=False)
    layers: list[alt.Chart] = []
    for across, down in (("a", "b"), ("b", "a")) if mirrored else (("b", "a"),):
        x = alt.X(f"{across}:N", title=ends[across == "b"], sort=None, scale=scale, axis=axis)
        y = alt.Y(f"{down}:N", title=ends[down == "b"], sort=None, scale=scale, axis=upright)
        base = alt.Chart()
        layers.append(base.mark_rect(style="level").encode(x, y, shade, tooltip=tooltips))
        if few:
            layers.append(base.mark_text(style="name").encode(x=x, y=y, text=alt.Text("figure:N")))
        if borders:
            lines = alt.Chart(inline([{"a": name, "b": name} for name in borders]))
            rule = lines.mark_rule(style="whisker", strokeWidth=0.5)
            layers += [
                rule.encode(alt.X(f"{across}:N", bandPosition=0, scale=scale, sort=None)),
                rule.encode(alt.Y(f"{down}:N", bandPosition=0, scale=scale, sort=None)),
            ]
        if "doubt" not in rows[0]:
            continue
        # In the corner where a figure stands in the middle.
        aside = 0.32 * cell if few else 0.0
        crosses = base.transform_filter("datum.doubt == 1").mark_point(
            shape="cross",
            size=min(cell**2 * 0.4, 120),
            angle=45,
            style="crossed",
            xOffset=aside,
            yOffset=-aside,
        )
        layers.append(crosses.encode(x=x, y=y))
    return layered(layers, data=inline([dict(row) for row in rows]), width=side, height=side, title=title)
