"""Named curves with intervals, drawn alike in every chart: band, line, points, a cross on what to doubt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import altair as alt

from latlab.view.drawing import inline
from latlab.view.points import Spot
from latlab.view.theme import DASHES, SHAPES

WIDTH = 720
HEIGHT = 340
#: Characters of a legend that fit on one line.
_LEGEND_LINE = 80

Curves = Mapping[str, Sequence[Spot]]


def everywhere(curves: Curves) -> list[Spot]:
    """All spots of all curves."""
    return [spot for curve in curves.values() for spot in curve]


def ends(curves: Curves) -> list[float]:
    """All ends of all intervals: what the y axis has to hold."""
    return [end for spot in everywhere(curves) for end in (spot.low, spot.high)]


def rows(curves: Curves, describe: Callable[[Spot], str]) -> alt.Data:
    """The data that the layers share; `describe` is the text on hovering."""
    values = [
        {
            "series": name,
            "number": number,
            "x": spot.x,
            "value": spot.value,
            "low": spot.low,
            "high": spot.high,
            "doubt": int(spot.disturbed),
            "text": f"{name}, {describe(spot)}",
        }
        for number, (name, curve) in enumerate(curves.items())
        for spot in curve
    ]
    return inline(values)


def layers(
    curves: Curves, x: alt.X, y: alt.Y, *, columns: int | None = None, tail: alt.Y | None = None
) -> list[alt.Chart]:
    """The layers over the data of :func:`rows`; `x` and `y` encode its fields `x` and `value`.

    Args:
        curves: What is drawn.
        x: Where.
        y: How much.
        columns: Of the legend, instead of as many as are likely to fit.
        tail: A slow end, where points have one: drawn thin.
    """
    color, shape = series_encodings(list(curves), columns)
    base = alt.Chart()
    lower = y.copy()
    lower["shorthand"] = "low:Q"
    tip = alt.Tooltip("text:N")
    thin = base.transform_filter("isNumber(datum.p99)").mark_line(strokeWidth=0.8, opacity=0.8)
    return [
        base.mark_area(opacity=0.18).encode(x=x, y=lower, y2=alt.Y2("high:Q"), color=color),
        *([] if tail is None else [thin.encode(x=x, y=tail, color=color)]),
        *(line.encode(x=x, y=y, color=color) for line in dashed_lines(len(curves))),
        base.mark_point(size=34, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=tip
        ),
        base.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=x, y=y, tooltip=tip),
    ]


def dashed_lines(count: int) -> list[alt.Chart]:
    """One line layer a series, by its `number`: an encoded dash would fray the shapes of the legend."""
    return [
        alt.Chart()
        .transform_filter(f"datum.number == {number}")
        .mark_line(strokeDash=list(DASHES[_other(number) % len(DASHES)]))
        for number in range(count)
    ]


def _other(number: int) -> int:
    """Where colours begin again, dashes and shapes are one further on: no two series look the same."""
    return number + number // len(SHAPES)


def series_encodings(names: Sequence[str], columns: int | None = None) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of the field `series`, in one legend of so many columns."""
    domain = list(names)
    shapes = [SHAPES[_other(number) % len(SHAPES)] for number in range(len(domain))]
    if columns is None:
        columns = 2 if sum(map(len, domain)) > _LEGEND_LINE else 0
    legend = alt.Legend(title=None, columns=columns)
    return (
        alt.Color("series:N", legend=legend, scale=alt.Scale(domain=domain)),
        alt.Shape("series:N", legend=legend, scale=alt.Scale(domain=domain, range=shapes)),
    )


def in_words(curves: Curves, describe: Callable[[Spot], str]) -> str:
    """Every curve by its ends: `read: 464 GB/s at 24 KiB to 38.7 GB/s at 1 GiB`."""
    parts = []
    for name, curve in curves.items():
        ends = [describe(curve[0])] + ([describe(curve[-1])] if len(curve) > 1 else [])
        parts.append(f"{name}: {' to '.join(ends)}")
    return "; ".join(parts)
