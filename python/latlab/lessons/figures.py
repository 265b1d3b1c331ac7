"""Figures of a lesson, with their spread and why there is none; tables, pictures and series of them.

Standard library only, as the plain-Python programs are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from latlab.units import (
    format_bytes,
    format_count,
    format_factor,
    format_ns,
    format_percent,
    format_rate,
    format_seconds,
)

#: From here on people count in minutes.
_LONG_S = 1000.0
#: What a cell's value counts. A ratio is a plain number, a share is 1 for all of it.
Unit = Literal["s", "bytes_per_s", "bytes", "count", "ratio", "share", "text"]
#: How a picture is drawn.
Kind = Literal["bars", "lines", "spans"]


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of the source.

    Attributes:
        text: Exactly as it is printed there.
        value: The same number in the cell's unit.
    """

    text: str
    value: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure.

    Attributes:
        unit: What `value` counts.
        value: The figure; a median where `repeats` is more than one. None where there is none.
        low: The smallest of the repeats.
        high: The largest of the repeats.
        repeats: How often it was measured.
        published: The published figure for the same.
        why: Why there is no figure, or what must be known of it.
    """

    unit: Unit = "s"
    value: float | str | None = None
    low: float | None = None
    high: float | None = None
    repeats: int = 0
    published: Published | None = None
    why: str = ""

    @classmethod
    def within(
        cls,
        unit: Unit,
        value: float,
        ends: Iterable[float],
        repeats: int,
        published: Published | None = None,
        why: str = "",
    ) -> Cell:
        """From the lowest to the highest of these values and itself."""
        ends = (value, *ends)
        return cls(unit, value, min(ends), max(ends), repeats, published, why)

    @property
    def number(self) -> float | None:
        """The value where it is a number."""
        return None if isinstance(self.value, str) else self.value

    @property
    def shown(self) -> str:
        """`1.98 ms (1.90 ms – 2.40 ms)`; `–` for none."""
        if self.value is None:
            return "–"
        if isinstance(self.value, str):
            return self.value
        text = written(self.value, self.unit)
        if self.low is None or self.high is None or self.repeats < 2:  # noqa: PLR2004 - one has no spread
            return text
        if self.unit == "s" and self.high >= _LONG_S:
            # One way of writing in one cell, also where only the longest counts in minutes.
            text, low, high = map(format_seconds, (self.number, self.low, self.high))
        elif self.unit == "bytes":
            three = (self.value, self.low, self.high)
            decimal = all(map(_is_decimal, three))
            text, low, high = (format_bytes(size, decimal=decimal) for size in three)
        else:
            low, high = written(self.low, self.unit), written(self.high, self.unit)
        return text if low == high else f"{text} ({low} – {high})"

    @property
    def spread_wide(self) -> bool:
        """Whether the largest of its repeats is more than twice the smallest."""
        return (
            self.repeats > 1
            and self.low is not None
            and self.high is not None
            and 0 < 2 * self.low < self.high
        )

    def above(self, value: float) -> bool:
        """Whether it is more than that by more than run-to-run variation."""
        return self.low is not None and self.low > value

    def below(self, value: float) -> bool:
        """Whether it is less likewise."""
        return self.high is not None and self.high < value

    def mark(self, label: str, series: str, x: float | None = None) -> Mark:
        """As a bar or a point of a picture.

        Raises:
            ValueError: there is no number to draw.
        """
        value = self.number
        if value is None:
            raise ValueError(f"{label}: there is no figure to draw ({self.why})")
        return Mark(label, value, series, x, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: For programs: `python`.
        title: For people: `Python`.
    """

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: its name and heading, and a cell for each column that it has a figure in."""

    name: str
    title: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the form of the source's, or one of ours.

    Attributes:
        name: For programs.
        title: What it shows.
        first: Heading of the column of row titles.
        columns: In order.
        rows: In order.
        original: Whether the source has this table.
        note: What must be known to read it.
    """

    name: str
    title: str
    first: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    original: bool = False
    note: str = ""

    def cell(self, row: str, column: str | None = None) -> Cell:
        """One cell; the column may be left out where there is only one.

        Raises:
            KeyError: there is none of that name.
        """
        for each in self.rows:
            if each.name == row and (column is not None or len(self.columns) == 1):
                return each.cells[column or self.columns[0].name]
        raise KeyError(row)

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known to read it, and why a cell has no figure, each reason once."""
        absent = (
            cell.why for row in self.rows for cell in row.cells.values() if cell.value is None and cell.why
        )
        return (*filter(None, (self.note,)), *(f"–: {why}" for why in dict.fromkeys(absent)))

    def headings(self) -> list[str]:
        """As shown: a column whose cells have published figures is followed by one of those."""
        return [self.first, *(title for title, _, _ in self._shown())]

    def lines(self) -> list[list[str]]:
        """As shown, row by row."""
        shown = list(self._shown())
        return [
            [row.title, *(show(row.cells.get(name, _NOTHING)) for _, name, show in shown)]
            for row in self.rows
        ]

    def _shown(self) -> Iterator[tuple[str, str, Callable[[Cell], str]]]:
        """Each column's heading, name, and what is shown of a cell."""
        for column in self.columns:
            yield column.title, column.name, lambda cell: cell.shown
            if any(each.cells.get(column.name, _NOTHING).published for each in self.rows):
                title = "published" if len(self.columns) == 1 else f"{column.title}, published"
                yield title, column.name, lambda cell: cell.published.text if cell.published else "–"


