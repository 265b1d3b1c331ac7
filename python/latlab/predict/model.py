"""How long parts take together: their means add, and their ranges by simulation.

A part is so many operations, or bytes, of which a run has measured the mean time in several visits. How far
these lie apart says two things: how well their mean is known, and how far a job lies from it, which is the
less the more visits it is as long as. Both are drawn by Student's t of the logarithms. Where a part has few
operations, their mean is drawn from the measured distribution of single ones, too. Parts are drawn
independently, with a fixed seed. Means are summed, never medians: of ten thousand reads the slow ones count.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from latlab import _core

#: Of times that are predicted, so many lie within the range.
LEVEL: Final = 0.9
#: From one time to so many times as much helps nobody: such a range is no answer.
WIDEST: Final = 4.0
#: Beyond so many times what was measured, an answer is labelled, and its range widens.
EXTRAPOLATED: Final = 4.0
#: Standard deviation of a logarithm that each doubling beyond it adds: ten make a factor of two.
_DOUBLING: Final = 0.04
_DRAWS: Final = 2000
#: Degrees of freedom of what is as good as normal.
_NORMAL: Final = 1e6
#: Visits of one run are not of one mind: more degrees of freedom are not believed.
_MOST_DEGREES: Final = 10
#: Deviation of a figure that was visited once: what runs of one machine differ by.
ONCE: Final = 0.15
#: Mean range of so many normals, in standard deviations (Tippett 1925).
_RANGES: Final = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 8: 2.847, 10: 3.078, 15: 3.472, 20: 3.735}
#: What lasts longer than a run, and differs from hour to hour: no range is narrower.
_LASTING: Final = 0.05
#: Of so many operations or more the sum is as good as normal.
_MANY: Final = 64

#: Streams that go to the disk are alike, whichever way they take.
_SORTS: Final = {"writing past the page cache": "writing to the disk"}

Join: TypeAlias = Callable[[Sequence[float]], float]
#: What a part keeps busy: parts that need the same one share it.
Resource: TypeAlias = Literal["disk", "cpu", "path"]


@dataclass(frozen=True, slots=True)
class Source:
    """A figure that an answer comes from."""

    probe: str
    point: str

    def as_json(self) -> dict[str, str]:
        """`{"probe": …, "point": …}`."""
        return {"probe": self.probe, "point": self.point}


@dataclass(frozen=True, slots=True)
class Spread:
    """The variation between the visits to a figure.

    Attributes:
        deviation: Standard deviation of their rates over the mean, weighted by their time.
        visits: How many there were.
        visit_s: How long one lasted, seconds.
        degrees: Degrees of freedom of the deviation; one fewer than visits where it is 0.
    """

    deviation: float = ONCE
    visits: int = 1
    visit_s: float = math.inf
    degrees: int = 0

    @classmethod
    def of(cls, visits: Sequence[tuple[float, float]]) -> Spread:
        """The spread of visits: what each did, and in how many seconds."""
        own = [(done, seconds) for done, seconds in visits if done > 0 and 0 < seconds < math.inf]
        total = sum(seconds for _, seconds in own)
        if len(own) < 2:  # noqa: PLR2004 - one says nothing
            return cls()
        mean = sum(done for done, _ in own) / total
        squares = sum(seconds * (done / seconds / mean - 1) ** 2 for done, seconds in own)
        return cls(math.sqrt(squares / total), len(own), total / len(own))

    @classmethod
    def of_range(cls, low: float, high: float, visits: int) -> Spread:
        """The same from the lowest and the highest rate of so many."""
        if visits < 2 or not 0 < low < high:  # noqa: PLR2004 - of one there is no range
            return cls(visits=max(visits, 1))
        nearest = max(size for size in _RANGES if size <= visits)
        return cls(math.log(high / low) / _RANGES[nearest], visits)

    def of_job(self, seconds: float) -> float:
        """Standard deviation of the logarithm of a job that takes so long, about the mean of the visits."""
        share = min(self.visit_s / seconds, 1.0) if seconds > 0 else 1.0
        return self.deviation * math.sqrt(1 / self.visits + share)


@dataclass(frozen=True, slots=True)
class Part:
    """What a job does, one after the other.

    Attributes:
        name: `reading from the disk`.
        seconds: The mean.
        source: The figure.
        visits: The variation between its visits.
        amount: Operations that it has, or bytes where only sums of them were measured.
        measured: How many of those were measured.
        resource: What it keeps busy.
        single: Single operations over their mean, at even shares; empty where only sums were measured.
    """

    name: str
    seconds: float
    source: Source
    visits: Spread
    amount: float = 1.0
    measured: float = 1.0
    resource: Resource = "disk"
    single: tuple[float, ...] = ()

    def times(self, factor: float) -> Part:
        """So many of them."""
        return replace(self, seconds=self.seconds * factor, amount=self.amount * factor)

    @property
    def sort(self) -> str:
        """What it has in common with other parts, as far as what jobs took corrects it."""
        return _SORTS.get(self.name, self.name)

    @property
    def beyond(self) -> float:
        """How many times as much as was measured; 1 where a run does not say how much that was."""
        return self.amount / self.measured if self.measured else 1.0

    @property
    def spread(self) -> tuple[float, float]:
        """Standard deviation of the logarithm of what the job will take, and its degrees of freedom."""
        return math.hypot(self.visits.of_job(self.seconds), self._unseen), self._degrees

    @property
    def _degrees(self) -> float:
        return float(min(max(self.visits.degrees or self.visits.visits - 1, 2), _MOST_DEGREES))

    @property
    def _unseen(self) -> float:
        """The same of what no visit shows: what lasts, and what lies beyond them."""
        return math.hypot(_LASTING, _DOUBLING * math.log2(max(self.beyond / EXTRAPOLATED, 1.0)))

    def draws(self, place: int) -> list[float]:
        """What it takes, again and again; `place` is its own among the parts that it is drawn with."""
        seen, unseen = self.visits.of_job(self.seconds), self._unseen
        own = [
            self.seconds * math.exp(seen * value + unseen * other)
            for value, other in zip(_t(place, self._degrees), _t(-1 - place, _NORMAL), strict=True)
        ]
        if not self.single or self.amount < 1:
            return own
        dice, few = random.Random(place), round(self.amount)  # noqa: S311 - a simulation, with a fixed seed
        if few < _MANY:
            return [each * sum(dice.choices(self.single, k=few)) / few for each in own]
        wide = statistics.pstdev(self.single) / math.sqrt(few)
        return [each * max(1 + dice.gauss(0.0, wide), 0.1) for each in own]


@dataclass(frozen=True, slots=True)
class Range:
    """An answer.

    Attributes:
        seconds: The most likely time; None where nothing tells it.
        low: Lower end of the range.
        high: Upper end.
        level: What share of kinds of jobs it holds; None where it is not calibrated.
        bounds: Its ends are the time at least and at most, and no share of anything.
    """

    seconds: float | None
    low: float
    high: float
    level: float | None = None
    bounds: bool = False

    @property
    def middle(self) -> float:
        """The most likely time, or the one between both ends."""
        return math.sqrt(self.low * self.high) if self.seconds is None else self.seconds

    @property
    def is_wide(self) -> bool:
        """Whether it is too wide to be of use."""
        return self.high > WIDEST * self.low

    def as_json(self) -> dict[str, float | None]:
        """`{"seconds": 33.0, "low": 28.0, "high": 41.0, "level": 0.9}`."""
        return {"seconds": self.seconds, "low": self.low, "high": self.high, "level": self.level}

    @property
    def half(self) -> float:
        """Half of its width on a logarithm."""
        return math.log(self.high / self.low) / 2 if self.low > 0 else math.inf


def together(parts: Sequence[Part], join: Join = sum) -> Range:
    """The range of several parts.

    Args:
        parts: At least one.
        join: How the parts' times become one; their sum, or what overlaps.
    """
    total = sorted(map(join, zip(*(part.draws(place) for place, part in enumerate(parts)), strict=True)))
    half = (1 - LEVEL) / 2
    middle = join([part.seconds for part in parts])
    low, high = (total[round(share * (len(total) - 1))] for share in (half, 1 - half))
    return Range(middle, min(low, middle), max(high, middle))


def longest(parts: Sequence[Part]) -> Part:
    """The part that most of the time is of."""
    return max(parts, key=lambda part: part.seconds)


def largest(parts: Sequence[Part]) -> Part:
    """The part that most of the range comes from."""
    return max(parts, key=lambda part: part.seconds * math.expm1(min(part.spread[0], 5.0)))


@lru_cache(maxsize=64)
def _t(place: int, degrees: float) -> tuple[float, ...]:
    """Values of Student's t at evenly spread probabilities, in an order of their own for each part."""
    half = [_core.t_quantile((chance + 0.5) / _DRAWS, degrees) for chance in range(_DRAWS // 2)]
    values = [*half, *(-value for value in half)]
    random.Random(place).shuffle(values)  # noqa: S311 - as above
    return tuple(values)
