"""A quantity as it is shown: measured, with its unit and its range; or absent, with the reason.

Arithmetic carries both. What is made of an absent figure is that absent figure. The range of a result holds
every value that its parts can have at once, and a result is disturbed if a part of it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from latlab import units
from latlab.run.model import Estimate, Record
from latlab.view.points import drawable, is_disturbed

Unit: TypeAlias = Literal["ns", "bytes_per_s", "ratio"]

_WRITTEN: Final[dict[Unit, Callable[[float], str]]] = {
    "ns": units.format_ns,
    "bytes_per_s": units.format_rate,
    "ratio": "{:.1f}".format,
}


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such figure, and why."""

    why: str

    @property
    def value(self) -> None:
        """None."""

    def __truediv__(self, _other: Figure) -> Figure:
        return self

    __add__ = __sub__ = __truediv__


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure.

    Attributes:
        value: The median, or what was derived.
        unit: Of value and range.
        ends: The 95 % interval, which holds the value; None where nothing tells it.
        samples: Values behind it.
        disturbed: Something else ran while it was measured.
    """

    value: float
    unit: Unit
    ends: tuple[float, float] | None = None
    samples: int = 0
    disturbed: bool = False

    @property
    def low(self) -> float:
        """Lower end of its range; the value where it has none."""
        return self.ends[0] if self.ends else self.value

    @property
    def high(self) -> float:
        """Upper end likewise."""
        return self.ends[1] if self.ends else self.value

    @property
    def bare(self) -> str:
        """`1.06 ns`."""
        return _WRITTEN[self.unit](self.value)

    def __str__(self) -> str:
        """`1.06 ns (1.05–1.07 ns)`."""
        return units.format_stated(self.value, self.ends, _WRITTEN[self.unit])

    def __truediv__(self, other: Figure) -> Figure:
        if isinstance(other, Measured) and other.low <= 0 <= other.high:
            return Absent("its divisor may be zero")
        return self._with(other, operator.truediv, "ratio")

    def __add__(self, other: Figure) -> Figure:
        return self._with(other, operator.add, self.unit)

    def __sub__(self, other: Figure) -> Figure:
        return self._with(other, operator.sub, self.unit)

    def _with(self, other: Figure, of: Callable[[float, float], float], unit: Unit) -> Figure:
        if isinstance(other, Absent):
            return other
        if other.unit != self.unit:
            raise TypeError(f"{self.unit} and {other.unit} do not go together")
        corners = [of(mine, theirs) for mine in (self.low, self.high) for theirs in (other.low, other.high)]
        known = self.ends is not None or other.ends is not None
        return Measured(
            of(self.value, other.value),
            unit,
            (min(corners), max(corners)) if known else None,
            min(self.samples, other.samples),
            self.disturbed or other.disturbed,
        )


Figure: TypeAlias = Measured | Absent


def of_record(record: Record, unit: Unit = "ns") -> Figure:
    """A record's headline figure."""
    if not drawable(record.value):
        return Absent("a proof of work failed, or there were no samples")
    own = [record.value, *filter(drawable, record.interval or ())]
    return Measured(record.value, unit, _ends(own), record.samples, is_disturbed(record))


def of_estimate(found: Estimate | float | None, unit: Unit) -> Figure:
    """A quantity of a probe's findings."""
    estimate = Estimate(value=found) if isinstance(found, int | float) else found
    if estimate is None or not drawable(estimate.value):
        return Absent("the probe did not find it")
    ends = estimate.ends
    known = ends is not None and all(map(drawable, ends))
    return Measured(estimate.value, unit, _ends([estimate.value, *(ends or ())]) if known else None)


def _ends(values: list[float]) -> tuple[float, float] | None:
    low, high = min(values), max(values)
    return (low, high) if low < high else None
