"""The figures of a chart as rows, for readers who do not see the picture, and for spreadsheets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from latlab.units import ONCE

#: What a column holds, which decides how a value is written: `bytes` as `4 KiB`, `ns` as `1.06 ns`.
Quantity = Literal["text", "bytes", "ns", "bytes_per_s", "count", "number", "share", "seconds"]
Cell = str | float | int | None


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


def range_cells(low: float, high: float) -> tuple[Cell, Cell]:
    """Two cells for the ends of an interval; `measured once` where both are the figure itself."""
    return (low, high) if low < high else (ONCE, None)
