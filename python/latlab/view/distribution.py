"""Distributions of operations that were timed one by one: how many take at least how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from latlab.errors import RunFileError
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view.points import MOST_POINTS, drawable
from latlab.view.table import Column, Table

PROBE = "memory.poke"
#: Points of one staircase that are embedded, and that are in its table.
MOST_STEPS, _TABLE_STEPS = 160, 40
# A tenth of a clock cycle: nothing that is timed is shorter.
_SHORTEST_NS = 0.02


@lru_cache(maxsize=64)
def _buckets(encoding: str, data: str) -> tuple[tuple[float, float, int], ...]:
    from latlab import _core  # noqa: PLC0415 - a page without these charts needs no core

    try:
        return tuple(_core.decode_histogram(encoding, data))
    except ValueError as error:
        raise RunFileError(f"a histogram in this run file cannot be read: {error}") from None


def single_pokes(run: Run, operation: str | None = None) -> list[Record]:
    """Records of pokes timed one by one, smallest array first."""
    records = [
        record
        for record in run.records
        if record.probe == PROBE
        and record.kind == "per_op"
        # A median of zero is a figure: on a coarse clock most pokes take no time.
        and record.value is not None
        and record.histogram is not None
        and (operation is None or record.point.operation == operation)
    ]
    return sorted(
        records, key=lambda record: (record.point.working_set_bytes or 0, record.point.operation or "")
    )


def size_name(record: Record) -> str:
    """The array as the notebook calls it: `empty`, `1 KB`, `1 GB`."""
    size = record.point.working_set_bytes
    if not size:
        return "empty poke"
    return format_bytes(size, decimal=size % 1000 == 0)


def counts(record: Record) -> list[tuple[float, int]]:
    """`(ns, number of pokes)`, ascending; a bucket is at most 0.8 % wide, so its middle stands for it."""
    if record.histogram is None:
        return []
    return [
        ((low + high) / 2 if low > 0 else 0.0, count)
        for low, high, count in _buckets(record.histogram.encoding, record.histogram.data)
    ]


def survival(record: Record) -> list[tuple[float, float]]:
    """`(ns, share of pokes that take at least that long)`, ascending in ns, at most 400 points.

    A log axis has no zero: what took no step of the clock stands at half a step.
    """
    step = record.resolution_ns if drawable(record.resolution_ns) else 0.0
    pairs = [(max(at, step / 2, _SHORTEST_NS), count) for at, count in counts(record)]
    total = sum(count for _, count in pairs)
    steps: list[tuple[float, float]] = []
    left = total
    for at, count in pairs:
        steps.append((at, left / total))
        left -= count
    slowest = record.summary.max if record.summary else None
    # The last bucket's middle may lie a little above the slowest poke itself.
    if drawable(slowest) and steps and slowest > 0.99 * steps[-1][0]:
        steps[-1] = (slowest, steps[-1][1])
    return thinned(steps)


def thinned(steps: list[tuple[float, float]], most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """At most `most` of the steps, evenly along the curve as it looks on log axes; both ends stay."""
    if len(steps) <= most:
        return steps
    import numpy as np  # noqa: PLC0415 - a screen that draws nothing does without

    points = np.log(np.asarray(steps))
    along = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(points, axis=0)).sum(axis=1))))
    chosen = np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], most)).clip(0, len(steps) - 1))
    return [steps[index] for index in chosen]


def slower_than(record: Record, limit_ns: float) -> float:
    """Share of pokes that took longer than `limit_ns`."""
    pairs = counts(record)
    total = sum(count for _, count in pairs)
    return sum(count for at, count in pairs if at > limit_ns) / total


def normal_share(record: Record, at_ns: float) -> float | None:
    """Share above `at_ns` of a normal distribution with the record's mean and standard deviation."""
    summary = record.summary
    if summary is None or not drawable(summary.mean) or not drawable(summary.std):
        return None
    return 0.5 * math.erfc((at_ns - summary.mean) / (summary.std * math.sqrt(2)))


def steps(record: Record, most: int = MOST_STEPS) -> list[tuple[float, float]]:
    """`(ns, share that takes at least as long)` of a record's operations, ascending, no more than so many."""
    return thinned(survival(record), most)


def in_words(records: Mapping[str, Record]) -> str:
    """`read, depth 1: median 55.0 µs, slowest 2.10 ms; ...`."""
    parts = []
    for name, record in records.items():
        typical = record.summary.p50 if record.summary else None
        parts.append(f"{name}: median {format_ns(typical)}, slowest {format_ns(steps(record)[-1][0])}")
    return "; ".join(parts)


def table(records: Mapping[str, Record], what: str) -> Table:
    """Points of every staircase, fewer than are drawn."""
    columns = (Column("series"), Column(f"{what} at least", "ns"), Column("share", "share"))
    rows = tuple(
        (name, at, share)
        for name, record in records.items()
        for at, share in thinned(survival(record), _TABLE_STEPS)
    )
    return Table(columns, rows)
