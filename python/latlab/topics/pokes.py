"""How often a single poke takes how long: 1-CDF of every array size, each against a normal distribution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from latlab.run.causes import slow_causes
from latlab.run.ladder import instrument
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import poke_histogram
from latlab.units import format_count, format_ns
from latlab.view.distribution import (
    in_words,
    normal_share,
    single_pokes,
    size_name,
    slower_than,
    survival,
    thinned,
)
from latlab.view.plot import Drawing, Row
from latlab.view.points import drawable, quantiles
from latlab.view.table import Column, Listing, Table, listed
from latlab.view.topic import Chart, StairsOfSeveral, Topic

if TYPE_CHECKING:
    import altair as alt

    from latlab.view.drawing import AnyChart

PROBE: Final = "memory.poke"
_MEASURED, _NORMAL = "measured", "normal with the same mean and deviation"
_NORMAL_POINTS: Final = 80
_TABLE_POINTS: Final = 60
_SLOW_NS: Final = 10_000.0
_CAPTION: Final = (
    "Right is slower, down is rarer. Dashed: a normal distribution with the same mean and standard "
    "deviation. Grey: times of empty pokes, so readings there say nothing about memory. Shapes mark 1 "
    "in 10, 1 in 100 and so on, and the slowest."
)


class Pokes(NamedTuple):
    """Those of one operation, smallest array first, and up to where a reading says nothing of memory, ns."""

    operation: str
    records: list[Record]
    blind_ns: float


def _pokes(run: Run, operation: str) -> Pokes | None:
    own = single_pokes(run, operation)
    return Pokes(operation, own, blind_zone_ns(run)) if own else None


def blind_zone_ns(run: Run) -> float:
    """Up to where a reading says nothing of memory: 99 in 100 empty pokes read this much or less."""
    empty = instrument(run)
    read = empty.summary.p99 if empty is not None and empty.summary is not None else None
    return max(read if drawable(read) else 0.0, run.clock.overhead_ns.p99, run.clock.quantum_ns)


def _picture(own: Pokes) -> Drawing:
    about = (
        f"Staircase chart, both axes logarithmic: share of {own.operation} pokes that take at least a given"
        " time, by array size, each with a dashed normal curve that falls to nothing long before the measured"
        " one."
    )
    figures = in_words({size_name(record): record for record in own.records})
    blind = f"Below {format_ns(own.blind_ns)} the clock cannot distinguish a poke from an empty one."
    return Drawing(f"{about} {figures}. {blind}", lambda: _drawn(own))


def _drawn(own: Pokes) -> AnyChart:
    """One staircase an array size, its normal dashed; grey where the clock cannot tell it from nothing."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view.axes import duration_x, share_y  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - as above
    from latlab.view.stairs import at_shares  # noqa: PLC0415 - as above
    from latlab.view.theme import SHAPES  # noqa: PLC0415 - as above

    stairs = {size_name(record): survival(record) for record in own.records}
    names = list(stairs)
    lowest = min(share for steps in stairs.values() for _, share in steps)
    left = min(steps[0][0] for steps in stairs.values()) / 2
    right = max(steps[-1][0] for steps in stairs.values()) * 1.5
    values: list[Row] = [
        {"series": name, "kind": _MEASURED, "x": at, "share": share}
        for name, steps in stairs.items()
        for at, share in steps
    ]
    values += [row for record in own.records for row in _normal_rows(record, left, right, lowest)]
    marks = [row for name, steps in stairs.items() for row in at_shares(name, steps, "the slowest took")]
    x = duration_x("x", "a poke takes at least this long", left, right)
    y = share_y("share", "share of pokes", lowest / 1.5)
    color = alt.Color("series:N", title=None, scale=alt.Scale(domain=names))
    shape = alt.Shape(
        "series:N",
        title=None,
        scale=alt.Scale(domain=names, range=[SHAPES[i % len(SHAPES)] for i in range(len(names))]),
    )
    dash = alt.StrokeDash(
        "kind:N", title=None, scale=alt.Scale(domain=[_MEASURED, _NORMAL], range=[[1, 0], [5, 4]])
    )
    data = alt.Chart(inline(values))
    stairs_layer = data.transform_filter(f"datum.kind == '{_MEASURED}'")
    normal_layer = data.transform_filter(f"datum.kind == '{_NORMAL}'")
    layers = [
        *_zone(own.blind_ns, left, right, lowest / 1.5, x),
        normal_layer.mark_line(strokeWidth=1.5, clip=True).encode(x=x, y=y, color=color, strokeDash=dash),
        stairs_layer.mark_line(interpolate="step-before").encode(x=x, y=y, color=color, strokeDash=dash),
        alt.Chart(inline(marks))
        .mark_point(size=50, filled=True, opacity=1)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")),
    ]
    return layered(layers, width=720, height=400)


def _zone(blind_ns: float, left: float, right: float, bottom: float, x: alt.X) -> list[alt.Chart]:
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view.axes import share_y  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline  # noqa: PLC0415 - as above

    blind = min(blind_ns, right)
    if blind <= left:
        return []
    data = alt.Chart(inline([{"x": left, "x2": blind, "y": bottom, "text": "times of empty pokes"}]))
    note = data.mark_text(style="note", align="left", baseline="bottom", dx=5, dy=-5)
    return [
        data.mark_rect(style="span").encode(x=x, x2=alt.X2("x2:Q")),
        note.encode(x=x, y=share_y("y", "share of pokes", bottom), text=alt.Text("text:N")),
    ]


