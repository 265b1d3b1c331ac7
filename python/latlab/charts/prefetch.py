"""What prefetching hides: the hardware's, by stride; the program's own, by distance."""

from __future__ import annotations

from typing import cast

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view import curves
from latlab.view.axes import duration_y, size_axis, widened
from latlab.view.drawing import inline, layered
from latlab.view.points import Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table, range_cells
from latlab.view.theme import SHAPES

ID = "prefetch"
TITLE = "How much waiting does prefetching hide?"
PROBE = "memory.prefetch"
WALKS = {"list-walk": "walk of a list", "fill": "fill of an array"}
_WIDTH, _HEIGHT = 320, 270


def strided(run: Run) -> list[Spot]:
    """Time of a dependent load by stride, bytes; the largest working set where several were measured."""
    chosen = [r for r in _chases(run) if r.point.order == "strided"]
    return spots(chosen, lambda record: record.point.stride_bytes or None)


def at_random(run: Run) -> Spot | None:
    """The same in random order, which no hardware can foresee."""
    found = spots((r for r in _chases(run) if r.point.order == "random"), lambda _: 1.0)
    return found[0] if found else None


def _chases(run: Run) -> list[Record]:
    records = [r for r in with_figures(run, PROBE, "batch_mean") if r.point.operation == "chase"]
    largest = max((r.point.working_set_bytes or 0 for r in records), default=0)
    return [r for r in records if (r.point.working_set_bytes or 0) == largest]


def distances(run: Run) -> dict[str, list[Spot]]:
    """Time a node by how far ahead the program asks for it; 0 is not at all."""
    records = with_figures(run, PROBE, "batch_mean")
    found = {}
    for operation, name in WALKS.items():
        chosen = [r for r in records if r.point.operation == operation]
        sizes = sorted({r.point.working_set_bytes or 0 for r in chosen})
        for size in sizes[-2:]:
            own = [r for r in chosen if (r.point.working_set_bytes or 0) == size]
            curve = spots(own, lambda record: record.point.distance)
            if curve:
                found[f"{name}, {format_bytes(size)}"] = curve
    return found


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if strided(run) or distances(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """Left by stride with random order dotted, right by distance."""
    panels = [panel for panel in (_by_stride(run), _by_distance(run)) if panel is not None]
    if not panels:
        return None
    both = alt.hconcat(*panels).resolve_scale(color="independent", shape="independent")
    return cast("alt.HConcatChart", both)


def _by_stride(run: Run) -> alt.LayerChart | None:
    curve, random = strided(run), at_random(run)
    if not curve:
        return None
    ends = [end for spot in [*curve, *([random] if random else [])] for end in (spot.low, spot.high)]
    bottom, top = widened(ends, up=1.6)
    low, high = widened((spot.x for spot in curve), down=1.2, up=1.2)
    x = size_axis("x", "one load every", low, high)
    y, lower = (duration_y(field, "one dependent load", bottom, top) for field in ("value", "low"))
    rows = [
        {
            "x": spot.x,
            "value": spot.value,
            "low": spot.low,
            "high": spot.high,
            "doubt": int(spot.disturbed),
            "text": f"every {format_bytes(spot.x)}: {format_ns(spot.value)}",
        }
        for spot in curve
    ]
    data = alt.Chart(inline(rows))
    layers = [
        data.mark_area(opacity=0.18, style="level").encode(x=x, y=lower, y2=alt.Y2("high:Q")),
        data.mark_line(style="level").encode(x=x, y=y),
        data.mark_point(size=34, filled=True, opacity=1, style="level").encode(
            x=x, y=y, tooltip=alt.Tooltip("text:N")
        ),
        data.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=x, y=y),
    ]
    if random is not None:
        rule = alt.Chart(
            inline([{"x": low, "value": random.value, "name": f"random order: {format_ns(random.value)}"}])
        )
        layers += [
            rule.mark_rule(style="reported").encode(y=y),
            rule.mark_text(style="note", align="left", dx=4, dy=-7).encode(x=x, y=y, text=alt.Text("name:N")),
        ]
    return layered(layers, width=_WIDTH, height=_HEIGHT, title="what the hardware hides, by stride")


