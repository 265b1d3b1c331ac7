"""What a chart shows, before a medium draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from latlab.units import format_bytes_of_point, format_count, format_ns, format_rate
from latlab.view import distribution
from latlab.view.points import Spot, drawable, is_disturbed, quantile
from latlab.view.table import Column, Quantity, Table, of_range, range_cells, table_of

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.view.drawing import AnyChart

Unit: TypeAlias = Literal["bytes", "bytes_per_s", "count", "ns", "per_s"]
Lines: TypeAlias = Mapping[str, Sequence[Spot]]
Row: TypeAlias = dict[str, Any]

#: Rows of dots that are drawn.
_MOST_DOTS: Final = 40
_WRITTEN: Final[dict[Unit, Callable[[float], str]]] = {
    "bytes": lambda size: format_bytes_of_point(round(size)),
    "bytes_per_s": format_rate,
    "count": format_count,
    "ns": format_ns,
    "per_s": format_count,
}


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis; planes beside each other that have the same one have the same ends.

    Attributes:
        title: What it counts.
        unit: Of its values.
        down: Room below the smallest value, as a factor of it.
        up: Room above the largest likewise.
        names: Room for names above that, likewise.
        zero: In equal steps from zero; a logarithm otherwise.
        clip: Ranges and slow ends beyond so many times the largest median are not drawn: they would press
            all curves flat.
        ticks: Counts that have a label, where not all that were measured have.
    """

    title: str
    unit: Unit
    down: float = 1.25
    up: float = 1.25
    names: float = 1.0
    zero: bool = False
    clip: float = float("inf")
    ticks: tuple[int, ...] = ()

    def write(self, value: float) -> str:
        """The value with its unit."""
        return _WRITTEN[self.unit](value)

    @property
    def quantity(self) -> Quantity:
        """The same in a table."""
        return "count" if self.unit == "per_s" else self.unit


class Ends(NamedTuple):
    """Where a plane ends."""

    left: float
    right: float
    bottom: float
    top: float

    def hold(self, x: float, y: float) -> bool:
        """Whether a place lies inside."""
        return self.left < x < self.right and self.bottom < y < self.top


@dataclass(frozen=True, slots=True)
class Mark:
    """Something beside the curves: rings, rules, spans, names; nothing without rows.

    Attributes:
        kind: `point`, `rule`, `rect`, `text`, `line`, `area`, `bar` or `tick`.
        rows: What is drawn, one each.
        at: Fields of a row by what they decide (`x`, `y`, `x2`, `y2`, `color`, `shape`, `text`, `tooltip`).
            A name alone is read on the plane's own axis or legend; `name:Q` or `name:N` is a place on it.
        look: How it looks.
        only: A condition on rows, as an expression of Vega.
        first: The first row alone, and this is its `name`.
        under: Below the curves.
    """

    kind: str
    rows: Sequence[Row]
    at: Mapping[str, str]
    look: Mapping[str, Any] = field(default_factory=dict)
    only: str = ""
    first: str = ""
    under: bool = False


def rings(rows: Sequence[Row], size: int, **name: Any) -> list[Mark]:  # noqa: ANN401 - how a name looks
    """Circles at `x`, `value`, explained by `text`; `name` beside each where it is said how that looks."""
    look = {"shape": "circle", "size": size, "filled": False, "style": "crossed"}
    marks = [Mark("point", rows, {"x": "x", "y": "value", "tooltip": "text:N"}, look)]
    if name:
        marks.append(Mark("text", rows, {"x": "x", "y": "value", "text": "name:N"}, {"style": "name"} | name))
    return marks


def labelled(kind: str, rows: Sequence[Row], style: str, /, **name: Any) -> list[Mark]:  # noqa: ANN401 - how it looks
    """Spans (`rect`) or rules at `x` below the curves, `name` beside each at the height `y`."""
    at = {"x": "x", "x2": "x2:Q"} if kind == "rect" else {"x": "x"}
    text = {"x": "x", "y": "y:Q", "text": "name:N"}
    return [Mark(kind, rows, at, {"style": style}, under=True), Mark("text", rows, text, name, under=True)]


