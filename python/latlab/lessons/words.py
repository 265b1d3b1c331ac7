"""Figures inside sentences. Of one whose spread is twofold only the spread is said: it is no figure."""

from __future__ import annotations

from latlab.lessons.figures import Cell, written
from latlab.units import format_factor, format_rate


def ratio(cell: Cell, digits: int = 2) -> str:
    """`75 times`, with the spread of the rounds: `75 times (70 – 81)`; or `15 to 50 times`."""
    value = cell.number
    if value is None:
        return "an unknown number of times"
    text = f"{format_factor(value, digits)} times"
    if cell.low is None or cell.high is None or cell.repeats < 2:  # noqa: PLR2004 - one has no spread
        return text
    low, high = format_factor(cell.low, digits), format_factor(cell.high, digits)
    return f"{low} to {high} times" if cell.spread_wide else f"{text} ({low} – {high})"


def said(cell: Cell) -> str:
    """`7.6 % (7.3 % – 7.8 %)`, or `3 % to 9 %`."""
    if cell.spread_wide and cell.low is not None and cell.high is not None:
        return f"{written(cell.low, cell.unit)} to {written(cell.high, cell.unit)}"
    return cell.shown


def rate(bytes_per_s: float) -> str:
    """`2.1 GB/s`."""
    return format_rate(bytes_per_s, digits=2)


def figure(cell: Cell) -> str:
    """The figure alone, without its spread."""
    return written(cell.number, cell.unit) if cell.number is not None else "–"


def plain(value: float) -> str:
    """Two digits: `0.70`, `1.0`, `18`, `524`."""
    return format_factor(value, 2)
