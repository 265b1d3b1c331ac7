"""The ladder: what one access costs at each level, with its tail and the textbook's figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from latlab.run.distance import DISTANCE_M, FLOOR_NS, USUAL_NS
from latlab.run.operations import PACKET
from latlab.run.run import Run
from latlab.run.rung import Rung, apart, flagged
from latlab.units import format_count, format_ns, format_span, format_stated
from latlab.view.plot import Drawing
from latlab.view.points import drawable
from latlab.view.prose import sentence
from latlab.view.table import Listing, Table, table_of
from latlab.view.topic import Chart, Topic

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

#: Legend entry, shape; in this order.
_MARKS = (
    ("slow end of single accesses", "circle"),
    ("slow end of window means", "square"),
    ("textbook", "diamond"),
    ("light in fibre: the physical minimum", "triangle-right"),
    ("usual", "triangle-up"),
)

#: Pixels a row: bars keep their distance where there are few, and fit on a page where there are many.
_TALL, _LOW, _MANY = 44, 30, 9
#: Pixels between names, figures and bars, and of a character of a figure.
_GAP, _CHARACTER = 8, 7
#: The shortest bar is as long as this factor.
_ROOM = 3.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What is drawn of a run.

    Attributes:
        bars: See `bars`.
        everything: Every rung, measured or not.
        packet: Marks of the row of a packet; none where the network was not measured.
        legend: Whether the picture says what its marks are; else its caption does.
    """

    bars: list[Rung]
    everything: list[Rung]
    packet: list[dict[str, Any]]
    legend: bool = True


def shown(run: Run) -> Shown | None:
    """What is drawn; None where nothing was measured."""
    found = bars(run)
    return Shown(found, run.ladder(), _packet(run)) if found else None


def bars(run: Run) -> list[Rung]:
    """The measured levels, or the pokes when no level was measured; then the operations."""
    levels, operations = levels_and_operations(
        [rung for rung in run.ladder() if drawable(rung.latency_p50_ns)]
    )
    return levels + operations


def levels_and_operations(rungs: list[Rung]) -> tuple[list[Rung], list[Rung]]:
    """The levels without the pokes, or the pokes where there are no others; and the operations."""
    levels = [rung for rung in rungs if rung.group == "levels"]
    operations = [rung for rung in rungs if rung.group == "operations"]
    return [rung for rung in levels if not rung.key.startswith("poke:")] or levels, operations


def label(rung: Rung) -> str:
    """The figure as it stands beside the bar: a range where there was no single level."""
    if rung.is_range and rung.interval is not None:
        return format_span(*rung.interval, partial(format_ns, digits=2))
    return format_ns(rung.latency_p50_ns)


def picture(found: Shown) -> Drawing:
    """A bar a level."""
    parts = []
    for rung in found.bars:
        textbook = f", textbook {format_ns(rung.textbook_ns)}" if rung.textbook_ns is not None else ""
        parts.append(f"{rung.level} {label(rung)}{textbook}")
    if found.packet:
        parts.append(
            f"{PACKET}, references: light in fibre {format_ns(FLOOR_NS)}, usual {format_ns(USUAL_NS)}"
        )
    about = "Bar chart on a logarithmic axis: time of one access at each level."
    return Drawing(f"{about} {'; '.join(parts)}.", lambda: _drawn(found))