def _no_marks(_ends: Ends) -> Iterable[Mark]:
    return ()


@dataclass(frozen=True, slots=True)
class Plane:
    """Named curves with the range of each of their points; a cross marks those that were disturbed.

    Attributes:
        x: Across.
        y: Upwards.
        lines: The curves, ascending in x.
        hover: What is said of a point, with places for `{x}` and `{y}`.
        about: What it shows, for a reader who cannot see it.
        said: What is said there of the ends of each curve, `{s}` unless x is one; nothing where empty.
        after: What is said there at the end.
        marks: What else is drawn.
        slow: A slower quantile of the same curves, thin and hollow; then without ranges.
        names: All curves of a picture whose planes share colours; those of this one where empty.
        tails: Whether points have a slow end, which is drawn thin.
        title: Above it.
        width: Pixels.
        height: Pixels.
        columns: Of the legend; as many as are likely to fit where None.
    """

    x: Axis
    y: Axis
    lines: Lines
    hover: str = "{x}: {y}"
    about: str = ""
    said: str = "{y} at {x}"
    after: str = ""
    marks: Callable[[Ends], Iterable[Mark]] = _no_marks
    slow: Lines | None = None
    names: Sequence[str] = ()
    tails: bool = False
    title: str | None = None
    width: int = 720
    height: int = 340
    columns: int | None = None

    def spots(self) -> list[Spot]:
        """All points of all curves."""
        return list(chain.from_iterable([*self.lines.values(), *(self.slow or {}).values()]))

    def says(self, spot: Spot) -> str:
        """What is said of a point."""
        return self.hover.format(x=self.x.write(spot.x), y=spot.stated(self.y.write))

    @property
    def ends(self) -> str:
        """Every curve by its ends: `read: 464 GB/s at 24 KiB to 38.7 GB/s at 1 GiB`."""
        parts = []
        for name, curve in self.lines.items():
            spots = [curve[0], curve[-1]] if len(curve) > 1 else curve
            parts.append(f"{name}: {' to '.join(map(self._reported, spots))}")
        return "; ".join(parts)

    def _reported(self, spot: Spot) -> str:
        plural = "" if spot.x == 1 else "s"
        return self.said.format(x=self.x.write(spot.x), y=self.y.write(spot.value), s=plural)

    @property
    def words(self) -> str:
        """What it shows, with the ends of its curves."""
        ends = f"{self.ends}." if self.said else ""
        return " ".join(part for part in (self.about, ends, self.after) if part)

    def table(self, at: str) -> Table:
        """Every point of every curve; `at` is what x is called."""
        return as_table(self.lines, Column(at, self.x.quantity), self.y.quantity)


@dataclass(frozen=True, slots=True)
class Beside:
    """Planes side by side.

    Attributes:
        planes: From left to right.
        words: What they show, for a reader who cannot see it.
        own_colours: Whether a colour means something else in each.
        spacing: Pixels between them.
    """

    planes: Sequence[Plane]
    words: str
    own_colours: bool = False
    spacing: int = 24


class Stair(NamedTuple):
    """A distribution: its panel, its name in the legend, and its name where there are no panels."""

    panel: str
    name: str
    spoken: str
    record: Record


