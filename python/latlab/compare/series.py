"""Where a figure changed over many runs, and which single runs departed from the others.

Changes are found by E-divisive (Matteson and James 2014), with a t-test in place of permutations, so that the
same runs always have the same changes (Fleming et al., "Hunter", ICPE 2023). As there, a split is taken first
where the test is weak; then the weakest is tested again and removed, until all that are left are significant.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from latlab import _core

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Runs on either side of a change, at least.
LEAST: Final = 3
#: Unchanged series that may have a change, over all figures that are looked at together.
ALARMS: Final = 0.01
#: Places are chosen before they are tested, which a correction for their number alone does not cover. With
#: this factor 0.2 to 0.9 % of simulated unchanged series of 10 to 100 runs have a change (tests/compare).
_CHOSEN: Final = 2
#: A split is tried below this probability, before any correction.
_WEAK: Final = 0.1
#: Runs of a part of a long series in which changes are looked for, too: in the whole, a level that a few runs
#: keep is no split of two sides.
_PART: Final = 50
#: Neighbours that a single run is held against, on either side; at least two.
_NEAR: Final = 3
#: A spike departs from both sides by so many standard deviations of a run.
_DEPARTS: Final = 5.0
#: Logarithms that are nearer than this differ by the rounding of their means alone.
_ROUNDING: Final = 1e-12
#: Median of the absolute difference between two values of a normal distribution, in standard deviations.
_STEP: Final = 0.954


class Change(NamedTuple):
    """Where values changed.

    Attributes:
        last: Place of the last value before it.
        place: Of the first after it; what lies between are spikes.
        test: The values before it and after it, up to the next changes.
    """

    last: int
    place: int
    test: Test


class Test(NamedTuple):
    """The runs before a change against those after it.

    Attributes:
        change: Difference of the means of the logarithms.
        error: Its standard error.
        degrees: Degrees of freedom.
        nearer: Runs that are nearer to their own side's mean than to the other's, of the side that has fewer:
            two runs that depart are no change, though with a third one their mean does.
    """

    change: float
    error: float
    degrees: int
    nearer: int

    @property
    def tail(self) -> float:
        """How often chance alone makes as large a difference."""
        if abs(self.change) < _ROUNDING:
            return 1.0
        if self.error <= 0:
            return 0.0
        return _core.t_tail(self.change / self.error, self.degrees)


def judged(logs: Sequence[float], limit: float, figures: int = 1) -> tuple[list[int], list[Change]]:
    """The places of spikes, and the changes of what is left without them.

    Args:
        logs: Logarithms of a figure, in the order of time.
        limit: A spike and a change are larger than this, as a logarithm.
        figures: How many figures are looked at together.
    """
    departing = spikes(logs, limit)
    places = [place for place in range(len(logs)) if place not in departing]
    steady = [logs[place] for place in places]
    found = changes(steady, limit, figures)
    return departing, [
        Change(places[at - 1], places[at], test)
        for at, test in zip(found, between(steady, found), strict=True)
    ]


def changes(logs: Sequence[float], limit: float, figures: int = 1) -> list[int]:
    """The places of the first values after each change, ascending.

    Args:
        logs: Logarithms of a figure, in the order of time, without spikes.
        limit: A change is larger than this, as a logarithm.
        figures: How many figures are looked at together.
    """
    count = len(logs)
    if count < 2 * LEAST:
        return []
    ends = [0, *_splits(logs), count]
    level = ALARMS / (_CHOSEN * max(figures, 1) * (count - 2 * LEAST + 1))
    tests = {place: _test(logs[start:place], logs[place:end]) for start, place, end in _triples(ends)}
    while tests:
        weak, tail, place = max(
            (abs(test.change) <= limit or test.nearer < LEAST, test.tail, place)
            for place, test in tests.items()
        )
        if not weak and tail <= level:
            break
        del tests[place]
        ends.remove(place)
        # Of the others only its neighbours have other values beside them now.
        at = bisect(ends, place)
        for start, other, end in _triples(ends[max(at - 2, 0) : at + 2]):
            tests[other] = _test(logs[start:other], logs[other:end])
    return ends[1:-1]


def _triples(ends: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    return zip(ends[:-2], ends[1:-1], ends[2:], strict=True)


def between(logs: Sequence[float], places: Sequence[int]) -> list[Test]:
    """Each change, as the values before it and after it, up to the next ones, show it."""
    ends = [0, *places, len(logs)]
    return [_test(logs[start:place], logs[place:end]) for start, place, end in _triples(ends)]


def spikes(logs: Sequence[float], limit: float) -> list[int]:
    """The places of single values that depart from those on both sides, to the same side.

    Args:
        logs: Logarithms of a figure, in the order of time.
        limit: A spike is larger than this, as a logarithm.
    """
    if len(logs) < 2:  # noqa: PLR2004 - there is no step
        return []
    steps = [abs(after - before) for before, after in pairwise(logs)]
    least = max(limit, _DEPARTS * statistics.median(steps) / _STEP)
    found: list[int] = []
    for place in range(2, len(logs) - 2):
        sides = (logs[max(place - _NEAR, 0) : place], logs[place + 1 : place + 1 + _NEAR])
        before, after = (logs[place] - statistics.median(side) for side in sides)
        if before * after > 0 and min(abs(before), abs(after)) > least:
            found.append(place)
    return found


def _splits(logs: Sequence[float]) -> list[int]:
    """All places that may be a change."""
    import numpy as np  # noqa: PLC0415 - a tenth of a second that only many runs need

    count, values = len(logs), np.asarray(logs)
    found: set[int] = set()
    parts = range(0, count - _PART // 2, _PART // 2) if count > _PART else ()
    pending = [(0, count), *((start, min(start + _PART, count)) for start in parts)]
    while pending:
        start, end = pending.pop()
        if end - start < 2 * LEAST:
            continue
        place = start + LEAST + int(energy(values[start:end]).argmax())
        if _test(logs[start:place], logs[place:end]).tail <= _WEAK:
            found.add(place)
            pending += [(start, place), (place, end)]
    return sorted(found)


def energy(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far apart the values before and after each place are: the statistic of E-divisive, alpha 1.

    Args:
        values: n of them.

    Returns:
        n - 2 * LEAST + 1 values: of the split before value LEAST, and so on.
    """
    import numpy as np  # noqa: PLC0415 - see above

    count = len(values)
    distances = np.abs(values[:, None] - values[None, :])
    left = np.arange(LEAST, count - LEAST + 1)
    right = count - left
    # Over all pairs, each in both orders: of the first values with each other, and with all.
    within = 2 * np.tril(distances).sum(1).cumsum()[left - 1]
    sums = distances.sum(1).cumsum()
    across = sums[left - 1] - within
    others = sums[-1] - 2 * across - within
    distance = 2 * across / (left * right) - within / (left * (left - 1)) - others / (right * (right - 1))
    result: NDArray[np.float64] = left * right / count * distance
    return result


def _test(before: Sequence[float], after: Sequence[float]) -> Test:
    """Student's t-test with the variance of both together."""
    # Of two single values, which are never a change, there is none.
    degrees = max(len(before) + len(after) - 2, 1)
    means = [statistics.fmean(side) for side in (before, after)]
    squares = sum(
        (value - mean) ** 2 for side, mean in zip((before, after), means, strict=True) for value in side
    )
    error = math.sqrt(squares / degrees * (1 / len(before) + 1 / len(after)))
    middle, sign = sum(means) / 2, math.copysign(1.0, means[1] - means[0])
    nearer = min(
        sum(sign * value < sign * middle for value in before),
        sum(sign * value > sign * middle for value in after),
    )
    return Test(means[1] - means[0], error, degrees, nearer)
