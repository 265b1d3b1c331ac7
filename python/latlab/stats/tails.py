"""How far slow operations are from a normal distribution, and whether they can follow a power law.

    from latlab.stats import tails
    tails.normal_claim(record).seen
    tails.power_law(record.summary.intervals)

A power law is a straight line on two logarithmic axes: p99 over p90 is p99.9 over p99. So quantiles and
their intervals, which a run has anyway, tell whether one is possible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from latlab.run.model import Record

__all__ = ["HEAVY", "NormalClaim", "PowerLaw", "normal_claim", "power_law", "slowest_share"]

#: A normal puts 1 in 10^9 beyond so many deviations above its mean.
_FAR: Final = 6.0
#: Quantiles with a tenth of the operations above each that are above the one before, as a summary names them.
_QUANTILES: Final = ("p90", "p99", "p999", "p9999")
#: Quantiles that make two ratios.
_FEWEST: Final = 3
#: From one quantile to the next, a power law of index 2 has this ratio. Below that index it has no variance,
#: and an average depends on the slowest few.
HEAVY: Final = math.sqrt(10)


@dataclass(frozen=True, slots=True)
class NormalClaim:
    """Operations that a normal distribution with their mean and deviation puts at 1 in 10^9.

    Attributes:
        beyond: Six deviations above the mean.
        seen: Operations beyond it.
        total: All operations.
    """

    beyond: float
    seen: int
    total: int


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """What the intervals of quantiles leave room for.

    Attributes:
        quantiles: Those that were asked, by their names in a summary.
        possible: One power law passes through all of them.
        settles: The last ratio is below `HEAVY`, so that averages settle if the power law goes on. None where
            the range of the ratio holds `HEAVY`.
    """

    quantiles: tuple[str, ...]
    possible: bool
    settles: bool | None


def normal_claim(record: Record) -> NormalClaim | None:
    """What a normal distribution would make of the slow operations; None where there is no spread.

    Raises:
        RunFileError: the record's histogram is damaged.
    """
    summary = record.summary
    if summary is None or summary.mean is None or not summary.std:
        return None
    beyond = summary.mean + _FAR * summary.std
    seen = sum(count for low, high, count in record.buckets() if (low + high) / 2 > beyond)
    return NormalClaim(beyond=beyond, seen=seen, total=record.samples)


def slowest_share(record: Record, part: float) -> float | None:
    """Share of the time of all operations that the slowest of them take, this part; None without a histogram.

    Raises:
        RunFileError: the record's histogram is damaged.
    """
    buckets = [((low + high) / 2, count) for low, high, count in record.buckets()]
    left = part * sum(count for _, count in buckets)
    whole = sum(value * count for value, count in buckets)
    if not left or not whole:
        return None
    taken = 0.0
    for value, count in sorted(buckets, reverse=True):
        taken += value * min(count, left)
        left -= min(count, left)
    return taken / whole


def power_law(intervals: Mapping[str, tuple[float, float]], step: float = 0.0) -> PowerLaw | None:
    """Whether quantiles can be those of a power law.

    Args:
        intervals: 95 % intervals by the name of the quantile: `p90`, `p99`, `p999`, and `p9999` if known.
        step: The clock's; no quantile is known better than by half of it.

    Returns:
        None where one of the first three has no interval, or the last is not above the first.
    """
    known: list[tuple[float, float]] = []
    for name in _QUANTILES:
        low, high = intervals.get(name, (0.0, 0.0))
        if not step / 2 < low <= high < math.inf:
            break
        known.append((math.log(low - step / 2), math.log(high + step / 2)))
    if len(known) < _FEWEST or known[-1][0] <= known[0][1]:
        return None
    # A line passes through all if one passes through each three (Helly).
    possible = all(_in_line(places, known) for places in combinations(range(len(known)), _FEWEST))
    (low, high), (from_low, from_high) = known[-1], known[-2]
    edge = math.log(HEAVY)
    settles = True if high - from_low < edge else False if low - from_high > edge else None
    return PowerLaw(_QUANTILES[: len(known)], possible, settles)


def _in_line(places: tuple[int, ...], known: list[tuple[float, float]]) -> bool:
    first, middle, last = places
    along = (middle - first) / (last - first)
    low, high = (known[first][end] + along * (known[last][end] - known[first][end]) for end in (0, 1))
    return low <= known[middle][1] and known[middle][0] <= high
