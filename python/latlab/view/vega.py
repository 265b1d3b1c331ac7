"""Pictures as Vega-Lite: for HTML, notebooks and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import altair as alt

from latlab.view import axes, bars, curves, dots, stairs
from latlab.view.distribution import steps, thinned
from latlab.view.drawing import AnyChart, inline, layered
from latlab.view.plot import Axis, Bars, Dots, Drawing, Ends, Mark, Picture, Plane, Row, Stairs, Unit
from latlab.view.points import Spot

_DRAWN: Final[dict[Unit, tuple[Callable[..., alt.X], Callable[..., alt.Y]]]] = {
    "bytes_per_s": (axes.rate_x, axes.rate_y),
    "ns": (axes.duration_x, axes.duration_y),
    "per_s": (axes.per_second_x, axes.per_second_y),
}


def drawn(picture: Picture) -> AnyChart | None:
    """The picture, without colours: a theme's configuration adds them. None where it would be empty."""
    if isinstance(picture, Drawing):
        return picture.draw()
    if isinstance(picture, Stairs):
        return _stairs(picture)
    if isinstance(picture, Bars):
        return bars.drawn(picture)
    if isinstance(picture, Dots):
        return dots.drawn(picture)
    if isinstance(picture, Plane):
        return _plane(picture, [picture], first=True)
    panels = [
        _plane(plane, picture.planes, first=all(plane.y != other.y for other in picture.planes[:number]))
        for number, plane in enumerate(picture.planes)
    ]
    whole: alt.HConcatChart = alt.hconcat(*panels, spacing=picture.spacing)
    return whole.resolve_scale(color="independent", shape="independent") if picture.own_colours else whole


def x_axis(axis: Axis, values: Iterable[float]) -> alt.X:
    """An axis across that holds these values."""
    places = [*values, *axis.ticks]
    left, right = _ends_of(axis, places)
    if axis.unit == "count":
        drawn = axes.count_axis("x", axis.title, list(axis.ticks) or sorted({round(at) for at in places}))
        drawn["scale"]["domain"] = [left, right]
        return drawn
    if axis.unit == "bytes":
        return axes.size_axis("x", axis.title, left, right)
    if axis.zero:
        return axes.linear_rate_x("x", axis.title, right)
    return _DRAWN[axis.unit][0]("x", axis.title, left, right)


def y_axis(axis: Axis, field: str, bottom: float, top: float, *, titled: bool = True) -> alt.Y:
    """An axis upwards between these ends."""
    title = axis.title if titled else ""
    if axis.zero:
        linear = axes.linear_duration_y if axis.unit == "ns" else axes.linear_rate_y
        return linear(field, title, top)
    return _DRAWN[axis.unit][1](field, title, bottom, top)


