"""The difference between two sides of a figure, and its uncertainty by runs, kept runs and rounds.

One run a side does not show the variation between runs. It comes from kept runs of the same machine, or,
without any, from the usual variation between runs of one machine.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from latlab import _core
from latlab.compare.verdict import Contrast
from latlab.run.samples import NORMAL

if TYPE_CHECKING:
    from latlab.run.samples import Sample

#: How the name of a probe begins of which not a duration but the rate of slow operations is compared.
RATE: Final = "slow operations of "
#: Standard deviation of a figure's logarithm between runs of one machine where no runs say it, by how its
#: probe's name begins, and its degrees of freedom: what twelve runs of a machine under changing load had
#: (benches/results/compare-spread.csv). Rates of slow operations of twelve others had 0.2 in the median of
#: 66, and in nine of ten 1.4 at most, beyond what their counts explain.
_USUAL: Final = (
    (RATE, 1.0),
    ("kernel.timer", 1.0),
    ("kernel.wakeup", 1.0),
    ("network.", 1.0),
    ("storage.", 0.7),
    ("", 0.15),
)
USUAL_DEGREES: Final = 4.0
#: So many runs a side say by themselves how far they lie apart. With fewer, what each says of its own
#: precision bounds that from below: kin may lie closer together than a figure's own runs.
SEVERAL: Final = 3


def contrasts(figures: Sequence[Sequence[Sequence[Sample]]]) -> list[Contrast]:
    """How the second side of each figure compares with the first.

    The same quantile of one probe's figures are kin: they say together how far runs lie apart.

    Args:
        figures: Of each the samples of the first side and of the second, at least one each, and those of
            other runs of the machine, which say only how far its runs lie apart.
    """
    found: dict[int, Contrast] = {}
    probes: dict[tuple[str, str], list[int]] = {}
    for place, groups in enumerate(figures):
        key = groups[0][0].key
        probes.setdefault((key.probe, key.quantile), []).append(place)
    for places in probes.values():
        values = [[[sample.value for sample in group] for group in figures[place]] for place in places]
        for place, known in zip(places, _core.contrast_groups(values), strict=True):
            found[place] = _contrast(figures[place], known)
    return [found[place] for place in range(len(figures))]


def _contrast(
    groups: Sequence[Sequence[Sample]], known: tuple[float, float, float, float] | None
) -> Contrast:
    first, second = groups[:2]
    runs = min(len(first), len(second))
    own = math.hypot(_own_error(first), _own_error(second))
    if known is None:
        probe = groups[0][0].key.probe
        usual = usual_spread(probe)
        ratio = math.log(_centre(second) / _centre(first))
        error = usual * math.sqrt(1 / len(first) + 1 / len(second))
        return Contrast(ratio, max(error, own), usual, USUAL_DEGREES, runs)
    ratio, error, between, degrees = known
    if runs >= SEVERAL:
        # How precise each run is shows in how far they lie apart.
        own = math.hypot(_step(first), _step(second))
    return Contrast(ratio, max(error, own), between, degrees, runs)


def usual_spread(probe: str) -> float:
    """Standard deviation of a figure's logarithm between runs of one machine where no runs say it."""
    return next(spread for beginning, spread in _USUAL if probe.startswith(beginning))


def _centre(samples: Sequence[Sample]) -> float:
    return _core.centre([sample.value for sample in samples]) or math.nan


def _own_error(samples: Sequence[Sample]) -> float:
    """What the runs of a side say of their own precision: the standard error of their mean's logarithm."""
    errors = [error for sample in samples if (error := sample.error) is not None]
    if not errors:
        return _step(samples)
    # One run that is not precise hardly moves a side's centre.
    return math.hypot(statistics.median(errors) / math.sqrt(len(samples)), _step(samples))


def _step(samples: Sequence[Sample]) -> float:
    """The error that one step of the instrument adds; more runs do not reduce it."""
    steps = statistics.fmean(math.log1p(sample.step / sample.value) for sample in samples)
    return steps / (NORMAL * math.sqrt(2))


def paired(logs: Sequence[float], least: float) -> Contrast:
    """The mean of log-ratios of pairs.

    Args:
        logs: Two or more.
        least: What they can be known to.
    """
    deviation = max(statistics.stdev(logs), least)
    count = len(logs)
    return Contrast(
        statistics.fmean(logs), deviation / math.sqrt(count), deviation, count - 1.0, count, paired=True
    )