@dataclass(frozen=True, slots=True)
class Mark:
    """One bar, or one point of a line.

    Attributes:
        label: The bar's name.
        value: Its length, in the picture's unit.
        series: What it belongs to: a colour and a name in the legend.
        x: Where on the line it is.
        low: Smallest of the repeats.
        high: Largest of the repeats.
    """

    label: str
    value: float
    series: str
    x: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as data.

    Attributes:
        name: For programs and as an anchor.
        title: The question that it answers.
        kind: `bars` are horizontal, `lines` have an x, `spans` are bars from `low` to `high`.
        axis: What the values are.
        unit: Of the values.
        marks: In order.
        log: Whether the axis of values is logarithmic.
        x_axis: What x is.
        x_unit: Of x.
        x_log: Whether the axis of x is logarithmic.
        caption: How to read it.
        stepped: Series of lines that hold their value until the next x.
    """

    name: str
    title: str
    kind: Kind
    axis: str
    unit: Unit
    marks: tuple[Mark, ...]
    log: bool = True
    x_axis: str = ""
    x_unit: Unit = "bytes"
    x_log: bool = True
    caption: str = ""
    stepped: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the series, in the order in which they first occur."""
        return tuple(dict.fromkeys(mark.series for mark in self.marks))

    @property
    def words(self) -> str:
        """What it shows, for a reader who cannot see it."""
        kind = {"bars": "Horizontal bars", "lines": "Lines", "spans": "Bars from a beginning to an end"}[
            self.kind
        ]
        scale = ", logarithmic" if self.log else ""
        parts = (
            f"{written(mark.x or 0.0, self.x_unit) if self.kind == 'lines' else mark.label}"
            f"{f' ({mark.series})' if len(self.series) > 1 else ''}: {written(mark.value, self.unit)}"
            f"{f' from {written(mark.low or 0.0, self.unit)} on' if self.kind == 'spans' else ''}"
            for mark in self.marks
        )
        return f"{kind} of {self.axis}{scale}. {'; '.join(parts)}."


@dataclass(frozen=True, slots=True)
class Series:
    """Values that are kept one by one: the slowest of each kind.

    Attributes:
        name: For programs.
        unit: Of the values.
        values: In the order that the name says.
    """

    name: str
    unit: Unit
    values: tuple[float, ...]


def written(value: float, unit: Unit) -> str:
    """A figure with its unit, as people read it."""
    if unit == "s":
        return format_seconds(value) if value >= _LONG_S else format_ns(value * 1e9)
    if unit == "ratio":
        return f"{format_factor(value, 3)}x"
    return str(_WRITTEN[unit](value))


def _is_decimal(size: float) -> bool:
    """A power of ten is what somebody typed as decimal."""
    return size >= 1000 and size % 1000 == 0  # noqa: PLR2004


def _bytes(value: float) -> str:
    return format_bytes(value, decimal=_is_decimal(value))


_WRITTEN: dict[str, Any] = {
    "bytes_per_s": format_rate,
    "bytes": _bytes,
    "count": format_count,
    "share": format_percent,
    "text": str,
}
_NOTHING = Cell()
