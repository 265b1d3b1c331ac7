"""What a chart shows, before a medium draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from latlab.view.figure import Figure, Measured


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis in equal steps from zero.

    Attributes:
        title: What lies along it.
        unit: Which decides how its ticks are written.
        clip: Ranges and tails beyond so many times the largest median are not drawn: they would press all
            curves flat.
    """

    title: str
    unit: Literal["ns", "bytes_per_s"]
    clip: float = float("inf")


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
    """A plane of lines with marks; `words` is what it shows, for who does not see it."""

    x: Axis
    y: Axis
    lines: Sequence[Line]
    words: str
    rules: Sequence[Rule] = ()
    rings: Sequence[Ring] = ()
