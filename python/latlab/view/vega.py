"""Plots as Vega-Lite: for HTML, notebooks and pictures."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from latlab.view import curves
from latlab.view.axes import linear_duration_y, linear_rate_x
from latlab.view.drawing import inline, layered
from latlab.view.plot import At, Plot, Ring, Rule

#: Room beyond the last mark.
_RIGHT, _TOP = 1.08, 1.1


def drawn(plot: Plot) -> alt.LayerChart:
    """The picture, without colours: a theme's configuration adds them."""
    points = [at for line in plot.lines for at in line.points]
    right, top = _RIGHT * max(at.x.value for at in points), _TOP * _highest(points, plot.clip)
    rows = [
        {
            "series": line.name,
            "number": number,
            "x": at.x.value,
            "value": at.y.value,
            "low": at.y.low,
            "high": at.y.high,
            "p99": at.tail.value if (at.tail.value or 0.0) <= top else None,
            "doubt": int(at.y.disturbed),
            "text": f"{line.name}: {at.says}",
        }
        for number, line in enumerate(plot.lines)
        for at in line.points
    ]
    x = linear_rate_x("x", plot.x, right)
    y, tail = (linear_duration_y(field, plot.y, top) for field in ("value", "p99"))
    layers = curves.layers({line.name: () for line in plot.lines}, x, y, tail=tail)
    for rule in plot.rules:
        layers += _rule(rule, x, y, right)
    inside = [ring for ring in plot.rings if ring.x.value <= right and ring.y.value <= top]
    layers += _rings(inside, x, y) if inside else []
    return layered(layers, data=inline(rows), width=curves.WIDTH, height=curves.HEIGHT)


def _highest(points: Sequence[At], clip: float) -> float:
    """The largest median, range or tail that is drawn."""
    median = max(at.y.value for at in points)
    most = clip * median
    tails = [at.tail.value for at in points if at.tail.value is not None and at.tail.value <= most]
    return max([median, *(min(at.y.high, most) for at in points), *tails])


def _rule(rule: Rule, x: alt.X, y: alt.Y, right: float) -> list[alt.Chart]:
    row = {"x": right, "value": rule.y.value, "name": f"{rule.name}: {rule.y.bare}"}
    base = alt.Chart(inline([row]))
    return [
        base.mark_rule(style="reported").encode(y=y),
        base.mark_text(style="note", align="right", dx=-4, dy=10).encode(x=x, y=y, text=alt.Text("name:N")),
    ]


def _rings(rings: Sequence[Ring], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    rows = [
        {
            "x": ring.x.value,
            "value": ring.y.value,
            "text": f"{ring.name}, {ring.line}: {ring.y.bare} at {ring.x}",
        }
        for ring in rings
    ]
    base = alt.Chart(inline(rows))
    return [
        base.mark_point(shape="circle", size=200, filled=False, style="crossed").encode(
            x=x, y=y, tooltip=alt.Tooltip("text:N")
        ),
        base.transform_window(order="row_number()")
        .transform_filter("datum.order == 1")
        .transform_calculate(name=f"'{rings[0].name}'")
        .mark_text(style="name", dy=21)
        .encode(x=x, y=y, text=alt.Text("name:N")),
    ]