def _normal_rows(record: Record, left: float, right: float, lowest: float) -> list[Row]:
    rows = []
    for step in range(_NORMAL_POINTS + 1):
        at = left * (right / left) ** (step / _NORMAL_POINTS)
        share = normal_share(record, at)
        if share is not None and share >= lowest / 10:
            rows.append({"series": size_name(record), "kind": _NORMAL, "x": at, "share": share})
    return rows


def _table(own: Pokes) -> Table:
    """Points of every staircase, fewer than are drawn."""
    columns = (Column("array"), Column("a poke takes at least", "ns"), Column("share of pokes", "share"))
    rows = tuple(
        (size_name(record), at, share)
        for record in own.records
        for at, share in thinned(survival(record), _TABLE_POINTS)
    )
    return Table(columns, rows)


def _listings(run: Run) -> tuple[Listing, ...]:
    """The course notebook's table, both operations, with quantiles that have samples enough."""
    blind_ns = blind_zone_ns(run)
    return listed(
        "Random pokes, timed one by one; timer overhead is included",
        single_pokes(run),
        ("array", "text", size_name),
        ("operation", "text", lambda record: record.point.operation or ""),
        ("pokes", "count", lambda record: record.samples),
        *quantiles("mean", "std"),
        ("fraction of zeros", "share", lambda record: 1.0 - slower_than(record, 0.0)),
        ("no slower than an empty poke", "share", lambda record: 1.0 - slower_than(record, blind_ns)),
        *quantiles("p50", "p99", "p999", "p9999", "max"),
        ("over 10 µs", "share", lambda record: slower_than(record, _SLOW_NS)),
    )


def prose(run: Run) -> Iterator[str]:
    """How slow the slowest was, how often one is slow, and what it was."""
    reads = single_pokes(run, "read")
    largest = reads[-1] if reads else None
    if largest is not None and largest.summary is not None and largest.summary.max is not None:
        yield _slowest(largest, largest.summary.max)
    empty = next((record for record in reads if not record.point.working_set_bytes), None)
    share = None if empty is None else slower_than(empty, _SLOW_NS)
    made_of = _made_of(run)
    limit = format_ns(_SLOW_NS, digits=2)
    if made_of is None and share:
        yield (
            f"1 in {format_count(1 / share)} empty pokes, which touch no memory, also took over "
            f"{limit}: the machine causes such delays, not the array."
        )
    elif made_of is None and share is not None:
        yield f"No empty poke took over {limit}."
    elif made_of is not None:
        also = f"; so did 1 in {format_count(1 / share)} empty pokes, which touch no memory" if share else ""
        yield f"{made_of}{also}."


def _slowest(record: Record, slowest: float) -> str:
    summary = record.summary
    text = (
        f"The slowest of {format_count(record.samples)} read pokes in {size_name(record)} took"
        f" {format_ns(slowest)}"
    )
    if summary is None or summary.mean is None or not summary.std:
        return text + "."
    text += f", {format_count((slowest - summary.mean) / summary.std)} standard deviations above the mean"
    expected = (normal_share(record, slowest) or 0.0) * record.samples
    never = 1e-6
    return text + ("; a normal distribution would never show it." if expected < never else ".")


def _made_of(run: Run) -> str | None:
    """The notebook's question answered: how often, and what it was. Nothing when no cause was looked for."""
    # The empty poke is the instrument's own, and has a sentence of its own.
    records = [record for record in single_pokes(run) if record.point.working_set_bytes]
    causes = slow_causes(records, _SLOW_NS)
    pokes = sum(record.samples for record in records)
    slow = round(sum(slower_than(record, _SLOW_NS) * record.samples for record in records))
    seconds = sum(block.duration_ns for record in records for block in record.blocks) / 1e9
    if causes is None or not slow:
        return None
    a_second = f", {format_count(slow / seconds)} a second" if seconds > 0 else ""
    return (
        f"1 poke in {format_count(pokes / slow)} took over {format_ns(_SLOW_NS, digits=2)}{a_second}:"
        f" {causes.shares()}"
    )


def _chart(name: str, title: str, operation: str, several: StairsOfSeveral) -> Chart[Pokes]:
    return Chart(
        id=name,
        title=title,
        caption=_CAPTION,
        probe=PROBE,
        measured=lambda run: _pokes(run, operation),
        picture=_picture,
        table=_table,
        several=several,
    )


def _by_name(run: Run, operation: str | None = None) -> dict[str, Record]:
    return {f"{r.point.operation or '?'}, {size_name(r)}": r for r in single_pokes(run, operation)}


_AT_LEAST: Final = "a poke takes at least this long"
TOPIC: Final = Topic(
    _chart(
        "pokes",
        "How often is a single poke slow, and is its distribution normal?",
        "read",
        StairsOfSeveral(lambda run: _by_name(run, "read"), _AT_LEAST),
    ),
    others=(
        _chart(
            "pokes_read_write",
            "Is writing back slower than reading alone?",
            "read-write",
            StairsOfSeveral(_by_name, _AT_LEAST),
        ),
        poke_histogram.CHART,
    ),
    prose=prose,
    listings=_listings,
)