def _drawn(found: Shown) -> AnyChart:
    """One bar a level on a log axis; a bar's length is a number of powers of ten."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes, drawing  # noqa: PLC0415 - as above

    values = [_bar(rung) for rung in found.bars]
    marks = [mark for rung in found.bars for mark in _marks(rung)]
    marks += found.packet
    floor = min([*(row["from"] for row in values), *(mark["x"] for mark in marks)]) / _ROOM
    top = 1.6 * max(row["to"] for row in [*values, *({"to": mark["x"]} for mark in marks)])
    for row in values:
        row["floor"] = floor
    title = "one access, logarithmic"
    bar_from, figure_to, whisker_from, mark_at = (
        axes.duration_x(field, title, floor, top) for field in ("floor", "from", "since", "x")
    )
    names = list(dict.fromkeys(row["name"] for row in [*values, *marks]))
    # Between the names and the bars the figures have a column, where no mark can lie over them.
    figures = _CHARACTER * max(len(row["figure"]) for row in values) + _GAP
    y = axes.names_y("name", names, {"labelFontSize": 13, "labelPadding": figures + _GAP})
    tip = alt.Tooltip("text:N")
    bars = alt.Chart(drawing.inline(values))
    ranges = bars.transform_filter("datum.to > datum.from")
    layers: list[alt.Chart] = [
        *(
            bars.transform_filter(f"datum.group == '{group}'")
            .mark_bar(style=style, height=22)
            .encode(x=bar_from, x2=alt.X2("from:Q"), y=y, tooltip=tip)
            for group, style in (("levels", "level"), ("operations", "operation"))
        ),
        ranges.mark_bar(style="range", height=22).encode(x=figure_to, x2=alt.X2("to:Q"), y=y, tooltip=tip),
        bars.mark_text(style="name", align="right", dx=-_GAP, fontWeight=600, fontSize=12).encode(
            x=alt.value(0), y=y, text=alt.Text("figure:N")
        ),
    ]
    if marks:
        present = [entry for entry in _MARKS if any(mark["mark"] == entry[0] for mark in marks)]
        shapes = alt.Scale(domain=[name for name, _ in present], range=[drawn for _, drawn in present])
        outlined = alt.Legend(title=None, columns=1, symbolStrokeWidth=1.8) if found.legend else None
        data = alt.Chart(drawing.inline(marks))
        whiskers = data.transform_filter("isNumber(datum.since) && datum.since < datum.x")
        points = data.mark_point(size=70, filled=True, opacity=1, style="outlined")
        layers += [
            whiskers.mark_rule(style="whisker").encode(x=whisker_from, x2=alt.X2("x:Q"), y=y),
            points.encode(
                x=mark_at, y=y, shape=alt.Shape("mark:N", legend=outlined, scale=shapes), tooltip=tip
            ),
        ]
    return drawing.layered(layers, width=620, height=(_TALL if len(names) < _MANY else _LOW) * len(names))


def _bar(rung: Rung) -> dict[str, Any]:
    low = high = rung.latency_p50_ns or 0.0
    if rung.is_range and rung.interval is not None and all(map(drawable, rung.interval)):
        low, high = rung.interval
    name = f"{rung.level} · {rung.size_text}" if rung.size_text else rung.level
    stated = (
        label(rung)
        if rung.is_range
        else format_stated(rung.latency_p50_ns, rung.interval, why_none=rung.why_no_interval)
    )
    return {
        "name": name,
        "group": rung.group,
        "from": low,
        "to": high,
        "figure": label(rung),
        "text": f"{name}: {stated}",
    }


def _marks(rung: Rung) -> list[dict[str, Any]]:
    row = _bar(rung)
    marks: list[dict[str, Any]] = []
    if rung.tail is not None:
        kind = (
            "slow end of single accesses"
            if rung.tail.kind == "single accesses"
            else "slow end of window means"
        )
        text = f"{rung.tail.quantile} of {rung.tail.kind}: {format_ns(rung.tail.value_ns)}"
        marks.append(
            {"name": row["name"], "mark": kind, "since": row["to"], "x": rung.tail.value_ns, "text": text}
        )
    if rung.textbook_ns is not None:
        text = f"textbook: {format_ns(rung.textbook_ns)}"
        marks.append(
            {"name": row["name"], "mark": "textbook", "since": None, "x": rung.textbook_ns, "text": text}
        )
    return [mark for mark in marks if drawable(mark["x"])]


def _packet(run: Run) -> list[dict[str, Any]]:
    """What a packet to the other side of an ocean takes: references, where the network was looked at."""
    if not any(record.probe.startswith("network.") for record in run.records):
        return []
    references = {
        "light in fibre: the physical minimum": (FLOOR_NS, f"great circle of {DISTANCE_M / 1000:,.0f} km"),
        "usual": (USUAL_NS, "with detours and routers, not measured here"),
    }
    return [
        {"name": PACKET, "mark": mark, "since": None, "x": ns, "text": f"{mark}: {format_ns(ns)}, {how}"}
        for mark, (ns, how) in references.items()
    ]


def table(found: Shown) -> Table:
    """Every rung, the pokes included."""
    return table_of(
        found.everything,
        ("level", "text", lambda rung: rung.level),
        ("holds", "text", lambda rung: rung.size_text),
        ("one access, median", "ns", lambda rung: rung.latency_p50_ns),
        ("from", "ns", lambda rung: rung.interval[0] if rung.interval else None),
        ("to", "ns", lambda rung: rung.interval[1] if rung.interval else None),
        ("which is", "text", lambda rung: rung.interval_kind if rung.interval else None),
        ("slow end", "ns", lambda rung: rung.tail_ns),
        (
            "slow end is",
            "text",
            lambda rung: f"{rung.tail.quantile} of {rung.tail.kind}" if rung.tail else rung.refused,
        ),
        ("one thread reads", "bytes_per_s", lambda rung: rung.bandwidth),
        ("1 MiB takes", "seconds", lambda rung: rung.seconds_1MiB),
        ("1 GiB takes", "seconds", lambda rung: rung.seconds_1GiB),
        ("L1 hits", "number", lambda rung: rung.l1_hits),
        ("textbook", "ns", lambda rung: rung.textbook_ns),
        ("samples", "count", lambda rung: rung.samples or None),
        ("note", "text", lambda rung: rung.note),
        ("group", "text", lambda rung: rung.group),
    )


def _levels(rungs: list[Rung]) -> Table:
    """Of a level that was not measured the note says why."""
    return table_of(
        rungs,
        ("level", "text", lambda rung: f"{rung.level}, {rung.size_text}" if rung.size_text else rung.level),
        ("one access", "ns", _median),
        ("95 % interval, or spread", "text", _interval),
        ("slow end", "ns", lambda rung: rung.tail_ns),
        (
            "which is",
            "text",
            lambda rung: f"{rung.tail.quantile}, {rung.tail.kind}" if rung.tail else rung.refused,
        ),
        ("one thread reads", "bytes_per_s", lambda rung: rung.bandwidth),
        ("1 MiB takes", "seconds", lambda rung: rung.seconds_1MiB if rung.measured else None),
        ("1 GiB takes", "seconds", lambda rung: rung.seconds_1GiB if rung.measured else None),
        ("= L1 hits", "number", lambda rung: rung.l1_hits),
        ("textbook", "ns", lambda rung: rung.textbook_ns),
    )


def _operations(rungs: list[Rung]) -> Table:
    """The slow end of a mean is not that of single operations."""
    kinds = {"single accesses": "single operations"}
    return table_of(
        rungs,
        ("operation", "text", lambda rung: rung.name),
        ("one", "ns", _median),
        ("95 % interval, or spread", "text", _interval),
        ("slow end", "ns", lambda rung: rung.tail_ns),
        (
            "which is",
            "text",
            lambda rung: (
                f"{rung.tail.quantile}, {kinds.get(rung.tail.kind, 'window means')}"
                if rung.tail
                else rung.refused
                if rung.measured
                else None
            ),
        ),
        ("= L1 hits", "number", lambda rung: rough(rung.l1_hits)),
        ("textbook", "ns", lambda rung: rung.textbook_ns),
    )


def _median(rung: Rung) -> float | str | None:
    return "a range" if rung.is_range and rung.measured else rung.latency_p50_ns


def listings(run: Run) -> Iterator[Listing]:
    """The levels; and the operations where there are any."""
    levels, operations = levels_and_operations(run.ladder())
    yield Listing("The ladder", _levels(levels), _notes(levels))
    if operations:
        table = _operations(operations)
        yield Listing("Operations that a program requests, on the same scale", table, _notes(operations))


def evidence(run: Run) -> Iterator[str]:
    """What must be known of a level, and where the textbook's figures are from."""
    levels, operations = levels_and_operations(run.ladder())
    measured = [rung for rung in (*levels, *operations) if rung.measured]
    yield from (sentence(f"{rung.level}: {rung.note}") for rung in measured if rung.note)
    yield from map(sentence, flagged(measured))
    sources = {rung.textbook_source for rung in (*levels, *operations) if rung.textbook_source}
    yield from (sentence(f"Textbook: {source}") for source in sorted(sources))


