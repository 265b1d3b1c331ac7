"""What prefetching hides: the hardware's, by stride; the program's own, by distance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns, format_percent
from latlab.view.plot import Drawing, yes_or_no
from latlab.view.points import Spot, spots, with_figures
from latlab.view.table import Table, of_range, table_of
from latlab.view.topic import Chart, Topic

if TYPE_CHECKING:
    import altair as alt

PROBE: Final = "memory.prefetch"
_WALKS: Final = {"list-walk": "walk of a list", "fill": "fill of an array"}
_WIDTH, _HEIGHT = 320, 270


class Prefetching(NamedTuple):
    """By stride, in random order, and by how far ahead the program asks."""

    strided: list[Spot]
    random: Spot | None
    distances: dict[str, list[Spot]]


def _measured(run: Run) -> Prefetching | None:
    own = Prefetching(strided(run), at_random(run), distances(run))
    return own if own.strided or own.distances else None


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
    for operation, name in _WALKS.items():
        chosen = [r for r in records if r.point.operation == operation]
        sizes = sorted({r.point.working_set_bytes or 0 for r in chosen})
        for size in sizes[-2:]:
            own = [r for r in chosen if (r.point.working_set_bytes or 0) == size]
            if curve := spots(own, lambda record: record.point.distance):
                found[f"{name}, {format_bytes(size)}"] = curve
    return found


def _picture(own: Prefetching) -> Drawing:
    parts = []
    if own.strided:
        first, last = own.strided[0], own.strided[-1]
        parts.append(
            f"one dependent load: {format_ns(first.value)} every {format_bytes(first.x)} to"
            f" {format_ns(last.value)} every {format_bytes(last.x)}"
        )
    if own.random is not None:
        parts.append(f"{format_ns(own.random.value)} in random order")
    for name, walk in own.distances.items():
        best = min(walk, key=lambda spot: spot.value)
        parts.append(
            f"{name}: {format_ns(walk[0].value)} with {_step(walk[0].x)} ahead, {format_ns(best.value)} with"
            f" {_step(best.x)} ahead"
        )
    about = "Two line charts, vertical axes logarithmic: what prefetching hides."
    return Drawing(f"{about} {'; '.join(parts)}.", lambda: _drawn(own))


def _drawn(own: Prefetching) -> alt.HConcatChart:
    """Left by stride with random order dotted, right by distance."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    panels = [_by_stride(own.strided, own.random)] if own.strided else []
    panels += [_by_distance(own.distances)] if own.distances else []
    both = alt.hconcat(*panels).resolve_scale(color="independent", shape="independent")
    return cast("alt.HConcatChart", both)


def _by_stride(curve: Sequence[Spot], random: Spot | None) -> alt.LayerChart:
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view.axes import duration_y, size_axis, widened  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - as above

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


def _by_distance(found: Mapping[str, Sequence[Spot]]) -> alt.LayerChart:
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import curves  # noqa: PLC0415 - as above
    from latlab.view.axes import duration_y, widened  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - as above
    from latlab.view.theme import SHAPES  # noqa: PLC0415 - as above

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


def _table(own: Prefetching) -> Table:
    """Every point of both panels: its walk, its stride, how far ahead the program asks, and its figure."""
    rows: list[tuple[str, float | None, float | None, Spot]] = [
        *(("dependent loads", spot.x, None, spot) for spot in own.strided),
        *(("dependent loads, random", None, None, spot) for spot in [own.random] if spot),
        *((name, None, spot.x, spot) for name, curve in own.distances.items() for spot in curve),
    ]
    return table_of(
        rows,
        ("walk", "text", lambda at: at[0]),
        ("stride", "bytes", lambda at: at[1]),
        ("ahead", "count", lambda at: at[2]),
        ("median", "ns", lambda at: at[3].value),
        *of_range("ns", lambda at: at[3]),
        ("samples", "count", lambda at: at[3].samples),
        ("disturbed", "text", lambda at: yes_or_no(at[3].disturbed)),
    )


def prose(run: Run) -> Iterator[str]:
    """What the hardware hides, and what a program gains that asks ahead."""
    curve, random = strided(run), at_random(run)
    if curve and random is not None:
        first = curve[0]
        share = 1 - first.value / random.value
        hidden = f": the hardware hides {format_percent(share)}" if share > 0 else ""
        yield (
            f"A walk with a load every {format_bytes(first.x)} costs {format_ns(first.value)} per "
            f"load, in random order {format_ns(random.value)}{hidden}."
        )
    walks = [walk for name, walk in distances(run).items() if name.startswith(_WALKS["list-walk"])]
    if not walks or walks[-1][0].x != 0:
        return
    without, best = walks[-1][0], min(walks[-1], key=lambda spot: spot.value)
    if best.value > 0.9 * without.value:
        yield "Prefetching list nodes gains less than 10 % here."
    else:
        yield (
            f"Prefetching list nodes {best.x:.0f} ahead brings a node from "
            f"{format_ns(without.value)} to {format_ns(best.value)}."
        )


TOPIC: Final = Topic(
    Chart(
        id="prefetch",
        title="How much latency does prefetching hide?",
        caption="Left: dependent loads at a fixed stride; dotted: the same in unpredictable order. "
        "Right: a program that prefetches later nodes while it works on this one.",
        probe=PROBE,
        measured=_measured,
        picture=_picture,
        table=_table,
    ),
    prose=prose,
)
