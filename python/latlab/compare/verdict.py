"""Changed, same or cannot tell: what runs of two sides say of one figure, by the logarithm of its ratio.

The error is that between runs, moderated by that of figures of the same probe (`crates/latlab-stats`); what a
run says of its own precision is the least it can be. *Changed* asks that the corrected interval of the ratio
excludes 1 and that the ratio is beyond what counts as the same. Headline figures are corrected together
(Bonferroni), all others by the rate of false discoveries (Benjamini and Hochberg 1995, with the intervals
of Benjamini and Yekutieli 2005). *Same* asks that the 90 % interval, not corrected, lies inside of what
counts as the same: two one-sided tests (Schuirmann 1987).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from latlab import _core

Kind: TypeAlias = Literal["changed", "same", "cannot-tell", "not-comparable"]

#: False alarms among headline figures, and the share of false ones among what is called changed elsewhere.
ALARMS: Final = 0.05
#: How often a change as large as `smallest_visible` is found.
_POWER: Final = 0.9
#: What more runs are said to show, in units of what counts as the same: that itself is never called changed.
SHOWN: Final = 1.5
#: More runs than so many a side are no advice.
MOST_RUNS: Final = 50
#: Variance of the centre of many runs (`latlab._core.centre`), in units of their mean's.
_CENTRE: Final = math.pi / 3


@dataclass(frozen=True, slots=True)
class Contrast:
    """How a figure's two sides compare.

    Attributes:
        ratio: Logarithm of the second side's over the first's.
        error: Its standard error.
        between: Standard deviation of a run's logarithm.
        degrees: Degrees of freedom.
        runs: Of the side that has fewer; or pairs.
        pairs: From so many pairs of sides this one was chosen, as the one that lies farthest apart.
        paired: Whether the ratio is the mean of pairs' ratios, whose deviation `between` is then.
    """

    ratio: float
    error: float
    between: float
    degrees: float
    runs: int
    pairs: int = 1
    paired: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said.

    Attributes:
        kind: One of three; the fourth, not comparable, is known without figures.
        low: Lower end of the ratio's corrected interval, as a factor.
        high: Upper end.
        smallest_visible: The smallest change that would have been called so in nine of ten comparisons, as a
            share: 0.12; more than what counts as the same.
        more_runs: So many more runs a side would show a change half as large again as what counts as the
            same; None where fifty would not.
    """

    kind: Kind
    low: float
    high: float
    smallest_visible: float
    more_runs: int | None


def verdicts(contrasts: Sequence[Contrast], same: float, *, together: bool) -> list[Verdict]:
    """The verdicts of figures that are corrected for one another.

    Args:
        contrasts: One a figure.
        same: Changes up to this share count as none: 0.1.
        together: Whether any false alarm among them counts (headline figures), or their share.
    """
    level = ALARMS / max(len(contrasts), 1)
    if not together:
        level *= max(_discovered(contrasts), 1)
    return [_verdict(contrast, same, level / contrast.pairs) for contrast in contrasts]


def _discovered(contrasts: Sequence[Contrast]) -> int:
    """How many differ at a false discovery rate of :data:`ALARMS`."""
    tails = sorted(each.pairs * _core.t_tail(each.ratio / each.error, each.degrees) for each in contrasts)
    count = len(tails)
    return max((place for place, tail in enumerate(tails, 1) if tail <= ALARMS * place / count), default=0)


#: Figures of one comparison have few degrees of freedom between them.
_t_quantile = lru_cache(maxsize=1 << 12)(_core.t_quantile)


def _verdict(contrast: Contrast, same: float, level: float) -> Verdict:
    limit = math.log1p(same)
    reach = _t_quantile(1 - level / 2, contrast.degrees)
    half = reach * contrast.error
    visible = max(half, limit) + _t_quantile(_POWER, contrast.degrees) * contrast.error
    changed = abs(contrast.ratio) > max(half, limit)
    return Verdict(
        kind="changed" if changed else "same" if is_same(contrast, same) else "cannot-tell",
        low=factor(contrast.ratio - half),
        high=factor(contrast.ratio + half),
        smallest_visible=factor(visible) - 1,
        more_runs=_more_runs(contrast, limit, level),
    )


def is_same(contrast: Contrast, same: float) -> bool:
    """Whether two one-sided tests say that the change is smaller than `same`."""
    reach = _t_quantile(0.95, contrast.degrees) * contrast.error
    return abs(contrast.ratio) + reach < math.log1p(same)


def _more_runs(contrast: Contrast, limit: float, level: float) -> int | None:
    sides, variance = (1, 1.0) if contrast.paired else (2, 2 * _CENTRE)

    def enough(runs: int) -> bool:
        degrees = contrast.degrees + sides * (runs - contrast.runs)
        reach = _t_quantile(1 - level / 2, degrees) + _t_quantile(_POWER, degrees)
        return reach * contrast.between * math.sqrt(variance / runs) <= limit

    # More runs always show more.
    most = max(MOST_RUNS, contrast.runs)
    more = bisect_left(range(contrast.runs, most + 1), 1, key=enough)
    return more if contrast.runs + more <= most else None


def factor(log: float) -> float:
    """Its exponential, bounded."""
    return math.exp(min(max(log, -_MOST_LOG), _MOST_LOG))


#: Beyond a factor of 10¹³ nothing is said.
_MOST_LOG: Final = 30.0
