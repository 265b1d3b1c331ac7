"""Figures inside sentences."""

from __future__ import annotations

from latlab.lessons.figures import Cell, written
from latlab.units import format_factor, format_rate


def ratio(cell: Cell, digits: int = 2) -> str:
    """`75 times`, with the spread of the rounds: `75 times (70 – 81)`."""
    value = cell.number
    if value is None:
        return "an unknown number of times"
    text = f"{format_factor(value, digits)} times"
    if cell.low is None or cell.high is None or cell.repeats < 2:  # noqa: PLR2004 - one has no spread
        return text
    return f"{text} ({format_factor(cell.low, digits)} – {format_factor(cell.high, digits)})"


def rate(bytes_per_s: float) -> str:
    """`2.1 GB/s`."""
    return format_rate(bytes_per_s, digits=2)


def figure(cell: Cell) -> str:
    """The figure alone, without its spread."""
    return written(cell.number, cell.unit) if cell.number is not None else "–"


def plain(value: float) -> str:
    """Two digits: `0.70`, `1.0`, `18`, `524`."""
    return format_factor(value, 2)