def _ends_of(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    if axis.zero:
        return 0.0, axis.up * max(values)
    if axis.unit == "count":
        return min(values) / axis.down, max(values) * axis.up
    low, high = axes.widened(values, down=axis.down, up=axis.up)
    return low, high * axis.names


def _plane(plane: Plane, planes: Sequence[Plane], *, first: bool) -> alt.LayerChart:
    places = [spot.x for other in planes if other.x == plane.x for spot in other.spots()]
    heights = _heights([spot for other in planes if other.y == plane.y for spot in other.spots()], plane)
    ends = Ends(*_ends_of(plane.x, [*places, *plane.x.ticks]), *_ends_of(plane.y, heights))
    x = x_axis(plane.x, places)
    y, tail = (
        y_axis(plane.y, field, ends.bottom, ends.top, titled=first) for field in ("value", "p99")
    )  # fmt: skip
    names = list(plane.names or plane.lines)
    color, shape = curves.series_encodings(names, plane.columns)
    on: dict[str, Any] = {"x": {"x": x}, "y": {"value": y}, "color": color, "shape": shape}
    marks = [mark for mark in plane.marks(ends) if mark.rows]
    under, over = ([_mark(mark, on) for mark in marks if mark.under is below] for below in (True, False))
    if plane.slow is not None:
        layers, rows = _two_quantiles(plane, names, x, y, tail)
    else:
        layers = curves.layers(
            dict.fromkeys(names, ()), x, y, columns=plane.columns, tail=tail if plane.tails else None
        )
        rows = _rows(plane, ends.top)
    return layered(
        [*under, *layers, *over],
        data=inline(rows),
        width=plane.width,
        height=plane.height,
        title=plane.title,
    )


def _heights(spots: Sequence[Spot], plane: Plane) -> list[float]:
    """What the axis upwards has to hold: medians, and ranges and tails as far as they are drawn."""
    if plane.slow is not None:
        return [spot.value for spot in spots]
    if not plane.y.zero:
        return [end for spot in spots for end in (spot.low, spot.high)]
    most = plane.y.clip * max(spot.value for spot in spots)
    tails = [spot.tail for spot in spots if spot.tail is not None and spot.tail <= most]
    return [*(spot.value for spot in spots), *(min(spot.high, most) for spot in spots), *tails]


def _rows(plane: Plane, top: float) -> list[Row]:
    return [
        {
            "series": name,
            "number": number,
            "x": spot.x,
            "value": spot.value,
            "low": spot.low,
            "high": spot.high,
            **({"p99": spot.tail if (spot.tail or 0.0) <= top else None} if plane.tails else {}),
            "doubt": int(spot.disturbed),
            "text": spot.says or f"{name}, {plane.says(spot)}",
        }
        for number, (name, curve) in enumerate(plane.lines.items())
        for spot in curve
    ]


def _two_quantiles(
    plane: Plane, names: list[str], x: alt.X, y: alt.Y, at_p99: alt.Y
) -> tuple[list[alt.Chart], list[Row]]:
    """The median filled, the slower quantile thin and hollow; the hover is of both."""
    rows = [
        {
            "series": name,
            "number": names.index(name),
            "x": spot.x,
            "value": spot.value if which == "p50" else None,
            "p99": spot.value if which == "p99" else None,
            "text": f"{name}, "
            + plane.hover.format(x=plane.x.write(spot.x), y=f"{which} {plane.y.write(spot.value)}"),
        }
        for which, lines in (("p50", plane.lines), ("p99", plane.slow or {}))
        for name, spots in lines.items()
        for spot in spots
    ]
    color, shape = curves.series_encodings(names, plane.columns)
    tip = alt.Tooltip("text:N")
    slowest = alt.Chart().transform_filter("isNumber(datum.p99)")
    median = alt.Chart().transform_filter("isNumber(datum.value)")
    layers = [
        slowest.mark_line(strokeWidth=0.9, opacity=0.9).encode(x=x, y=at_p99, color=color),
        slowest.mark_point(size=34, filled=False, opacity=1).encode(
            x=x, y=at_p99, color=color, shape=shape, tooltip=tip
        ),
        *(
            line.transform_filter("isNumber(datum.value)").encode(x=x, y=y, color=color)
            for line in curves.dashed_lines(len(names))
        ),
        median.mark_point(size=34, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=tip
        ),
    ]
    return layers, rows


def _mark(mark: Mark, on: dict[str, Any]) -> alt.Chart:
    """A layer; a field without a type is on the plane's axis or legend."""
    base = alt.Chart(inline(mark.rows))
    if mark.only:
        base = base.transform_filter(mark.only)
    if mark.first:
        base = base.transform_window(order="row_number()").transform_filter("datum.order == 1")
        base = base.transform_calculate(name=f"'{mark.first}'")
    shaped: alt.Chart = getattr(base, f"mark_{mark.kind}")(**mark.look)
    return shaped.encode(**{channel: _encoded(channel, field, on) for channel, field in mark.at.items()})


def _encoded(channel: str, field: str, on: dict[str, Any]) -> Any:  # noqa: ANN401 - Altair's channels
    if ":" in field:
        return getattr(alt, {"x2": "X2", "y2": "Y2"}.get(channel, channel.capitalize()))(field)
    own = on[channel]
    return own[field] if isinstance(own, dict) else own


def _stairs(picture: Stairs) -> AnyChart | None:
    if not picture.stairs:
        return None
    panels: dict[str, dict[str, stairs.Steps]] = {}
    for stair in picture.stairs:
        drawn = steps(stair.record, picture.most)
        panels.setdefault(stair.panel, {})[stair.name] = thinned(drawn, picture.fewer or picture.most)
    names = list(picture.names) or list(dict.fromkeys(stair.name for stair in picture.stairs))
    titles = (picture.x, picture.y)
    if list(panels) == [""]:
        ends = stairs.span(panels[""])
        return stairs.panel(panels[""], names, titles, ends, curves.WIDTH, picture.height)
    return stairs.beside(panels, names, titles, picture.height)