def _step(distance: float) -> str:
    return f"{distance:.0f}" if distance else "none"


def _by_distance(run: Run) -> alt.LayerChart | None:
    found = distances(run)
    if not found:
        return None
    bottom, top = widened(curves.ends(found))
    steps = [_step(at) for at in sorted({spot.x for spot in curves.everywhere(found)})]
    x = alt.X(
        "step:N",
        title="the program asks so many ahead",
        scale=alt.Scale(domain=steps),
        axis=alt.Axis(labelAngle=0, grid=True),
        sort=None,
    )
    y, lower = (duration_y(field, "one node", bottom, top) for field in ("value", "low"))
    names = list(found)
    legend = alt.Legend(title=None, columns=1, orient="bottom")
    color = alt.Color("series:N", legend=legend, scale=alt.Scale(domain=names))
    shapes = alt.Scale(domain=names, range=[SHAPES[i % len(SHAPES)] for i in range(len(names))])
    shape = alt.Shape("series:N", legend=legend, scale=shapes)
    rows = [
        {
            "series": name,
            "number": number,
            "step": _step(spot.x),
            "value": spot.value,
            "low": spot.low,
            "high": spot.high,
            "doubt": int(spot.disturbed),
            "text": f"{name}, {_step(spot.x)} ahead: {format_ns(spot.value)}",
        }
        for number, (name, curve) in enumerate(found.items())
        for spot in curve
    ]
    base = alt.Chart()
    layers = [
        base.mark_area(opacity=0.18).encode(x=x, y=lower, y2=alt.Y2("high:Q"), color=color),
        *(line.encode(x=x, y=y, color=color) for line in curves.dashed_lines(len(found))),
        base.mark_point(size=34, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")
        ),
        base.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=x, y=y),
    ]
    return layered(
        layers, data=inline(rows), width=_WIDTH, height=_HEIGHT, title="what a program can hide, by distance"
    )


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    curve, random = strided(run), at_random(run)
    parts = []
    if curve:
        first, last = curve[0], curve[-1]
        parts.append(
            f"one dependent load: {format_ns(first.value)} every {format_bytes(first.x)} to"
            f" {format_ns(last.value)} every {format_bytes(last.x)}"
        )
    if random is not None:
        parts.append(f"{format_ns(random.value)} in random order")
    for name, walk in distances(run).items():
        best = min(walk, key=lambda spot: spot.value)
        parts.append(
            f"{name}: {format_ns(walk[0].value)} with {_step(walk[0].x)} ahead, {format_ns(best.value)} with"
            f" {_step(best.x)} ahead"
        )
    return "Two line charts, vertical axes logarithmic: what prefetching hides. " + "; ".join(parts) + "."


def table(run: Run) -> Table:
    """Every point of both panels."""
    columns = (
        Column("walk"),
        Column("stride", "bytes"),
        Column("ahead", "count"),
        Column("median", "ns"),
        Column("95 % from", "ns"),
        Column("95 % to", "ns"),
        Column("samples", "count"),
        Column("disturbed"),
    )

    def row(
        name: str, stride: float | None, ahead: float | None, spot: Spot
    ) -> tuple[str | float | int | None, ...]:
        doubt = "yes" if spot.disturbed else "no"
        return (name, stride, ahead, spot.value, *range_cells(spot.low, spot.high), spot.samples, doubt)

    random = at_random(run)
    rows = [row("dependent loads", spot.x, None, spot) for spot in strided(run)]
    rows += [row("dependent loads, random", None, None, random)] if random else []
    rows += [row(name, None, spot.x, spot) for name, curve in distances(run).items() for spot in curve]
    return Table(columns, tuple(rows))
