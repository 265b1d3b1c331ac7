"""Statistics of latency samples, as the core computes them.

Units are those of the samples. A figure that cannot be stood for is refused: `Refused` is raised, and its
text can be printed.

    from latlab import stats
    stats.order_statistic_interval(samples, 0.99)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from latlab.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples: TypeAlias = NDArray[np.float64] | Sequence[float]
    """Values in any unit."""

__all__ = [
    "Moments",
    "Refused",
    "min_samples",
    "moments",
    "order_statistic_interval",
    "quantile",
]


class Refused(UserError):  # noqa: N818 - a refusal is an answer, not an error of the program
    """The samples do not allow this figure; the text says how many or which would."""


class Moments(NamedTuple):
    """Mean, standard deviation with n - 1 (None for one sample), smallest and largest."""

    mean: float
    std: float | None
    min: float
    max: float


def quantile(samples: Samples, q: float) -> float:
    """The value that a share `q` of the samples lies below (linear between neighbours, as numpy's default).

    Raises:
        Refused: there are no samples, or `q` is not from 0 to 1.
    """
    _require_share("q", q)
    value = float(_asked("quantile", samples, q))
    if math.isnan(value):
        raise Refused("there are no samples, so no quantile")
    return value


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


def moments(samples: Samples | Iterable[float]) -> Moments:
    """Mean, standard deviation, smallest and largest, without loss for long runs (Welford).

    Raises:
        Refused: there are no samples.
    """
    found = _asked("moments", samples)
    if found is None:
        raise Refused("there are no samples, so no mean")
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
