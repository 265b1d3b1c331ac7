"""Headline figures of the hosts of a class, a small chart each: a dot a host, in the order of the table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from latlab.report.document import Figure
from latlab.text import counted
from latlab.units import format_value
from latlab.view.table import Column, Table

if TYPE_CHECKING:
    import altair as alt

    from latlab.fleet.host import Key
    from latlab.fleet.standings import Standing, Survey

#: Charts beside each other; their pixels and what is between them, without and with names beside each row.
_COLUMNS: Final = 3
_WIDTH, _BETWEEN = 280, 40
_WIDTH_NAMED, _BETWEEN_NAMED = 200, 130
_BELOW: Final = 66
#: Up to so many hosts each has its name beside its row.
_MOST_NAMES: Final = 16
#: Pixels of a row; many hosts share so many, and as many slow ones as here have rows that a name fits into.
_ROW, _TOGETHER, _MOST_SLOW = 15, 200, 10
#: An axis spans so many times at least: then it has two ticks, and a host 1.25 times slower stands apart.
_SPAN: Final = 5.0
#: Of that, on a logarithm, so much more is to the right of the last dot for its name.
_FOR_NAMES: Final = 0.35
#: Smaller classes have nothing to compare, and a page no room for more of them.
_LEAST_HOSTS, _MOST_CLASSES = 2, 12


def figures(found: Survey) -> Iterator[Figure]:
    """The charts of each class, the largest first."""
    for number, count in enumerate(found.classes[:_MOST_CLASSES], 1):
        if count >= _LEAST_HOSTS:
            yield _of_class(number, [own for own in found.standings if own.number == number], found)


def _of_class(number: int, own: Sequence[Standing], found: Survey) -> Figure:
    keys = list(dict.fromkeys(key for each in own for key in each.host.figures))
    names = [found.names.get(key, key.point) for key in keys]
    units = [next(each.host.figures[key].unit for each in own if key in each.host.figures) for key in keys]
    title = f"Figures of class {number}" if len(found.classes) > 1 else "Figures of all hosts"
    values = [[_value(each, key) for each in own] for key in keys]
    said = (
        f"{name}: {' to '.join(format_value(end(filter(None, column)), unit) for end in (min, max))}"
        for name, unit, column in zip(names, units, values, strict=True)
    )
    heads = [Column("host"), *(Column(*head) for head in zip(names, units, strict=True))]
    rows = zip([each.host.name for each in own], *values, strict=True)
    return Figure(
        name=f"class_{number}",
        title=title,
        spec=_spec(own, list(zip(keys, names, units, strict=True))),
        alt=f"{counted(len(keys), 'figure')} of {counted(len(own), 'host')}. {'; '.join(said)}.",
        caption="A dot is a host, in the order of the table. Diamond: slow host. Dotted line: median.",
        table=Table(tuple(heads), tuple(rows)),
    )


def _value(own: Standing, key: Key) -> float | None:
    figure = own.host.figures.get(key)
    return None if figure is None else figure.value


def _spec(own: Sequence[Standing], figures: Sequence[tuple[Key, str, str]]) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - takes some time to import

    from latlab.view.drawing import plain_spec, unchecked  # noqa: PLC0415 - see above

    with unchecked():
        panels = [_panel(own, *figure) for figure in figures]
        between = _BETWEEN_NAMED if len(own) <= _MOST_NAMES else _BETWEEN
        spacing = alt.RowColnumber(row=_BELOW, column=between)
        return plain_spec(alt.concat(*panels, columns=_COLUMNS, spacing=spacing, bounds="flush"))


def _panel(own: Sequence[Standing], key: Key, name: str, unit: str) -> alt.LayerChart:
    """A figure of the hosts from top to bottom; those that lack it leave their rows empty."""
    import altair as alt  # noqa: PLC0415 - takes some time to import

    from latlab.view.axes import duration_x, rate_x, widened  # noqa: PLC0415 - see above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - see above

    few = len(own) <= _MOST_NAMES
    heights, bottom = _heights(own)
    rows: list[dict[str, Any]] = [
        {
            "host": each.host.name if few or slow else "",
            "y": height,
            "value": value,
            "slow": int(slow),
            "text": f"{each.host.name}: {format_value(value, unit)}",
        }
        for each, height in zip(own, heights, strict=True)
        if (value := _value(each, key)) is not None
        for slow in [each.kind == "slow"]
    ]
    values = [row["value"] for row in rows]
    left, right = widened(values, down=1.1, up=1.1)
    room = max(math.sqrt(_SPAN * left / right), 1.0 if few else (right / left) ** (_FOR_NAMES / 2))
    across = duration_x if unit == "ns" else rate_x
    x = across("value", "", left / room, right * room)
    if few:
        scale = alt.Scale(domain=[each.host.name for each in own])
        axis = alt.Axis(grid=False, ticks=False, domain=False, labelPadding=6, labelLimit=110)
        y: alt.Y = alt.Y("host:N", title=None, sort=None, scale=scale, axis=axis)
    else:
        y = alt.Y("y:Q", title=None, scale=alt.Scale(domain=[bottom, 0], nice=False), axis=None)
    others, slow = (alt.Chart().transform_filter(f"datum.slow == {which}") for which in (0, 1))
    tip = alt.Tooltip("text:N")
    size, opacity = (45, 1.0) if few else (16, 0.6)
    median = alt.Chart(inline([{"value": statistics.median(values)}]))
    layers = [
        median.mark_rule(style="reported").encode(x=x),
        others.mark_point(shape="circle", size=size, filled=True, opacity=opacity, style="operation").encode(
            x=x, y=y, tooltip=tip
        ),
        slow.mark_point(shape="diamond", size=110, filled=True, opacity=1, style="level").encode(
            x=x, y=y, tooltip=tip
        ),
    ]
    if not few:
        name_of = slow.mark_text(style="name", align="left", dx=9, limit=110)
        layers.append(name_of.encode(x=x, y=y, text=alt.Text("host:N")))
    width = _WIDTH_NAMED if few else _WIDTH
    return layered(layers, data=inline(rows), width=width, height=round(bottom), title=name)


def _heights(own: Sequence[Standing]) -> tuple[list[float], float]:
    """How far below the top each host is, and the bottom, pixels: rows of slow hosts have room for names."""
    room = min(_ROW, _TOGETHER / len(own)) if len(own) > _MOST_NAMES else _ROW
    rows = [
        max(room, _ROW) if each.kind == "slow" and place < _MOST_SLOW else room
        for place, each in enumerate(own)
    ]
    ends = list(accumulate(rows))
    return [round(end - row / 2, 1) for end, row in zip(ends, rows, strict=True)], ends[-1]
