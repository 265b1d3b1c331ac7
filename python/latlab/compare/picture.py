"""A history as pictures: a panel a figure, a point a run, with its range; a line where it changed."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from latlab.compare.history_words import changed, headline, marks
from latlab.text import clean
from latlab.units import format_value
from latlab.view.theme import LIGHT, config

if TYPE_CHECKING:
    from latlab.compare.history import Figure, History, Point

#: Pixels of a panel.
_WIDTH, _HEIGHT = 640, 100
#: Panels of a picture: more cannot be read.
MOST: Final = 20
#: Room on an axis beyond its lowest and highest value, as a factor.
_ROOM: Final = 1.01
#: Ticks between them, at most; a factor from which on they are powers of ten, with 2 and 5 in few of these.
_TICKS: Final = 5
_FAR: Final = 5.0
_FEW: Final = 3
#: Square pixels of all points together: those of many runs are smaller.
_INK: Final = 5000
#: Dates on an axis, at most.
_DATES: Final = 10
#: Environment changes below a picture's title.
_LISTED: Final = 12
#: What has a colour of the palette, in its order.
_ROLES: Final = ("measured", "change", "spike")

#: How each panel is read.
KEY: Final = (
    "Each point is a run, with its 95 % interval. Horizontal lines: the level between changes.",
    "Solid line: a change. Dashed: earlier runs are not comparable. Dotted, with a number: the "
    "environment changed.",
    "Triangle on a stem: a spike. Cross: a disturbed run. Neither is judged.",
)


def specification(found: History) -> dict[str, Any]:
    """The picture in Vega-Lite, its panels below one another.

    Args:
        found: Its first 20 figures are drawn.
    """
    listed = [f"{mark.sign}  {clean(mark.text, most=110)}" for mark in marks(found)]
    more = [f"and {len(listed) - _LISTED} earlier changes"] if len(listed) > _LISTED else []
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": headline(found), "subtitle": [*listed[-_LISTED:], *more]},
        "config": config(LIGHT, background=True),
        "vconcat": [panel(figure, found, titled=True) for figure in found.figures[:MOST]],
    }


def panel(figure: Figure, found: History, *, titled: bool = False) -> dict[str, Any]:
    """A figure over time in Vega-Lite, without colours: a theme's configuration adds them.

    Args:
        figure: What is drawn.
        found: The history that has it.
        titled: Whether the figure's name stands above it.
    """
    places = list(range(0, len(found.runs), -(-len(found.runs) // _DATES)))
    size = max(8, min(26, _INK // len(found.runs)))
    levels = dict(_levels(figure, len(found.runs)))
    x = {
        "field": "run",
        "type": "quantitative",
        "scale": {"domain": [-0.5, len(found.runs) - 0.5], "nice": False},
        "axis": {"grid": False, "labelOverlap": True, "labelSeparation": 8}
        | _labels(places, [clean(found.runs[run].date[:10], most=10) for run in places]),
    }
    low, high, ticks = _ends(figure)
    axis = {"minExtent": 62} | _labels(ticks, [format_value(tick, figure.unit) for tick in ticks])

    def y(field: str) -> dict[str, Any]:
        scale = {"type": "log", "domain": [low, high], "nice": False, "padding": 10}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}

    def of(kind: str) -> list[dict[str, Any]]:
        return [
            {
                "run": each.run,
                "value": each.value,
                "low": (each.ends or (each.value,))[0],
                "high": (each.ends or (each.value,))[-1],
                "level": _level(levels, each),
                "text": _said(each, figure, found),
            }
            for each in figure.points
            if each.kind == kind
        ]

    tip = {"field": "text", "type": "nominal"}
    layers: list[dict[str, Any]] = []

    def draw(rows: list[dict[str, Any]], mark: dict[str, Any], **encoding: object) -> None:
        if rows:
            layers.append({"data": {"values": rows}, "mark": mark, "encoding": {"x": x, **encoding}})

    spans = [
        {"run": first - 0.5, "end": last - 0.5, "value": value} for (first, last), value in levels.items()
    ]
    lines = [(each.run, changed(each, figure.unit)) for each in figure.changes]
    breaks = [(each.run, f"not comparable with earlier runs: {each.why}") for each in figure.breaks]
    signs = [(mark.run, mark.text, mark.sign) for mark in marks(found)]
    draw(_at(signs), {"type": "rule", "style": "reported", "opacity": 0.6}, tooltip=tip)
    above: dict[str, Any] = {"y": {"value": 0}, "text": {"field": "sign", "type": "nominal"}}
    draw(_at(signs), {"type": "text", "style": "name", "baseline": "bottom", "dy": -2}, tooltip=tip, **above)
    draw(_at(breaks), {"type": "rule", "style": "predicted"}, tooltip=tip)
    draw(
        spans,
        {"type": "rule", "strokeWidth": 1.5, "opacity": 0.6},
        x2={"field": "end"},
        y=y("value"),
        **_of("measured"),
    )
    draw(
        of("measured"), {"type": "rule", "opacity": 0.4}, y=y("low"), y2={"field": "high"}, **_of("measured")
    )
    draw(
        of("measured"),
        {"type": "point", "filled": True, "size": size, "opacity": 1},
        y=y("value"),
        tooltip=tip,
        **_of("measured"),
    )
    draw(
        of("disturbed"),
        {"type": "point", "shape": "cross", "style": "note", "filled": True, "size": size},
        y=y("value"),
        tooltip=tip,
    )
    draw(
        of("spike"), {"type": "rule", "strokeWidth": 1.5}, y=y("level"), y2={"field": "value"}, **_of("spike")
    )
    for up in (True, False):
        rows = [row for row in of("spike") if (row["value"] > row["level"]) is up]
        shape = "triangle-up" if up else "triangle-down"
        draw(
            rows,
            {"type": "point", "shape": shape, "filled": True, "size": 60, "opacity": 1},
            y=y("value"),
            tooltip=tip,
            **_of("spike"),
        )
    draw(_at(lines), {"type": "rule", "strokeWidth": 2}, tooltip=tip, **_of("change"))
    title = (
        {"title": {"text": clean(figure.name, most=80), "fontSize": 13, "offset": 14, "frame": "group"}}
        if titled
        else {}
    )
    return {**title, "width": _WIDTH, "height": _HEIGHT, "layer": layers}


def _ends(figure: Figure) -> tuple[float, float, list[float]]:
    """The lowest and the highest value of an axis, and its ticks: round values between them, or these two."""
    every = [end for each in figure.points for end in (each.ends or (each.value, each.value))]
    low, high = min(every) / _ROOM, max(every) * _ROOM
    if high > _FAR * low:
        powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)))]
        ticks = [step * power for power in powers for step in ((1, 2, 5) if len(powers) <= _FEW else (1,))]
        ticks = [tick for tick in ticks if low <= tick <= high]
    else:
        # As fine as there is room for, of 1, 2 or 5.
        least = (high - low) / _TICKS
        power = 10.0 ** math.floor(math.log10(least))
        step = next(size * power for size in (1, 2, 5, 10) if size * power >= least)
        ticks = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return low, high, ticks if len(ticks) > 1 else [low, high]


def _of(role: str) -> dict[str, Any]:
    return {
        "color": {"datum": role, "type": "nominal", "scale": {"domain": list(_ROLES)}, "legend": None},
    }


def _at(lines: list[Any]) -> list[dict[str, Any]]:
    """Before the run at which something was first so."""
    return [
        {"run": run - 0.5, "text": clean(text, most=200), "sign": (*rest, "")[0]}
        for run, text, *rest in lines
    ]


def _levels(figure: Figure, runs: int) -> Iterator[tuple[tuple[int, int], float]]:
    """The median between changes and breaks, with the places of the first run and after the last one."""
    places = {each.run for each in figure.changes} | {each.run for each in figure.breaks}
    for first, last in pairwise(sorted({0, runs} | places)):
        values = [
            each.value for each in figure.points if first <= each.run < last and each.kind == "measured"
        ]
        if values:
            yield (first, last), statistics.median(values)


def _level(levels: dict[tuple[int, int], float], point: Point) -> float:
    return next((value for (first, last), value in levels.items() if first <= point.run < last), point.value)


def _said(point: Point, figure: Figure, found: History) -> str:
    kind = "" if point.kind == "measured" else f", {point.kind}"
    return f"{found.runs[point.run].date}, {format_value(point.value, figure.unit)}{kind}"


def _labels(places: Sequence[float], texts: Sequence[str]) -> dict[str, Any]:
    """Of an axis: its ticks, and what is written there."""
    label = f"{json.dumps(texts)}[round(datum.index * {len(texts) - 1})]"
    return {"title": None, "values": list(places), "labelExpr": label}
