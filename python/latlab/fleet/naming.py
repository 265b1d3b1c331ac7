"""Which hosts of one class are slow: each figure of each host against its peers', at a rate of false names.

Peers are those three quarters of a class that lie closest together, so that a quarter of it may be slow
without hiding one another. A host's distance from their mean, on the logarithm, is in units of their standard
deviation, or of its own repeats' where that is larger: a host is not named because its peers repeat well.
The level is shared out over all figures of all hosts (Bonferroni): :data:`ALARMS` is how often a fleet
without a slow host has one named. What the closest three quarters of a normal sample say of its variance,
and with how many degrees of freedom, is simulated once for each size, with a fixed seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latlab import _core

Floats: TypeAlias = NDArray[np.float64]

#: Of fleets without a slow host, so many have one named.
ALARMS: Final = 0.001
#: Of such fleets, so many have a host that is measured again.
SUSPICIONS: Final = 0.05
#: A host that is less slower than its peers is not named, however sure that is.
LEAST_RATIO: Final = 1.25
#: Hosts may differ with heavier tails than normals. Where they follow Student's t with five degrees of
#: freedom, 4 % of fleets had a false name without this limit, 0.6 % with it, 0.05 % with a limit of five. The
#: lower it is, the more a slow host must stand out: of 1,000 hosts twice as far (benches/fleet.py).
_MOST_DEGREES: Final = 7.0
#: Of single links, which are no medians of several: with a limit of seven 0.7 % of fleets had a false name
#: where links differ lastingly with such tails.
LINK_DEGREES: Final = 5.0
#: Fewer hosts have no peers.
LEAST_HOSTS: Final = 5
_CORE: Final = 0.75
_DRAWS: Final = 4000
#: Larger classes are as the largest that is simulated.
_LARGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Distances:
    """How far the hosts of a class are from their peers.

    Attributes:
        ratio: Logarithm of a host's figure over its peers' mean, hosts × figures; NaN where it is unknown.
        error: Its standard error, likewise.
        between: That by how far peers are from one another alone, not by how far the host's own rounds are.
        degrees: Degrees of freedom, by figure.
    """

    ratio: Floats
    error: Floats
    between: Floats
    degrees: Floats

    def beyond(self, level: float) -> NDArray[np.bool_]:
        """Which are slow: by more than chance at this level of one figure, and by :data:`LEAST_RATIO`."""
        with np.errstate(invalid="ignore"):
            return (self.ratio > self.visible(level)) & np.isfinite(self.ratio)

    def interval(self, at: tuple[int, int]) -> tuple[float, float]:
        """Both ends of the 95 % interval of the ratio's logarithm, of a host and a figure."""
        ratio, half = float(self.ratio[at]), float(self.error[at])
        half *= _core.t_quantile(0.975, float(self.degrees[at[1]]))
        return ratio - half, ratio + half

    def visible(self, level: float) -> Floats:
        """The logarithm of the ratio from which a host is called slow at this level of one figure."""
        limits = np.array([_core.t_quantile(1 - level, own) if own > 0 else np.inf for own in self.degrees])
        return np.maximum(limits * self.error, math.log(LEAST_RATIO))


def distances(values: Floats, errors: Floats, most_degrees: float = _MOST_DEGREES) -> Distances:
    """Compares each host with its peers.

    Args:
        values: Logarithms of figures of which more is slower, hosts × figures; NaN where there is none.
        errors: Standard errors of each from its own repeats, likewise; 0 or NaN where unknown.
        most_degrees: The most degrees of freedom, for tails heavier than those of normals.
    """
    count, figures = values.shape
    ratio, error, between = (np.full((count, figures), np.nan) for _ in range(3))
    degrees = np.zeros(figures)
    for figure in range(figures):
        known = np.flatnonzero(np.isfinite(values[:, figure]))
        if len(known) < LEAST_HOSTS:
            continue
        own = values[known, figure]
        mean, deviation, degrees[figure], peers = spread(own)
        own_error = np.nan_to_num(errors[known, figure])
        degrees[figure] = min(degrees[figure], most_degrees)
        ratio[known, figure] = own - mean
        between[known, figure] = deviation * math.sqrt(1 + 1 / peers)
        error[known, figure] = np.maximum(deviation, own_error) * math.sqrt(1 + 1 / peers)
    return Distances(ratio, error, between, degrees)


def spread(values: Floats, core: float = _CORE) -> tuple[float, float, float, int]:
    """Mean and standard deviation of normals, of which a part may be anything, by those closest together.

    Args:
        values: At least five.
        core: The share that is taken.

    Returns:
        Both, the degrees of freedom of the deviation, and how many values were taken.
    """
    peers = _closest(values, core)
    scale, degrees = _of_normals(min(len(values), _LARGEST), core)
    deviation = math.sqrt(float(np.var(peers)) * scale)
    return float(peers.mean()), deviation, min(degrees, _MOST_DEGREES), len(peers)


def level(alarms: float, tests: int) -> float:
    """The level of one test of so many, for so many alarms in a fleet."""
    return alarms / max(tests, 1)


def _closest(values: Floats, core: float) -> Floats:
    """The share of them that lie closest together, in order; along the last axis."""
    own = np.sort(values, axis=-1)
    size = own.shape[-1]
    kept = math.ceil(core * size)
    widths = own[..., kept - 1 :] - own[..., : size - kept + 1]
    first = np.argmin(widths, axis=-1)
    places = np.expand_dims(first, -1) + np.arange(kept)
    return np.take_along_axis(own, places, axis=-1)


@lru_cache(maxsize=256)
def _of_normals(size: int, core: float) -> tuple[float, float]:
    """What the variance of the closest of so many normals is multiplied by, and its degrees of freedom.

    The degrees match mean and variance of its inverse: what a ratio has below it decides its tail.
    """
    draws = np.random.default_rng(size).standard_normal((_DRAWS, size))
    logs = np.log(np.var(_closest(draws, core), axis=-1))
    # Of the logarithm of chi² with ν degrees the variance is ψ'(ν/2), and its mean ψ(ν/2) + log(2/ν).
    degrees = 2 * _core.trigamma_inverse(float(np.var(logs)))
    bias = _core.digamma(degrees / 2) - math.log(degrees / 2)
    return math.exp(bias - float(np.mean(logs))), degrees
