"""The long tail of latencies: how heavy it is, its groups, the families it can be told from.

    from latlab.stats import tails
    values = tails.of_samples([block1, block2, ...])    # or tails.of_record(run.records[7])
    tails.families(values).best.family
    tails.tail(values).index                            # None where no tail index holds, see why_no_index
    tails.normal_claim(values).seen

Everything is computed by the core. An interval is given where it was shown to hold the truth at least 93
times in a hundred (METHODOLOGY.md has the table); else it is None. Fits and plots over thresholds of one
sample share its
samples: neighbouring points agree more than their intervals say.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from latlab.run.model import Record
from latlab.stats import Refused, dependence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from latlab.stats import Samples

__all__ = [
    "Comparison",
    "Correlation",
    "Dip",
    "Excess",
    "Family",
    "Fit",
    "HillPoint",
    "Level",
    "Mode",
    "Modes",
    "NormalClaim",
    "Regimes",
    "Shape",
    "Tail",
    "TailIndex",
    "Values",
    "autocorrelation",
    "families",
    "modes",
    "normal_claim",
    "of_record",
    "of_samples",
    "regimes",
    "tail",
]

Family = Literal[
    "normal", "lognormal", "shifted_lognormal", "pareto", "two_lognormals", "lognormal_and_pareto"
]
#: A bucket of a run file's histogram is at most this part of its values wide.
_BUCKET: Final = 1 / 128
#: A normal puts 1 in 10^9 beyond so many deviations above its mean.
_FAR: Final = 6.0
#: Half of a 95 % interval, in deviations.
_NORMAL_95: Final = 1.96


@dataclass(frozen=True, slots=True)
class Values:
    """Single operations, as far as they are known.

    Attributes:
        counts: Value and number of samples, ascending; of a record the middles of its histogram's buckets.
        step: What values are multiples of, the clock's step; 0 where that is not known.
        grain: Relative width of the buckets; 0 for samples.
        effective: Independent samples that would say as much about the median.
        mean: Of all samples.
        deviation: Standard deviation; None for one sample.
        blocks: All samples in their order of measuring, in blocks taken apart in time; empty where they were
            not kept.
        slow: The samples above a threshold by the block of each, where those were kept; empty where not all
            were.
    """

    counts: tuple[tuple[float, int], ...]
    step: float
    grain: float
    effective: float
    mean: float
    deviation: float | None
    blocks: tuple[Samples, ...] = ()
    slow: tuple[tuple[float, ...], ...] = ()

    @property
    def total(self) -> int:
        """Number of samples."""
        return sum(count for _, count in self.counts)

    def above(self, value: float) -> int:
        """Samples above `value`."""
        return sum(count for at, count in self.counts if at > value)


class HillPoint(msgspec.Struct, frozen=True):
    """Hill's estimate above one threshold: if the share above x falls as a power of x, minus this one."""

    beyond: float
    share: float
    threshold: float
    index: float
    interval: tuple[float, float] | None = None


class Shape(msgspec.Struct, frozen=True):
    """A generalised Pareto above one threshold: shape 0 is exponential, above 0 a power of one over it."""

    beyond: float
    share: float
    threshold: float
    shape: float
    scale: float
    interval: tuple[float, float] | None = None


class Excess(msgspec.Struct, frozen=True):
    """Mean distance of what lies above a threshold from it: level if exponential, rising for a power."""

    beyond: float
    threshold: float
    excess: float


class TailIndex(msgspec.Struct, frozen=True):
    """A tail index that holds from a threshold on, over a factor of `span` in the value."""

    at: HillPoint
    span: float


class Tail(msgspec.Struct, frozen=True):
    """Plots over thresholds, furthest out first, and the one number, or why there is none."""

    hill: tuple[HillPoint, ...]
    shape: tuple[Shape, ...]
    mean_excess: tuple[Excess, ...]
    index: TailIndex | None = None
    why_no_index: str | None = None


class Fit(msgspec.Struct, frozen=True):
    """A family, fitted by maximum likelihood.

    Attributes:
        family: Which.
        parameters: By name, in the unit of the samples; `log_` ones of the natural logarithm.
        log_likelihood: Of binned samples, natural logarithm.
        bic: Schwarz's criterion; smaller is better.
        vuong_z: Deviations by which the best family is better, by Vuong's test; None for the best.
        vuong_p: Chance of so large a difference between two that are equally far from the truth.
        furthest_off: In the slowest tenth, where at least ten samples lie beyond: value, share seen above it,
            share that the family puts there.
        above: Share above each value that was asked for.
    """

    family: Family
    parameters: tuple[tuple[str, float], ...]
    log_likelihood: float
    bic: float
    above: tuple[float, ...]
    vuong_z: float | None = None
    vuong_p: float | None = None
    furthest_off: tuple[float, float, float] | None = None

    @property
    def factor_off(self) -> float:
        """By which factor it is off where it is furthest off in the slowest tenth."""
        if self.furthest_off is None:
            return 1.0
        _, seen, expected = self.furthest_off
        return max(seen / expected, expected / seen) if expected > 0 else math.inf


