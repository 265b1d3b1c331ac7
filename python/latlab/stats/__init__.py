"""Statistics of latency samples, as the core computes them.

Samples come in blocks: each was taken in one go, apart in time from the next. What holds within a block
need not hold between blocks, so a function that gives an interval takes the blocks, not their sum. Units
are those of the samples.

A figure that cannot be stood for is refused: `Refused` is raised, and its text can be printed.

    from latlab import stats
    stats.quantile_interval([block1, block2, ...], 0.99)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from latlab.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples: TypeAlias = NDArray[np.float64] | Sequence[float]
    """Values in any unit; one block of them, or all."""

__all__ = [
    "Dependence",
    "Estimate",
    "Moments",
    "Refused",
    "between_block_range",
    "dependence",
    "mean_interval",
    "min_samples",
    "moments",
    "order_statistic_interval",
    "quantile",
    "quantile_interval",
]

Method: TypeAlias = Literal["order_statistics", "block_bootstrap", "between_blocks"]


class Refused(UserError):  # noqa: N818 - a refusal is an answer, not an error of the program
    """The samples do not allow this figure; the text says how many or which would."""


class Estimate(NamedTuple):
    """A figure with its interval, in the unit of the samples, and how the interval was found."""

    value: float
    lo: float
    hi: float
    method: Method


class Moments(NamedTuple):
    """Mean, standard deviation with n - 1 (None for one sample), smallest and largest."""

    mean: float
    std: float | None
    min: float
    max: float


class Dependence(msgspec.Struct, frozen=True):
    """Whether the samples may be treated as independent draws.

    Attributes:
        lag1: correlation of a sample with the next one of its block; None where there are too few.
        effective_samples: independent samples that would say as much.
        between_block_p: probability of blocks as different as these, were they alike; None with one block.
        between_stretch_p: the same of stretches within the blocks.
        independent: whether nothing speaks against it.
    """

    lag1: float | None
    effective_samples: float
    independent: bool
    between_block_p: float | None = None
    between_stretch_p: float | None = None


def quantile(samples: Samples, q: float) -> float:
    """The value that a share `q` of the samples lies below (linear between neighbours, as numpy's default).

    Raises:
        Refused: there are no samples, or `q` is not from 0 to 1.
    """
    _require_share("q", q)
    value = float(_asked("quantile", samples, q))
    if math.isnan(value):
        raise Refused("no samples: they have no quantile")
    return value


def quantile_interval(blocks: Sequence[Samples], q: float, level: float = 0.95, seed: int = 0) -> Estimate:
    """A quantile and its interval, by the method that the samples' dependence allows.

    Order statistics (exact, free of any distribution) when the samples are independent; else a block
    bootstrap, or the blocks' own quantiles where there are too few samples for one.

    Raises:
        Refused: too few samples or blocks; the text says how many it takes.
    """
    return Estimate(*_asked("quantile_interval", list(blocks), q, level, seed))


def mean_interval(blocks: Sequence[Samples], level: float = 0.95) -> Estimate:
    """The mean of all samples and its interval, from the blocks' means (Student's t).

    Raises:
        Refused: too few blocks.
    """
    return Estimate(*_asked("mean_interval", list(blocks), level))


def order_statistic_interval(samples: Samples, q: float, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a quantile, for samples that are known to be independent (binomial ranks).

    Raises:
        Refused: fewer than `min_samples(q, level)`.
    """
    lo, hi = _asked("order_statistic_interval", samples, q, level)
    return float(lo), float(hi)


def min_samples(q: float, level: float = 0.95) -> int:
    """Fewest independent samples for which quantile `q` has an interval of this confidence: 3,688 for p99.9.

    Raises:
        Refused: `q` or `level` is not between 0 and 1.
    """
    _require_share("q", q, inside=True)
    _require_share("level", level, inside=True)
    return int(_asked("min_samples", q, level))


def between_block_range(blocks: Sequence[Samples], q: float) -> tuple[float, float]:
    """Smallest and largest of the blocks' own quantiles: how far repeats lie apart.

    Raises:
        Refused: a block has no samples.
    """
    lo, hi = _asked("between_block_range", list(blocks), q)
    if math.isnan(lo) or math.isnan(hi):
        raise Refused("a block without samples has no quantile")
    return float(lo), float(hi)


def dependence(blocks: Sequence[Samples]) -> Dependence:
    """Tests whether the samples may be treated as independent: within blocks, and between them."""
    return msgspec.json.decode(_asked("dependence", list(blocks)), type=Dependence)


def moments(samples: Samples | Iterable[float]) -> Moments:
    """Mean, standard deviation, smallest and largest, without loss for long runs (Welford).

    Raises:
        Refused: there are no samples.
    """
    found = _asked("moments", samples)
    if found is None:
        raise Refused("no samples: they have no mean")
    return Moments(*found)


def _require_share(name: str, value: float, *, inside: bool = False) -> None:
    if not (0 < value < 1 if inside else 0 <= value <= 1):
        raise Refused(f"{name} = {value} is not between 0 and 1")


def _asked(name: str, *arguments: object) -> Any:  # noqa: ANN401 - what the core answers, typed by each caller
    from latlab.run.core import core  # noqa: PLC0415 - 10 ms, when it is first needed

    try:
        return getattr(core(), name)(*arguments)
    except ValueError as error:
        raise Refused(str(error)) from None
