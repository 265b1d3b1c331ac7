"""A lesson's picture as an Altair chart, in the report's own look."""

from __future__ import annotations

from typing import Any, Final

import altair as alt

from latlab.lessons.figures import Mark, Picture, Unit, written
from latlab.view import table as tables
from latlab.view.axes import (
    DURATION_FROM_ZERO,
    decades,
    duration_x,
    duration_y,
    names_y,
    rate_x,
    rate_y,
    share_y,
    size_axis,
    widened,
)
from latlab.view.curves import dashed_lines, series_encodings
from latlab.view.drawing import inline, layered

_WIDTH, _HEIGHT, _ROW = 620, 320, 20
#: About so many steps of an axis.
_TICKS = 8
#: Points of a line that are drawn large.
_MARKED = 20
_LOGARITHMIC: Final = {"s": (duration_x, duration_y), "bytes_per_s": (rate_x, rate_y)}
_TITLES: dict[Unit, tables.Quantity] = {
    "s": "seconds",
    "bytes_per_s": "bytes_per_s",
    "bytes": "bytes",
    "share": "share",
}


def chart(picture: Picture) -> alt.LayerChart:
    """The picture without colours: a theme's configuration adds them."""
    return {"bars": _bars, "lines": _lines, "spans": _spans}[picture.kind](picture)


def table(picture: Picture) -> tables.Table:
    """The figures behind it."""
    quantity = _TITLES.get(picture.unit, "number")
    first = (
        tables.Column(picture.x_axis, _TITLES.get(picture.x_unit, "number"))
        if picture.kind == "lines"
        else tables.Column("bar")
    )
    names = ("length", "begun", "ended") if picture.kind == "spans" else ("median", "smallest", "largest")
    columns = (first, tables.Column("series"), *(tables.Column(name, quantity) for name in names))
    rows = tuple(
        (mark.x if picture.kind == "lines" else mark.label, mark.series, mark.value, mark.low, mark.high)
        for mark in picture.marks
    )
    return tables.Table(columns, rows)


def _rows(picture: Picture) -> list[dict[str, Any]]:
    scale = 1e9 if picture.unit == "s" else 1.0
    x_scale = 1e9 if picture.x_unit == "s" else 1.0
    series = picture.series

    def row(mark: Mark) -> dict[str, Any]:
        return {
            "label": mark.label,
            "series": mark.series,
            "number": series.index(mark.series),
            "x": (mark.x or 0.0) * x_scale,
            "value": mark.value * scale,
            "low": (mark.value if mark.low is None else mark.low) * scale,
            "high": (mark.value if mark.high is None else mark.high) * scale,
            "figure": written(mark.value, picture.unit),
            "text": f"{mark.label}, {mark.series}: {written(mark.value, picture.unit)}",
        }

    return [row(mark) for mark in picture.marks]


def _bars(picture: Picture) -> alt.LayerChart:
    rows = _rows(picture)
    if picture.log:
        low, high = widened((row[key] for row in rows for key in ("low", "high")), down=3, up=6)
        if picture.unit == "count":
            low = min(low, 0.5)  # A bar of one is seen, and one of none is not.
    else:
        low, high = 0.0, 1.25 * max(row["high"] for row in rows)
    for row in rows:
        row["floor"] = low
    labels = list(dict.fromkeys(row["label"] for row in rows))
    names, color = _names(labels), _color(picture)
    several = len(picture.series) > 1
    # Bars that share a name lie beside each other; where each has a name of its own, they have the whole row.
    beside: dict[str, Any] = (
        {"yOffset": alt.YOffset("series:N", sort=None, scale=alt.Scale(domain=list(picture.series)))}
        if several and len(labels) < len(rows)
        else {}
    )
    base, tip = alt.Chart(), alt.Tooltip("text:N")
    layers = [
        base.mark_bar().encode(
            x=_along(picture, "floor", low, high),
            x2=alt.X2("value:Q"),
            y=names,
            color=color,
            tooltip=tip,
            **beside,
        ),
        base.transform_filter("datum.low < datum.high")
        .mark_rule(style="whisker")
        .encode(x=_along(picture, "low", low, high), x2=alt.X2("high:Q"), y=names, **beside),
        base.mark_text(style="name", align="left", dx=5).encode(
            x=_along(picture, "high", low, high), y=names, text=alt.Text("figure:N"), **beside
        ),
    ]
    bars = len(labels) * len(picture.series) if beside else len(labels)
    return layered(layers, data=inline(rows), width=_WIDTH, height=max(_ROW * bars, 60))