class Comparison(msgspec.Struct, frozen=True):
    """All families, best first by Schwarz's criterion."""

    fits: tuple[Fit, ...]
    samples: float
    effective: float

    @property
    def best(self) -> Fit:
        """The first."""
        return self.fits[0]

    def of(self, family: Family) -> Fit:
        """The fit of one family."""
        return next(fit for fit in self.fits if fit.family == family)


class Mode(msgspec.Struct, frozen=True):
    """A group of operations, apart from others by a valley; its median, 5 % and 95 % quantiles."""

    p50_ns: float
    low_ns: float
    high_ns: float
    share: float


class Dip(msgspec.Struct, frozen=True):
    """Hartigan's dip of the logarithms, and the chance of one as large with a single mode (0.001 to 1)."""

    dip: float
    p: float


class Modes(msgspec.Struct, frozen=True):
    """Groups, ascending. The dip test judges the whole: a group of few percent does not move it."""

    modes: tuple[Mode, ...]
    dip: Dip | None = None


class Correlation(msgspec.Struct, frozen=True):
    """Rank correlation of samples `lag` apart; that of independent ones is `nothing_within` at most."""

    lag: int
    value: float
    nothing_within: float


class Level(msgspec.Struct, frozen=True, rename={"first": "from", "end": "to"}):
    """A stretch of a series at one level: the values from place `first` to before `end`."""

    first: int
    end: int
    median: float


class Regimes(msgspec.Struct, frozen=True):
    """Stretches of a series in order; one where nothing changes. `trend`: it rises or falls all the while."""

    levels: tuple[Level, ...]
    trend: bool


@dataclass(frozen=True, slots=True)
class NormalClaim:
    """What a normal distribution with the samples' mean and deviation says of slow ones, and what was seen.

    Attributes:
        beyond: Six deviations above the mean.
        share: Share that the normal puts beyond it, 1 in 10^9.
        seen: Samples beyond it.
        total: All samples.
    """

    beyond: float
    share: float
    seen: int
    total: int


def of_samples(samples: Samples | Sequence[Samples], step: float = 0.0) -> Values:
    """Samples in their order of measuring: one series, or blocks that were taken apart in time.

    Args:
        samples: None negative.
        step: What they are multiples of, where that is known: the clock's step.

    Raises:
        Refused: there are none, or one is negative or not finite.
    """
    import numpy as np  # noqa: PLC0415 - only for samples of the caller's own

    several = len(samples) > 0 and np.ndim(samples[0]) > 0
    blocks = tuple(np.asarray(block, dtype=float) for block in (samples if several else [samples]))
    every = np.concatenate(blocks)
    if every.size == 0 or not np.isfinite(every).all() or every.min() < 0:
        raise Refused("a tail needs samples, each a finite number that is not negative")
    values, counts = np.unique(every, return_counts=True)
    return Values(
        counts=tuple(zip(values.tolist(), counts.tolist(), strict=True)),
        step=step,
        grain=0.0,
        effective=dependence(blocks).effective_samples,
        mean=float(every.mean()),
        deviation=float(every.std(ddof=1)) if every.size > 1 else None,
        blocks=blocks,
    )


def of_record(record: Record) -> Values:
    """The single operations of a record: its histogram, and its slow samples where all were kept.

    Raises:
        Refused: the record holds no single operations.
        RunFileError: its histogram is damaged.
    """
    buckets = record.buckets()
    summary = record.summary
    if record.kind != "per_op" or not buckets or summary is None or summary.mean is None:
        raise Refused(f"{record.label}: no single operations")
    # A bucket that begins at zero holds what took no step of the clock.
    counts = tuple(((low + high) / 2 if low > 0 else 0.0, count) for low, high, count in buckets)
    return Values(
        counts=counts,
        step=record.resolution_ns or 0.0,
        grain=_BUCKET,
        effective=_effective(counts, _within_rounds(record)),
        mean=summary.mean,
        deviation=summary.std,
        slow=_by_block(record),
    )


