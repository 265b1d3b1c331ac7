"""The measured points of a run as the curves see them."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeGuard

from latlab.run.model import Channel, Record
from latlab.run.run import Run
from latlab.units import format_stated

#: Points of one line that are embedded: more than a screen can show, few enough to keep the page small.
MOST_POINTS = 400

_CALLED = {"std": "std. deviation", "p50": "median", "p999": "p99.9", "p9999": "p99.99", "max": "slowest"}
_SMALLEST, _LARGEST = 1e-9, 1e18


def drawable(value: float | None) -> TypeGuard[float]:
    """Whether a log axis can show it: no machine has ns or bytes a second outside of 1e-9 to 1e18."""
    return value is not None and _SMALLEST <= value <= _LARGEST


@dataclass(frozen=True, slots=True)
class Spot:
    """One point of a curve.

    Attributes:
        x: Where.
        value: The median.
        low: Lower end of its 95 % interval, or of all draws' intervals.
        high: Upper end likewise.
        samples: Values behind it.
        disturbed: Something else ran while it was measured.
        tail: Its slow end, where it has one.
        says: What is said of it, where that is not its place and its value.
    """

    x: float
    value: float
    low: float
    high: float
    samples: int
    disturbed: bool
    tail: float | None = None
    says: str = ""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Its interval; None where it has none."""
        return (self.low, self.high) if self.low < self.high else None

    def stated(self, write: Callable[[float], str]) -> str:
        """`1.06 ns (1.05–1.07 ns)`."""
        return format_stated(self.value, self.ends, write)


def with_figures(run: Run, probe: str, kind: str) -> list[Record]:
    """The probe's records of that kind whose median a log axis can show; a failed proof leaves none."""
    return [
        record
        for record in run.records
        if record.probe == probe and record.kind == kind and drawable(record.value)
    ]


def is_disturbed(record: Record) -> bool:
    """Whether its figure should be doubted; single disturbed blocks are not in the figure at all."""
    return any(flag.startswith("disturbed") for flag in record.flags)


def spots(records: Iterable[Record], x: Callable[[Record], float | None]) -> list[Spot]:
    """The records as one curve, ascending.

    Records at the same place are draws of the same thing (other physical pages): their median, and the
    range that their intervals cover.
    """
    places: dict[float, list[Record]] = defaultdict(list)
    for record in records:
        where = x(record)
        if where is not None:
            places[where].append(record)
    return [_joined(where, places[where]) for where in sorted(places)]


def series(
    records: Iterable[Record],
    names: Mapping[Any, str],
    key: Callable[[Record], object],
    x: Callable[[Record], float | None],
) -> dict[str, list[Spot]]:
    """Curves in the order of `names`, which has their names by key; those without points are left out."""
    own: dict[object, list[Record]] = defaultdict(list)
    for record in records:
        own[key(record)].append(record)
    curves = {name: spots(own[which], x) for which, name in names.items() if which in own}
    return {name: curve for name, curve in curves.items() if curve}


def _joined(where: float, draws: list[Record]) -> Spot:
    medians: list[float] = []
    ends: list[float] = []
    for record in draws:
        summary = record.summary
        if summary is None or summary.p50 is None:
            continue
        medians.append(summary.p50)
        ends += [summary.p50, *filter(drawable, record.interval or ())]
    return Spot(
        x=where,
        value=statistics.median(medians),
        low=min(ends),
        high=max(ends),
        samples=sum(record.samples for record in draws),
        disturbed=any(is_disturbed(record) for record in draws),
    )


def quantile(of: Record | Channel | None, name: str) -> float | None:
    """A figure of its summary; none where it has none."""
    value: float | None = getattr(of.summary, name) if of is not None and of.summary is not None else None
    return value


def quantiles(
    *names: str,
) -> Iterator[tuple[str, Literal["ns"], Callable[[Record | Channel | None], float | None]]]:
    """Columns of a table of records, for each of these figures one."""
    return ((_CALLED.get(name, name), "ns", partial(quantile, name=name)) for name in names)


def median_and_ends(
    unit: Literal["ns", "bytes_per_s"], name: str = "median"
) -> tuple[tuple[str, Literal["ns", "bytes_per_s"], Callable[[Record], str | float | None]], ...]:
    """Columns of such a table for the median and the ends of its interval, or why it has none."""
    return (
        (name, unit, lambda record: record.value),
        ("95 % from", unit, lambda record: record.ends[0]),
        ("95 % to", unit, lambda record: record.ends[1]),
    )


def place_in(known: Collection[str], name: str | None) -> int:
    """Where it stands among the known ones; behind all of them where it is not known."""
    return list(known).index(name) if name is not None and name in known else len(known)


def began_at(record: Record) -> float:
    """When its first block began, or its first slow operation: ns since the clock was opened; 0 without."""
    starts = [block.at_ns for block in record.blocks] + [sample.at_ns for sample in record.tail]
    return min(starts, default=0.0)


def why_absent(run: Run, probe: str) -> str:
    """One sentence: why this probe has no figures in this run."""
    reasons = [
        record.error.text for record in run.records if record.probe == probe and record.error is not None
    ]
    if reasons:
        return reasons[0]
    failed = [
        check.detail
        for record in run.records
        if record.probe == probe
        for check in record.checks
        if not check.ok
    ]
    if failed:
        return f"a proof of work failed: {failed[0]}"
    if any(planned.id == probe for planned in run.header.plan):
        return f"{probe} was planned, but the run ended before it had a figure"
    return f"{probe} was not part of this run"
