"""What pairs of runs say of two programs: ratios with intervals, verdicts, and each program against itself.

Pairs are the unit of variance: what drifts from pair to pair changes both runs of it. A ratio is the mean of
the pairs' log-ratios, its interval Student's t. Which program is first in a pair is random, each in half of
them: whatever the machine does favours neither, and pairs are independent. In a fixed order, A B B A, they
are not: a disturbance as long as two runs slows B twice, and 9 % of equal programs differ where 5 % should.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from latlab.compare.contrast import paired
from latlab.compare.verdict import Contrast, Kind, Verdict, verdicts

Unit: TypeAlias = Literal["s", "bytes", "count"]
Name: TypeAlias = Literal["wall_s", "cpu_s", "memory_bytes", "page_faults"]

#: What is compared of each run: its field, name and unit, and how finely it is counted.
_FIGURES: Final[tuple[tuple[Name, str, Unit, float], ...]] = (
    ("wall_s", "wall time", "s", 1e-6),
    ("cpu_s", "CPU time", "s", 1e-6),
    ("memory_bytes", "memory, peak", "bytes", 4096.0),
    ("page_faults", "page faults", "count", 1.0),
)
#: Categories that have less of wall time on both sides have no row.
_LEAST: Final = 0.01
#: No category takes away all of wall time; rounding may.
_LEFT: Final = 1e-3
#: The interval of two is of no use: Student's t is 12.7.
FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """What one run took.

    Attributes:
        wall_s: Its wall time.
        cpu_s: CPU time of all of its processes.
        page_faults: Likewise.
        memory_bytes: The most memory that one of its processes had; None where that is not known.
        start_s: Of wall time until the program was executed.
        waited_s: How long its first thread was ready and had no CPU.
        categories: Seconds of wall time by category of its ledger; empty where it was not explained.
    """

    wall_s: float
    cpu_s: float
    page_faults: float
    memory_bytes: float | None = None
    start_s: float = 0.0
    waited_s: float = 0.0
    categories: Mapping[str, float] | None = None


#: A run of either side.
Pair: TypeAlias = tuple[Taken, Taken]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of both sides.

    Attributes:
        name: `wall time`, or a category of the ledger.
        unit: Of the sides' values.
        a: The first side's: the geometric mean, of a category the mean.
        b: The second side's.
        kind: The verdict.
        ratio: The second over the first; of a category that of wall times if nothing else changed. None where
            it is not comparable.
        verdict: The interval of the ratio, and what would have been seen.
        is_category: Whether it is a part of wall time.
        why: Why it is not comparable.
    """

    name: str
    unit: Unit
    a: float | None
    b: float | None
    kind: Kind
    ratio: float | None = None
    verdict: Verdict | None = None
    is_category: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Itself:
    """One program against itself, from one pair to the next: what chance alone gives.

    Attributes:
        times: How often two runs of it were compared.
        ratio: Of wall times.
        verdict: Its interval; *changed* where the program differs from itself.
    """

    times: int
    ratio: float
    verdict: Verdict


def figures(pairs: Sequence[Pair], same: float) -> tuple[Figure, ...]:
    """Verdicts of wall time, and of all else: those by the rate of false discoveries.

    Args:
        pairs: A run of each side; two or more.
        same: Changes up to this share count as none.
    """
    known: list[tuple[Figure, Contrast]] = []
    unknown: list[Figure] = []
    for field, name, unit, step in _FIGURES:
        values = [[getattr(run, field) for run in pair] for pair in pairs]
        if any(not value for pair in values for value in pair):
            if field == "memory_bytes" and pairs[0][0].categories is None:
                why = "one side has less than latlab itself"
                unknown.append(Figure(name, unit, None, None, "not-comparable", why=why))
            continue
        a, b = (statistics.geometric_mean(side) for side in zip(*values, strict=True))
        logs = [math.log(second / first) for first, second in values]
        known.append((Figure(name, unit, a, b, "cannot-tell"), paired(logs, step / min(a, b))))
    known += _categories(pairs)
    contrasts = [contrast for _, contrast in known]
    reported = [
        *verdicts(contrasts[:1], same, together=True),
        *verdicts(contrasts[1:], same, together=False),
    ]
    judged = [
        Figure(
            each.name,
            each.unit,
            each.a,
            each.b,
            verdict.kind,
            math.exp(contrast.ratio),
            verdict,
            each.is_category,
        )
        for (each, contrast), verdict in zip(known, reported, strict=True)
    ]
    whole = [each for each in judged if not each.is_category]
    parts = sorted(
        (each for each in judged if each.is_category),
        key=lambda each: (each.kind != "changed", -max(each.a or 0.0, each.b or 0.0)),
    )
    return (*whole, *unknown, *parts)


def itself(pairs: Sequence[Pair], side: int, same: float) -> Itself | None:
    """One side against itself, its run of a pair against that of the next; None where there are too few.

    Args:
        pairs: In their order.
        side: 0: A, 1: B.
        same: Changes up to this share count as none.
    """
    walls = [pair[side].wall_s for pair in pairs]
    # Each second one is taken the other way round: a steady drift cancels.
    logs = [
        math.log(later / earlier) * (1 if turn % 2 == 0 else -1)
        for turn, (earlier, later) in enumerate(zip(walls[::2], walls[1::2], strict=False))
    ]
    if len(logs) < FEWEST:
        return None
    contrast = paired(logs, 1e-6 / min(walls))
    (verdict,) = verdicts([contrast], same, together=True)
    return Itself(len(logs), math.exp(contrast.ratio), verdict)


def _categories(pairs: Sequence[Pair]) -> Iterator[tuple[Figure, Contrast]]:
    """By how much each part of the ledger alone changes wall time; those that have some of it."""
    known = [(a, b, a.categories, b.categories) for a, b in pairs]
    names = dict.fromkeys(name for _, _, *both in known for side in both for name in side or {})
    for name in names:
        seconds = [((one or {}).get(name, 0.0), (other or {}).get(name, 0.0)) for _, _, one, other in known]
        a, b = (statistics.fmean(side) for side in zip(*seconds, strict=True))
        walls = [
            statistics.fmean(side) for side in zip(*((x.wall_s, y.wall_s) for x, y in pairs), strict=True)
        ]
        if a < _LEAST * walls[0] and b < _LEAST * walls[1]:
            continue
        added = [
            (second - first) / pair[0].wall_s for (first, second), pair in zip(seconds, pairs, strict=True)
        ]
        factor = max(1 + statistics.fmean(added), _LEFT)
        contrast = paired(
            [math.log(factor) + (each + 1 - factor) / factor for each in added], 1e-6 / walls[0]
        )
        yield Figure(name, "s", a, b, "cannot-tell", is_category=True), contrast