def _within_rounds(record: Record) -> tuple[float, float] | None:
    """The 95 % interval of the median by what blocks of one round differ by.

    What rounds and CPUs differ by moves a distribution as a whole; its form does not depend on it.
    """
    within = record.spread.within if record.spread is not None else None
    if within is None or not record.value or not record.blocks:
        return None
    factor = math.exp(_NORMAL_95 * within / math.sqrt(len(record.blocks)))
    return record.value / factor, record.value * factor


def _effective(counts: tuple[tuple[float, int], ...], interval: tuple[float, float] | None) -> float:
    """Independent samples whose median would have so wide an interval: its ends are quantiles."""
    total = sum(count for _, count in counts)
    if interval is None:
        return float(total)
    inside = sum(count for at, count in counts if interval[0] < at < interval[1]) / total
    return float(total) if inside <= 0 else min(float(total), (_NORMAL_95 / inside) ** 2)


def _by_block(record: Record) -> tuple[tuple[float, ...], ...]:
    """The slow samples by the block that was under way, if all slow ones are there and blocks tell."""
    if record.tail_dropped or not record.tail or not record.blocks:
        return ()
    starts = sorted(block.at_ns for block in record.blocks)
    groups: list[list[float]] = [[] for _ in starts]
    for sample in record.tail:
        groups[max(bisect.bisect_right(starts, sample.at_ns) - 1, 0)].append(sample.value)
    return tuple(tuple(group) for group in groups)


def tail(values: Values) -> Tail:
    """Plots over thresholds, of Hill's index, shape and mean excess; and a tail index where one holds.

    With intervals where the order of measuring is known: of samples in blocks everywhere, of a record above
    the threshold from which its slow samples were kept.
    """
    if values.blocks:
        found: Tail = _found(Tail, "tail_of", list(values.blocks))
        return found
    whole: Tail = _found(Tail, "tail_of_counts", list(values.counts))
    if not values.slow:
        return whole
    worth = values.effective / values.total
    slow: Tail = _found(Tail, "tail_of", [list(group) for group in values.slow], values.total, worth)
    # The slow ones' points, then those of all further in.
    reached = float(sum(map(len, values.slow)))
    return Tail(
        hill=(*slow.hill, *(point for point in whole.hill if point.beyond > reached)),
        shape=(*slow.shape, *(point for point in whole.shape if point.beyond > reached)),
        mean_excess=whole.mean_excess,
        index=slow.index or whole.index,
        why_no_index=None if slow.index else whole.why_no_index,
    )


def families(values: Values, at: Iterable[float] = ()) -> Comparison | None:
    """The families, fitted and compared; None for fewer than 50 samples or three values.

    Args:
        values: What is fitted.
        at: Where each fit's share above is wanted (`Fit.above`).
    """
    found: Comparison | None = _found(
        Comparison | None,
        "compare_families",
        list(values.counts),
        values.step,
        values.grain,
        values.effective,
        list(at),
    )
    return found


def modes(values: Values) -> Modes:
    """Groups of operations that took about as long, and the dip test of the logarithms."""
    found: Modes = _found(Modes, "modes", list(values.counts), values.step, values.grain, values.effective)
    return found


def autocorrelation(blocks: Sequence[Samples]) -> tuple[Correlation, ...]:
    """Rank correlation within blocks, of samples 1, 2, 4, ... apart.

    How many independent samples they are worth is in `latlab.stats.dependence`.

    Raises:
        Refused: a sample is not finite.
    """
    found: tuple[Correlation, ...] = _found(tuple[Correlation, ...], "autocorrelation", list(blocks))
    return found


def regimes(series: Samples) -> Regimes | None:
    """Where a series in time, of block medians or rates, changes its level; None for fewer than eight values.

    Optimal partitioning of the logarithms, deaf to single stalls. A steady rise or fall is a trend.
    """
    found: Regimes | None = _found(Regimes | None, "regimes", series)
    return found


def normal_claim(values: Values) -> NormalClaim | None:
    """What a normal would make of the slow samples; None where there is no spread."""
    if not values.deviation:
        return None
    beyond = values.mean + _FAR * values.deviation
    share = 0.5 * math.erfc(_FAR / math.sqrt(2))
    return NormalClaim(beyond=beyond, share=share, seen=values.above(beyond), total=values.total)


def _found(kind: Any, name: str, *arguments: object) -> Any:  # noqa: ANN401 - of the kind that was asked for
    from latlab.run.core import core  # noqa: PLC0415 - 10 ms, when it is first needed

    try:
        return msgspec.json.decode(getattr(core(), name)(*arguments), type=kind)
    except ValueError as error:
        raise Refused(str(error)) from None
