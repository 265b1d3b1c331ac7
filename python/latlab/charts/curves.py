"""Named curves with intervals, drawn alike in every chart: band, line, points, a cross on what to doubt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import altair as alt

from latlab.charts.drawing import inline
from latlab.charts.points import Spot
from latlab.charts.table import Column, Quantity, Table
from latlab.charts.theme import DASHES, SHAPES

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
            "x": spot.x,
            "value": spot.value,
            "low": spot.low,
            "high": spot.high,
            "doubt": int(spot.disturbed),
            "text": f"{name}, {describe(spot)}",
        }
        for name, curve in curves.items()
        for spot in curve
    ]
    return inline(values)


def layers(curves: Curves, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The layers over the data of :func:`rows`; `x` and `y` encode its fields `x` and `value`."""
    color, dash, shape = series_encodings(list(curves))
    base = alt.Chart()
    lower = y.copy()
    lower["shorthand"] = "low:Q"
    return [
        base.mark_area(opacity=0.18).encode(x=x, y=lower, y2="high:Q", color=color),
        base.mark_line().encode(x=x, y=y, color=color, strokeDash=dash),
        base.mark_point(size=34, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")
        ),
        base.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=x, y=y, tooltip=alt.Tooltip("text:N")),
    ]


def series_encodings(names: Sequence[str]) -> tuple[alt.Color, alt.StrokeDash, alt.Shape]:
    """Colour, dash and shape of the field `series`; the legend leaves out dashes, which cut shapes."""
    domain = list(names)
    dashes = [list(DASHES[number % len(DASHES)]) for number in range(len(domain))]
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(domain))]
    legend = (
        alt.Legend(title=None, columns=2) if sum(map(len, domain)) > _LEGEND_LINE else alt.Legend(title=None)
    )
    return (
        alt.Color("series:N", legend=legend, scale=alt.Scale(domain=domain)),
        alt.StrokeDash("series:N", legend=None, scale=alt.Scale(domain=domain, range=dashes)),
        alt.Shape("series:N", legend=legend, scale=alt.Scale(domain=domain, range=shapes)),
    )


def as_table(curves: Curves, x: Column, quantity: Quantity) -> Table:
    """Every spot of every curve."""
    columns = (
        Column("series"),
        x,
        Column("median", quantity),
        Column("95 % from", quantity),
        Column("95 % to", quantity),
        Column("samples", "count"),
        Column("disturbed"),
    )
    rows = tuple(
        (name, spot.x, spot.value, spot.low, spot.high, spot.samples, "yes" if spot.disturbed else "no")
        for name, curve in curves.items()
        for spot in curve
    )
    return Table(columns, rows)
