"""The figures of a chart as rows, for readers who do not see the picture, and for spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from latlab.units import ONCE

#: What a column holds, which decides how a value is written: `bytes` as `4 KiB`, `ns` as `1.06 ns`.
Quantity = Literal["text", "bytes", "ns", "bytes_per_s", "count", "number", "share", "seconds"]
Cell = str | float | int | None

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, and what its values are."""

    title: str
    quantity: Quantity = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values; a figure that does not exist is `None`."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Listing:
    """A table that is shown as such, with what must be known to read it, a line each."""

    title: str
    table: Table
    notes: tuple[str, ...] = ()


def range_cells(low: float, high: float) -> tuple[Cell, Cell]:
    """Two cells for the ends of an interval; `measured once` where both are the figure itself."""
    return (low, high) if low < high else (ONCE, None)


def table_of(items: Iterable[T], *columns: tuple[str, Quantity, Callable[[T], Cell]]) -> Table:
    """A row for each item: a column is its heading, what its values are, and its value of an item."""
    heads = tuple(Column(title, quantity) for title, quantity, _ in columns)
    return Table(heads, tuple(tuple(value(item) for _, _, value in columns) for item in items))


class Ranged(Protocol):
    """What has an interval."""

    @property
    def low(self) -> float:
        """Its lower end."""

    @property
    def high(self) -> float:
        """Its upper end."""


def of_range(
    quantity: Quantity,
    of: Callable[[Any], Ranged],  # mypy infers no item through an unpacked argument
) -> tuple[tuple[str, Quantity, Callable[[Any], Cell]], tuple[str, Quantity, Callable[[Any], Cell]]]:
    """The two columns of :func:`table_of` for an interval."""
    return (
        ("95 % from", quantity, lambda item: range_cells(of(item).low, of(item).high)[0]),
        ("95 % to", quantity, lambda item: range_cells(of(item).low, of(item).high)[1]),
    )


def listed(
    title: str, items: Sequence[T], *columns: tuple[str, Quantity, Callable[[T], Cell]]
) -> tuple[Listing, ...]:
    """Such a table to be shown; none without items."""
    return (Listing(title, table_of(items, *columns)),) if items else ()
