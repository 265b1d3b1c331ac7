"""What one run says of a figure, as comparisons and histories of several runs take it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from latlab.run.model import Kind, Unit

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run

Quantile: TypeAlias = Literal["p50", "p99"]
#: Half of a 95 % interval, in standard errors.
NORMAL: Final = 1.96
_QUANTILES: Final[tuple[Quantile, ...]] = ("p50", "p99")


class Key(NamedTuple):
    """A figure of any run: a probe's point, how it was timed, and which quantile of it."""

    probe: str
    point: str
    kind: Kind
    quantile: Quantile


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure of one run.

    Attributes:
        key: Which it is.
        unit: Of the values.
        method: Version of the probe's method.
        value: The quantile, above zero.
        ends: Its 95 % interval; None where nothing tells it.
        disturbed: Whether something else ran meanwhile.
        step: Smallest difference that the instrument can show, in the unit.
    """

    key: Key
    unit: Unit
    method: int
    value: float
    ends: tuple[float, float] | None
    disturbed: bool
    step: float = 0.0

    @property
    def error(self) -> float | None:
        """Standard error of the value's logarithm, by the interval; None where nothing tells it."""
        if self.ends is None or not 0 < self.ends[0] <= self.ends[1]:
            return None
        return math.log(self.ends[1] / self.ends[0]) / (2 * NORMAL)


def samples(run: Run) -> tuple[Sample, ...]:
    """The median of each record, and p99 of operations that were timed one by one; no figure twice.

    Records of the same point are draws of the same thing: their median, and the range of their intervals.
    """
    draws: dict[Key, list[Sample]] = {}
    for record in run.records:
        for sample in samples_of(record):
            draws.setdefault(sample.key, []).append(sample)
    return tuple(own[0] if len(own) == 1 else _joined(own) for own in draws.values())


def samples_of(record: Record) -> Iterator[Sample]:
    """The same of one record; none where it has no figure."""
    summary = record.summary
    if record.value is None or record.kind == "derived" or summary is None:
        return
    for quantile in _QUANTILES if record.kind == "per_op" else _QUANTILES[:1]:
        value: float | None = getattr(summary, quantile)
        if value is not None and value > 0:
            yield Sample(
                Key(record.probe, record.point.label(), record.kind, quantile),
                record.unit,
                record.method,
                value,
                summary.intervals.get(quantile),
                record.disturbed,
                record.resolution_ns or 0.0 if record.unit == "ns" else 0.0,
            )


def _joined(draws: list[Sample]) -> Sample:
    first = draws[0]
    ends = [end for each in draws for end in (each.value, *(each.ends or ()))]
    return Sample(
        first.key,
        first.unit,
        max(each.method for each in draws),
        statistics.median(each.value for each in draws),
        (min(ends), max(ends)),
        any(each.disturbed for each in draws),
        max(each.step for each in draws),
    )