def _spans(picture: Picture) -> alt.LayerChart:
    """Bars that begin where something began: which was done first is seen by their ends."""
    rows = _rows(picture)
    high = 1.12 * max(row["high"] for row in rows)
    names = _names(list(dict.fromkeys(row["label"] for row in rows)))
    base = alt.Chart()
    layers = [
        base.mark_bar().encode(
            x=_along(picture, "low", 0.0, high),
            x2=alt.X2("high:Q"),
            y=names,
            color=_color(picture),
            tooltip=alt.Tooltip("text:N"),
        ),
        base.mark_text(style="name", align="left", dx=5).encode(
            x=_along(picture, "high", 0.0, high), y=names, text=alt.Text("figure:N")
        ),
    ]
    return layered(layers, data=inline(rows), width=_WIDTH, height=max(_ROW * len(rows), 60))


def _names(labels: list[str]) -> alt.Y:
    return names_y("label", labels, {"labelLimit": 300, "labelPadding": 6}, paddingInner=0.3)


def _color(picture: Picture) -> alt.Color:
    legend = alt.Legend(title=None) if len(picture.series) > 1 else None
    return alt.Color("series:N", legend=legend, scale=alt.Scale(domain=list(picture.series)))


def _along(picture: Picture, field: str, low: float, high: float) -> alt.X:
    title = f"{picture.axis}{', logarithmic' if picture.log else ''}"
    if picture.log and picture.unit in _LOGARITHMIC:
        return _LOGARITHMIC[picture.unit][0](field, title, low, high)
    kind: dict[str, Any] = {"type": "log"} if picture.log else {}
    scale = alt.Scale(domain=[low, high], nice=False, clamp=True, **kind)
    tens = decades(low, high) if picture.log else []
    ticks: dict[str, Any] = {"values": tens} if len(tens) > 1 else {"tickCount": _TICKS}
    axis = alt.Axis(**_labels(picture.unit), **ticks, grid=True, labelOverlap=True)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def _labels(unit: Unit) -> dict[str, Any]:
    if unit == "s":
        return {"labelExpr": DURATION_FROM_ZERO}
    if unit == "share":
        # There is room for figures beyond all of it, and no more than all.
        return {"labelExpr": "datum.value > 1 ? '' : format(datum.value, '~%')"}
    if unit == "bytes":
        return {"labelExpr": "format(datum.value, '~s') + 'B'"}
    if unit == "ratio":
        return {"labelExpr": "format(datum.value, '~r') + 'x'"}
    # Each label by itself: an axis-wide format makes 0 a "0k". No half workers.
    least = {"tickMinStep": 1} if unit == "count" else {}
    return {"labelExpr": "format(datum.value, '~s')", **least}


def _lines(picture: Picture) -> alt.LayerChart:
    rows = _rows(picture)
    left, right = widened((row["x"] for row in rows), down=1.3, up=1.3)
    bottom, top = widened(row[key] for row in rows for key in ("low", "high"))
    tens = decades(left, right) if picture.x_log else []
    if picture.x_unit == "bytes" and picture.x_log and not {row["x"] for row in rows} <= set(tens):
        x = size_axis("x", picture.x_axis, left, right)
    elif picture.x_unit == "s" and picture.x_log:
        x = duration_x("x", picture.x_axis, left, right)
    else:
        kind: dict[str, Any] = (
            {"type": "log", "domain": [left, right], "nice": False} if picture.x_log else {}
        )
        ticks: dict[str, Any] = {"values": tens} if picture.x_log else {}
        axis = alt.Axis(**_labels(picture.x_unit), **ticks)
        x = alt.X("x:Q", title=picture.x_axis, scale=alt.Scale(**kind), axis=axis)
    y = _up(picture, "value", bottom, top)
    lower = _up(picture, "low", bottom, top)
    color, shape = series_encodings(picture.series)
    base = alt.Chart()
    few = len(rows) <= _MARKED * len(picture.series)
    layers = [
        base.mark_area(opacity=0.18).encode(x=x, y=lower, y2=alt.Y2("high:Q"), color=color),
        *(
            (
                line.mark_line(interpolate="step-after", strokeDash=[6, 3])
                if name in picture.stepped
                else line
            ).encode(x=x, y=y, color=color)
            for name, line in zip(picture.series, dashed_lines(len(picture.series)), strict=True)
        ),
        base.mark_point(size=34 if few else 12, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")
        ),
    ]
    return layered(layers, data=inline(rows), width=_WIDTH, height=_HEIGHT)


def _up(picture: Picture, field: str, low: float, high: float) -> alt.Y:
    if picture.log and picture.unit in _LOGARITHMIC:
        return _LOGARITHMIC[picture.unit][1](field, f"{picture.axis}, logarithmic", low, high)
    if picture.log and picture.unit == "share":
        return share_y(field, f"{picture.axis}, logarithmic", low)
    kind: dict[str, Any] = {"type": "log", "domain": [low, high], "nice": False} if picture.log else {}
    return alt.Y(
        f"{field}:Q", title=picture.axis, scale=alt.Scale(**kind), axis=alt.Axis(**_labels(picture.unit))
    )
