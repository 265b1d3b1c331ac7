"""How long parts take together: their means add, and their ranges by simulation.

A part is so many operations, or bytes, of which a run has measured the mean time in several repeats. What
the job will take is another such repeat: by Student's t of the logarithms, with what the repeats say of one
another. Parts are drawn independently, with a fixed seed, and added. Means are summed, never medians: of ten
thousand reads the slow ones count as well.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latlab import _core

#: Of times that are predicted, so many lie within the range.
LEVEL: Final = 0.9
#: Beyond so many times what was measured, an answer is labelled.
EXTRAPOLATED: Final = 4.0
_DRAWS: Final = 4000
#: Repeats of one run are not of one mind: more degrees of freedom are not believed.
_MOST_DEGREES: Final = 10
#: Mean range of so many normals, in standard deviations (Tippett 1925).
_RANGES: Final = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 8: 2.847, 10: 3.078, 15: 3.472, 20: 3.735}
#: Standard deviation of a logarithm of which a run has a single value: what runs of one machine differ by.
_ONE: Final = 0.15

Draws: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Source:
    """A figure that an answer comes from."""

    probe: str
    point: str

    def as_json(self) -> dict[str, str]:
        """`{"probe": …, "point": …}`."""
        return {"probe": self.probe, "point": self.point}


@dataclass(frozen=True, slots=True)
class Part:
    """What a job does, one after the other.

    Attributes:
        name: `reading from the disk`.
        seconds: The mean.
        deviation: Standard deviation of its logarithm between repeats.
        repeats: How many there were.
        source: The figure.
        beyond: How many times as much as was measured.
    """

    name: str
    seconds: float
    deviation: float
    repeats: int
    source: Source
    beyond: float = 1.0

    def times(self, factor: float, name: str = "") -> Part:
        """So many of them."""
        return replace(
            self, seconds=self.seconds * factor, beyond=self.beyond * factor, name=name or self.name
        )

    @property
    def spread(self) -> tuple[float, float]:
        """Standard deviation of another repeat's logarithm about the mean of these, and its degrees."""
        count = max(self.repeats, 1)
        return self.deviation * math.sqrt(1 + 1 / count), float(min(max(count - 1, 2), _MOST_DEGREES))


@dataclass(frozen=True, slots=True)
class Range:
    """An answer.

    Attributes:
        seconds: The most likely time.
        low: Lower end of the range.
        high: Upper end.
    """

    seconds: float
    low: float
    high: float


def deviation_of(values: Sequence[float]) -> float:
    """Standard deviation of their logarithms; of a single one what runs usually differ by."""
    known = [math.log(value) for value in values if value > 0 and math.isfinite(value)]
    return statistics.stdev(known) if len(known) > 1 else _ONE


def deviation_of_range(low: float, high: float, count: int) -> float:
    """The same from the lowest and the highest of so many."""
    if count < 2 or not 0 < low < high:  # noqa: PLR2004 - of one there is no range
        return _ONE
    nearest = max(size for size in _RANGES if size <= max(count, 2))
    return math.log(high / low) / _RANGES[nearest]


def together(parts: Sequence[Part], overlap: Callable[[Sequence[Draws]], Draws] | None = None) -> Range:
    """The range of several parts.

    Args:
        parts: At least one.
        overlap: How the parts' times become one; their sum without it.
    """
    draws = [
        part.seconds * np.exp(part.spread[0] * _t(place, part.spread[1])) for place, part in enumerate(parts)
    ]
    total = overlap(draws) if overlap else np.sum(draws, axis=0)
    half = (1 - LEVEL) / 2
    means = [np.full(1, part.seconds) for part in parts]
    middle = float((overlap(means) if overlap else np.sum(means, axis=0))[0])
    low, high = (float(end) for end in np.quantile(total, (half, 1 - half)))
    return Range(middle, min(low, middle), max(high, middle))


def largest(parts: Sequence[Part]) -> Part:
    """The part that most of the range comes from."""
    return max(parts, key=lambda part: part.seconds * math.expm1(min(part.spread[0], 5.0)))


@lru_cache(maxsize=64)
def _t(place: int, degrees: float) -> Draws:
    """Values of Student's t at evenly spread probabilities, in an order of their own for each part."""
    chances = (np.arange(_DRAWS) + 0.5) / _DRAWS
    values = np.array([_core.t_quantile(float(chance), degrees) for chance in chances])
    return np.random.default_rng(place).permutation(values)
