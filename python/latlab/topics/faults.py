"""How long page faults take: the distribution of each kind on a log axis, with the modes that were found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from latlab.run.findings import findings, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns, format_percent
from latlab.view.distribution import counts
from latlab.view.plot import Drawing, Row
from latlab.view.points import place_in, quantile, with_figures
from latlab.view.table import Table, table_of
from latlab.view.topic import Chart, Topic

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

PROBE: Final = "vm.fault"
_OPERATIONS: Final = {
    "first-write": "first write",
    "first-read": "first read",
    "write-after-read": "write after a read",
    "copy-on-write": "write to a shared page",
    "recycled": "write after giving it back",
    "file-minor": "file in memory, mapped",
    "file-major": "file on disk, mapped",
}
#: Steps of the picture in a power of ten: modes 30 % apart are two hills.
_STEPS: Final = 16
_ROW_PIXELS: Final = 60
#: The highest hill of a row leaves room for the row above it.
_HILL: Final = 0.68
#: Modes nearer than this factor have no room for both names.
_APART: Final = 4.0
_PAGE: Final = 4096
#: A mode of fewer faults is a tail.
_WORTH_SAYING: Final = 0.1
_SIDES: Final[tuple[tuple[int, Literal["left", "center", "right"]], ...]] = (
    (-1, "right"),
    (0, "center"),
    (1, "left"),
)


@dataclass(frozen=True, slots=True)
class Mode:
    """One hump of a distribution: its middle in ns, its share, what it likely is."""

    at: float
    share: float
    likely: str


@dataclass(frozen=True, slots=True)
class Kind:
    """Faults of one kind: their name, their record, the humps found."""

    name: str
    record: Record
    modes: tuple[Mode, ...]


def kinds(run: Run) -> list[Kind]:
    """The kinds that were timed one by one, in the order above; huge pages after small ones."""
    records = [
        r for r in with_figures(run, PROBE, "per_op") if r.point.operation in _OPERATIONS and counts(r)
    ]
    records.sort(
        key=lambda r: (
            r.point.pages == "huge",
            place_in(_OPERATIONS, r.point.operation),
            r.point.size_bytes or 0,
        )
    )
    modes = {
        (entry.text("operation"), entry.text("pages"), entry.integer("size_bytes")): tuple(
            Mode(at, share, mode.text("likely") or "")
            for mode in entry.sections("modes")
            if (at := positive(mode, "p50_ns")) is not None
            and (share := positive(mode, "share")) is not None
            and share <= 1
        )
        for entry in findings(run, PROBE).sections("kinds")
    }
    # One operation may be there with faults of several sizes, each with modes of its own.
    return [
        Kind(_name(r), r, modes.get((r.point.operation, r.point.pages, r.point.size_bytes), ()))
        for r in records
    ]


def _name(record: Record) -> str:
    pages = {"4k": "4 KiB", "huge": "huge page"}.get(record.point.pages or "", "a page")
    size = format_bytes(record.point.size_bytes) if record.point.size_bytes else pages
    return f"{_OPERATIONS.get(record.point.operation or '', '')}, {size}"


def quantiles(record: Record) -> dict[str, float]:
    """Those that had samples enough, by name."""
    summary = record.summary
    if summary is None:
        return {}
    found = {"p50": summary.p50, "p99": summary.p99, "p99.9": summary.p999}
    return {name: value for name, value in found.items() if value is not None and 0 < value < math.inf}


def hills(record: Record) -> list[tuple[float, float]]:
    """The distribution as `(ns, height)`: counts in equal steps of the log axis, the highest being one."""
    bins: dict[int, int] = {}
    for at, count in counts(record):
        place = math.floor(math.log10(max(at, 0.1)) * _STEPS)
        bins[place] = bins.get(place, 0) + count
    if not bins:
        return []
    top = max(bins.values())
    first, last = min(bins), max(bins)
    places = {place for taken in bins for place in (taken - 1, taken, taken + 1)}
    return [
        (10 ** ((place + 0.5) / _STEPS), bins.get(place, 0) / top)
        for place in sorted(places)
        if first - 1 <= place <= last + 1
    ]


def _diamonds(kind: Kind, base: int) -> list[Row]:
    """The modes of a kind, with their names."""
    humps = kind.modes or tuple(Mode(at, 1.0, "") for at in list(quantiles(kind.record).values())[:1])
    # Where two modes lie side by side, their names stand away from each other.
    close = len(humps) > 1 and max(h.at for h in humps) < _APART * min(h.at for h in humps)
    middle = math.sqrt(max(h.at for h in humps) * min(h.at for h in humps)) if humps else 0.0
    marks = []
    for hump in humps:
        share = f" {format_percent(hump.share)}" if len(humps) > 1 else ""
        likely = f": {hump.likely}" if hump.likely else ""
        marks.append(
            {
                "x": hump.at,
                "y": base,
                "name": f"{format_ns(hump.at)}{share}",
                "side": (1 if hump.at > middle else -1) if close else 0,
                "text": f"{kind.name}: {format_ns(hump.at)}{share}{likely}",
            }
        )
    return marks


def _slow_end(kind: Kind, base: int) -> list[Row]:
    """The highest quantile that is known, where it is not the only one."""
    known = quantiles(kind.record)
    if len(known) <= 1:
        return []
    name, at = list(known.items())[-1]
    return [{"x": at, "y": base, "y2": base + 0.35, "name": f"{name} {format_ns(at)}"}]


def _picture(found: Sequence[Kind]) -> Drawing:
    parts = []
    for kind in found:
        known = ", ".join(f"{name} {format_ns(value)}" for name, value in quantiles(kind.record).items())
        humps = [f"{format_percent(mode.share)} around {format_ns(mode.at)}" for mode in kind.modes]
        several = f"; {' and '.join(humps)}" if len(humps) > 1 else ""
        parts.append(f"{kind.name}: {known}{several}")
    about = "Distributions of the time of single page faults, one a kind, on one logarithmic axis."
    return Drawing(f"{about} {'. '.join(parts)}.", lambda: _drawn(found))


def _drawn(found: Sequence[Kind]) -> AnyChart:
    """A hill a kind, all over one log axis; a diamond on each mode, a tick at p99.9 or the highest known."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view.axes import duration_x  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - as above

    rows: list[Row] = []
    marks: list[Row] = []
    ticks: list[Row] = []
    for number, kind in enumerate(found):
        base = len(found) - 1 - number
        rows += [
            {"series": number, "x": at, "low": base, "high": base + _HILL * height}
            for at, height in hills(kind.record)
        ]
        marks += _diamonds(kind, base)
        ticks += _slow_end(kind, base)
    places = [row["x"] for row in [*rows, *marks, *ticks]]
    x = duration_x("x", "one fault, logarithmic", min(places) / 1.5, max(places) * 2.5)
    # Names are constants of this file and sizes, never text of a run file: they may stand in an expression.
    names = [kind.name for kind in reversed(found)]
    axis = alt.Axis(
        values=list(range(len(found))),
        labelExpr=f"{names!r}[datum.value]",
        grid=True,
        ticks=False,
        domain=False,
        labelPadding=8,
        labelBaseline="bottom",
    )
    scale = alt.Scale(domain=[-0.28, len(found)], nice=False)
    low, high, y = (alt.Y(f"{f}:Q", title=None, scale=scale, axis=axis) for f in ("low", "high", "y"))
    shapes, modes, ends = alt.Chart(), alt.Chart(inline(marks)), alt.Chart(inline(ticks))
    detail = alt.Detail("series:O")
    layers = [
        shapes.mark_area(style="level", opacity=0.35, interpolate="monotone").encode(
            x=x, y=low, y2=alt.Y2("high:Q"), detail=detail
        ),
        shapes.mark_line(style="level", strokeWidth=1.3, interpolate="monotone").encode(
            x=x, y=high, detail=detail
        ),
        modes.mark_point(shape="diamond", size=70, filled=True, opacity=1, style="outlined").encode(
            x=x, y=y, tooltip=alt.Tooltip("text:N")
        ),
        *(
            modes.transform_filter(f"datum.side == {side}")
            .mark_text(style="name", dy=12, dx=-5 * side, align=align)
            .encode(x=x, y=y, text=alt.Text("name:N"))
            for side, align in _SIDES
        ),
    ]
    if ticks:
        layers += [
            ends.mark_rule(style="whisker").encode(x=x, y=y, y2=alt.Y2("y2:Q")),
            ends.mark_text(style="note", align="left", dx=4, dy=-12).encode(
                x=x, y=y, text=alt.Text("name:N")
            ),
        ]
    return layered(layers, data=inline(rows), width=560, height=_ROW_PIXELS * len(found) + 14)