@dataclass(frozen=True, slots=True)
class Stairs:
    """How often something takes at least how long, both axes logarithmic; panels side by side.

    Attributes:
        stairs: The distributions; of one panel without a name there is one plane.
        x: Title of the times.
        y: Title of the shares.
        about: What it shows, for a reader who cannot see it; its figures follow.
        names: Order of the legend; as they come where empty.
        most: Points of one staircase that are embedded.
        fewer: So many of these, where a page has room for no more.
        height: Pixels.
    """

    stairs: Sequence[Stair]
    x: str
    y: str
    about: str
    names: Sequence[str] = ()
    most: int = distribution.MOST_STEPS
    fewer: int | None = None
    height: int = 320

    @property
    def words(self) -> str:
        """What it shows with the median and the slowest of each."""
        return f"{self.about} {distribution.in_words(self._spoken())}."

    def table(self, what: str) -> Table:
        """Points of every staircase, fewer than are drawn."""
        return distribution.table(self._spoken(), what)

    def _spoken(self) -> dict[str, Record]:
        return {stair.spoken: stair.record for stair in self.stairs}


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of times: its row, its parts, and what is said of each; beside it stands their sum."""

    row: str
    parts: Mapping[str, float]
    says: Callable[[str, float], str]


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars from zero by panel, each with its own axis of times; the rows of all are the same.

    Attributes:
        panels: The bars by the panel's title.
        parts: All parts, in the order of their colours.
        x: Title of each axis.
        words: What they show, for a reader who cannot see it.
    """

    panels: Mapping[str, Sequence[Bar]]
    parts: Sequence[str]
    x: str
    words: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A row of such a picture.

    Attributes:
        name: What it is.
        value: Its median, ns.
        low: Lower end of the median's 95 % interval.
        high: Upper end likewise.
        tail: The slow end of single operations, ns; absent for window means.
        tail_name: Which quantile that is.
        samples: Values behind it.
        disturbed: Something else ran while it was measured.
    """

    name: str
    value: float
    low: float
    high: float
    tail: float | None
    tail_name: str
    samples: int
    disturbed: bool

    @property
    def words(self) -> str:
        """`thread, started and joined: 42.1 µs, p99 61.0 µs`."""
        tail = f", {self.tail_name} {format_ns(self.tail)}" if self.tail is not None else ""
        return f"{self.name}: {format_ns(self.value)}{tail}"


def dot(name: str, record: Record) -> Dot:
    """The row of a record that has a figure."""
    value = record.value or 0.0
    ends = [value, *filter(drawable, record.interval or ())]
    tail, tail_name = None, ""
    for which in ("p99", "p90") if record.kind == "per_op" else ():
        slow = quantile(record, which)
        if drawable(slow) and slow >= value:
            tail, tail_name = slow, which
            break
    return Dot(name, value, min(ends), max(ends), tail, tail_name, record.samples, is_disturbed(record))


@dataclass(frozen=True, slots=True)
class Dots:
    """Unlike things side by side: a row each, a dot at its cost on a log axis, a whisker to its slow end.

    Attributes:
        dots: From top to bottom.
        x: Title of the axis of times.
        about: What it shows, for a reader who cannot see it; its figures follow.
    """

    dots: Sequence[Dot]
    x: str
    about: str

    @property
    def drawn(self) -> Sequence[Dot]:
        """What fits on a page of paper."""
        return self.dots[:_MOST_DOTS]

    @property
    def words(self) -> str:
        """What it shows, with its figures."""
        return f"{self.about} {'; '.join(dot.words for dot in self.drawn)}."

    def table(self, heading: str) -> Table:
        """Every row."""
        return table_of(
            self.dots,
            (heading, "text", lambda row: row.name),
            ("median", "ns", lambda row: row.value),
            *of_range("ns", lambda row: row),
            ("slow end", "ns", lambda row: row.tail),
            ("which is", "text", lambda row: row.tail_name or None),
            ("samples", "count", lambda row: row.samples),
            ("disturbed", "text", lambda row: yes_or_no(row.disturbed)),
        )


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of which there is no other: what it shows in words, and what draws it."""

    words: str
    draw: Callable[[], AnyChart]


Picture: TypeAlias = Plane | Beside | Stairs | Bars | Dots | Drawing


def as_table(lines: Lines, x: Column, quantity: Quantity) -> Table:
    """Every point of every curve."""
    ends = (Column("95 % from", quantity), Column("95 % to", quantity))
    columns = (Column("series"), x, Column("median", quantity), *ends, Column("samples", "count"))
    rows = tuple(
        (name, spot.x, spot.value, *range_cells(spot.low, spot.high), spot.samples, yes_or_no(spot.disturbed))
        for name, curve in lines.items()
        for spot in curve
    )
    return Table((*columns, Column("disturbed")), rows)


def yes_or_no(held: bool) -> str:
    """A cell of a table."""
    return "yes" if held else "no"