def _notes(rungs: list[Rung]) -> tuple[str, ...]:
    return tuple(sentence(line) for line in apart(rungs))


def prose(run: Run) -> Iterator[str]:
    """The nearest level and the farthest, and some operations in the same measure."""
    found = shown(run)
    levels = [rung for rung in found.bars if rung.group == "levels"] if found else []
    if found is None or len(levels) < 2:  # noqa: PLR2004 - nothing to compare
        return
    first, last = levels[0], levels[-1]
    text = (
        f"The nearest level, {first.level}, answers in {format_ns(first.latency_p50_ns)}; the "
        f"farthest one measured, in {format_ns(last.latency_p50_ns)}"
    )
    yield text + (f", as long as {format_count(last.l1_hits)} L1 hits." if last.l1_hits else ".")
    hits = {rung.key: rung.l1_hits for rung in found.bars}
    parts = [
        f"{name} {format_count(rough(cost))}"
        for key, name in (
            ("syscall", "a system call"),
            ("page-fault", "a page fault"),
            ("thread", "a thread"),
        )
        if (cost := hits.get(key)) is not None
    ]
    if parts:
        yield f"On the same scale: {', '.join(parts)}."


def _interval(rung: Rung) -> str | None:
    """Its ends, with what they are of where that is no 95 % interval: `1.05 – 1.07 ns over its sizes`."""
    if rung.interval is None or not rung.measured:
        return rung.why_no_interval if rung.measured else rung.note
    of_what = rung.interval_kind.removeprefix("spread ")
    ends = format_span(*rung.interval)
    return ends if of_what == rung.interval_kind else f"{ends} {of_what}"


def rough(ratio: float | None) -> float | None:
    """Three digits, which is more than a ratio of two medians is worth."""
    return None if ratio is None else float(f"{ratio:.3g}")


TOPIC: Final = Topic(
    Chart(
        id="ladder",
        title="What does one access cost at each level of this machine?",
        caption="Levels of memory first; below them, operations of the kernel, the allocator and "
        "other CPUs. Each grid line is ten times the one before. Whiskers reach to the slow end: "
        "p99.9, or the highest percentile with enough samples. The slow end of window means is not "
        "the tail of individual accesses: a window averages slow ones away.",
        probe="memory.load.dependent",
        measured=shown,
        picture=picture,
        table=table,
    ),
    prose=prose,
    listings=listings,
    evidence=evidence,
)