def _table(found: Sequence[Kind]) -> Table:
    def mode(mode: Mode) -> str:
        likely = f" ({mode.likely})" if mode.likely else ""
        return f"{format_percent(mode.share)} around {format_ns(mode.at)}{likely}"

    return table_of(
        found,
        ("fault", "text", lambda kind: kind.name),
        ("faults", "count", lambda kind: kind.record.samples),
        ("p50", "ns", lambda kind: quantile(kind.record, "p50")),
        ("p90", "ns", lambda kind: quantile(kind.record, "p90")),
        ("p99", "ns", lambda kind: quantile(kind.record, "p99")),
        ("p99.9", "ns", lambda kind: quantile(kind.record, "p999")),
        ("slowest", "ns", lambda kind: quantile(kind.record, "max")),
        ("modes", "text", lambda kind: "; ".join(map(mode, kind.modes))),
    )


def prose(run: Run) -> Iterator[str]:
    """The first write to a small page, with its modes, or to a huge one."""
    found = {(kind.record.point.operation, kind.record.point.pages): kind for kind in kinds(run)}
    first = found.get(("first-write", "4k"))
    if first is None or not first.record.value:
        return
    value = first.record.value
    yield (
        f"The first write to a 4 KiB page costs {format_ns(value)}: new memory costs "
        f"{format_ns(value * 2**20 / _PAGE)} per MiB."
    )
    humps = sorted((mode for mode in first.modes if mode.share >= _WORTH_SAYING), key=lambda mode: mode.at)
    huge = found.get(("first-write", "huge"))
    if len(humps) > 1:
        likely = f": likely {humps[-1].likely}" if humps[-1].likely else ""
        yield f"{format_percent(humps[-1].share)} of these faults take {format_ns(humps[-1].at)}{likely}."
    elif huge is not None and huge.record.value and huge.record.point.size_bytes:
        size, cost = huge.record.point.size_bytes, huge.record.value
        each = format_ns(cost * _PAGE / size)
        yield f"The first write to a page of {format_bytes(size)} costs {format_ns(cost)}: {each} per 4 KiB."


TOPIC: Final = Topic(
    Chart(
        id="faults",
        title="What does the first touch of a page cost?",
        caption="One curve per kind of fault: high where many faults took that long. A diamond marks "
        "each mode with its share; a stroke marks the slow end.",
        probe=PROBE,
        measured=kinds,
        picture=_picture,
        table=_table,
    ),
    prose=prose,
)
