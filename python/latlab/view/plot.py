"""What a chart shows, before a medium draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from latlab.view.figure import Figure, Measured


@dataclass(frozen=True, slots=True)
class At:
    """A point of a line: where, how much, its slow end if it has one, and what is said of it on hovering."""

    x: Measured
    y: Measured
    tail: Figure
    says: str


@dataclass(frozen=True, slots=True)
class Line:
    """A curve with the range of each of its points; a cross marks those that were disturbed."""

    name: str
    points: Sequence[At]


@dataclass(frozen=True, slots=True)
class Rule:
    """A level across the whole plane, by its name and figure."""

    name: str
    y: Measured


@dataclass(frozen=True, slots=True)
class Ring:
    """A place on a line; the first of several has its name beside it."""

    name: str
    line: str
    x: Measured
    y: Measured


@dataclass(frozen=True, slots=True)
class Plot:
    """A plane of lines with marks: what others move along x, times along y, both in equal steps from zero.

    Attributes:
        x: Title of its axis.
        y: Title of its axis.
        lines: The curves.
        words: What it shows, for who does not see it.
        clip: Ranges and tails beyond so many times the largest median are not drawn: they would press all
            curves flat.
        rules: Levels.
        rings: Places on lines.
    """

    x: str
    y: str
    lines: Sequence[Line]
    words: str
    clip: float = float("inf")
    rules: Sequence[Rule] = ()
    rings: Sequence[Ring] = ()
