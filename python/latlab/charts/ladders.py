"""Ladders of several runs over one another: a row a level, a line a machine or side."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from latlab.charts.many import Part, by_machine
from latlab.run.samples import Sample
from latlab.units import format_stated
from latlab.view.axes import duration_x, names_y, widened
from latlab.view.curves import series_encodings
from latlab.view.drawing import inline, layered
from latlab.view.points import drawable

#: Machines up to which each has its own line in a row, and pixels of such a line.
_PIXELS = ((6, 9.0), (12, 5.0), (30, 2.4))
_LEAST_ROW = 26
_LEGEND_COLUMNS = 5


def drawn(names: Sequence[str], own: Sequence[Part], *, said: bool) -> alt.LayerChart:
    """Parts of one figure each; see :func:`latlab.charts.overlay.picture`."""
    rows: list[dict[str, Any]] = [
        {
            "name": part.name,
            "series": who,
            "x": sample.value,
            "low": low if drawable(low) else sample.value,
            "high": high if drawable(high) else sample.value,
            "doubt": int(sample.disturbed),
            "text": f"{part.name}, {who}: {format_stated(sample.value, sample.ends)}",
        }
        for part in own
        for who, samples in by_machine(part.figures[""]).items()
        for sample in [together(samples)]
        for low, high in [sample.ends or (None, None)]
    ]
    low, high = widened([end for row in rows for end in (row["low"], row["high"])], down=1.6, up=1.6)
    pixels = next((size for most, size in _PIXELS if len(names) <= most), _PIXELS[-1][1])
    height = round(max(_LEAST_ROW, pixels * len(names) + 8) * len(own))
    look = {"grid": True, "labelFontSize": 13, "labelPadding": 8, "tickBand": "extent"}
    y = names_y("name", [part.name for part in own], look)
    offset = alt.YOffset("series:N", scale=alt.Scale(domain=names))
    x, from_low = (duration_x(field, "one access, logarithmic", low, high) for field in ("x", "low"))
    columns = _LEGEND_COLUMNS if len(names) > _LEGEND_COLUMNS else 0
    color, shape = series_encodings(names, columns)
    data = alt.Chart(inline(rows))
    tip = alt.Tooltip("text:N")
    layers = [
        data.mark_rule(strokeWidth=2).encode(
            x=from_low, x2=alt.X2("high:Q"), y=y, yOffset=offset, color=color
        ),
        data.mark_point(size=46 if len(names) <= _PIXELS[1][0] else 22, filled=True, opacity=1).encode(
            x=x, y=y, yOffset=offset, color=color, shape=shape, tooltip=tip
        ),
        data.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=110, angle=45, style="crossed")
        .encode(x=x, y=y, yOffset=offset, tooltip=tip),
    ]
    if said:
        layers.append(
            alt.Chart(inline([{"name": part.name, "text": part.words} for part in own]))
            .mark_text(style="note", align="left", dx=8)
            .encode(x=alt.value(560), y=y, text=alt.Text("text:N"))
        )
    return layered(layers, width=560, height=height)


def together(samples: Sequence[Sample]) -> Sample:
    """One figure to draw: of several runs the median, and the lowest and the highest."""
    if len(samples) == 1:
        return samples[0]
    values = [each.value for each in samples]
    return replace(
        samples[0],
        value=statistics.median(values),
        ends=(min(values), max(values)),
        disturbed=all(each.disturbed for each in samples),
    )
