"""Table cells as people read them, and as a spreadsheet reads them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

from latlab.units import format_bytes, format_count, format_ns, format_percent, format_rate
from latlab.view.table import Cell, Quantity, Table

_NONE = "–"
# `1.06 s (1.05–1.07 s)`.
_SPREAD = re.compile(r"([^()]+) (\([^()]+–[^()]+\))")
_UNITS: dict[Quantity, str] = {"bytes": "bytes", "ns": "ns", "bytes_per_s": "bytes/s", "seconds": "s"}
# A spreadsheet runs what begins so; a leading apostrophe makes it text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def shown(cell: Cell, quantity: Quantity) -> str:
    """`4 KiB`, `1.06 ns`, `39.1 GB/s`, `1.2 %`; `–` for none."""
    if cell is None or cell == "":
        return _NONE
    if isinstance(cell, str):
        return cell
    return _WRITTEN[quantity](cell)


def _number(value: float) -> str:
    return format_count(value) if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def _seconds(value: float) -> str:
    return format_ns(value * 1e9)


def figure_and_spread(cell: Cell) -> tuple[str, str] | None:
    """`1.06 s` and `(1.05–1.07 s)`, between which alone such a cell is broken; None for other cells."""
    found = _SPREAD.fullmatch(cell) if isinstance(cell, str) else None
    return None if found is None else (found[1].replace(" ", "\u00a0"), found[2])


def _share(share: float) -> str:
    """A percentage, or `1 in 16,700` where a percentage would be all zeros."""
    if share < 1e-12:  # noqa: PLR2004 - less than once in any run
        return "0"
    return f"1 in {format_count(1 / share)}" if share < 0.001 else format_percent(share)  # noqa: PLR2004


def is_number(quantity: Quantity) -> bool:
    """Whether a column is aligned to the right."""
    return quantity != "text"


def as_csv(table: Table) -> str:
    """CSV with the unit in each heading and plain numbers; text that a spreadsheet would run is quoted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_safe(_heading(column.title, column.quantity)) for column in table.columns])
    for row in table.rows:
        writer.writerow(
            [_safe(cell) if isinstance(cell, str) else "" if cell is None else repr(cell) for cell in row]
        )
    return out.getvalue()


def _heading(title: str, quantity: Quantity) -> str:
    unit = _UNITS.get(quantity)
    return f"{title} ({unit})" if unit else title


def _safe(text: str) -> str:
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text


_WRITTEN: dict[Quantity, Callable[[float], str]] = {
    "text": str,
    "bytes": format_bytes,
    "ns": format_ns,
    "seconds": _seconds,
    "bytes_per_s": format_rate,
    "count": format_count,
    "number": _number,
    "share": _share,
}
