"""One rung of the ladder, as pure data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from latlab import units
from latlab.run.textbook import USUAL

if TYPE_CHECKING:
    from latlab.run.model import CpuFigure, Record, Unit
    from latlab.run.run import Run

TailKind = Literal["window means", "single accesses"]
IntervalKind = Literal["95 % interval", "spread over its sizes", "spread over pairs of CPUs"]
Group = Literal["levels", "operations"]


@dataclass(frozen=True, slots=True)
class Tail:
    """The slow end of a rung.

    Attributes:
        value_ns: The quantile, ns.
        quantile: `p99.9`, or the highest one that had samples enough.
        kind: Whether one value is a mean over a window of accesses or one access alone. A quantile of window
            means says little about the tail of single accesses: within a window the slow ones are averaged
            away.
        ops_per_sample: Accesses behind one value.
        samples: Number of values.
        source: The record it is from: `memory.poke, 1 GB, read`.
        note: What is inside the value besides the access, if anything.
        is_bound: The timer overhead's tail is as long: the accesses' is at most this.
    """

    value_ns: float
    quantile: str
    kind: TailKind
    ops_per_sample: int
    samples: int
    source: str
    note: str = ""
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class Rung:
    """One level.

    Attributes:
        key: Stable name: `L1`, `L2`, `L3`, `RAM`, `RAM+TLB`, `poke:1000000000:read`, `syscall`, `page-fault`.
        level: Name for people: `L2 cache`, `system call (getppid)`.
        size_text: What it holds, effective beside nominal where they differ: `10-14 of 32 MiB`. Of an
            operation, what was measured in place of its usual point: `after 100 µs`.
        latency_p50_ns: Median of one access, ns; absent when not measured (see `note`).
        interval: Bounds of the latency, ns.
        interval_kind: What `interval` is: the 95 % interval of one median, the smallest and largest
            median of the sizes on the level's plateau, or of all pairs of CPUs.
        is_range: `interval` is a range of levels seen rather than the interval of one median; print it
            instead of the median.
        tail: The slow end; absent when it had too few samples (see `refused`).
        refused: Why there is no tail: `p99.9: 1,200 samples, needs 3,688`.
        bandwidth: Reading with one thread at this level's own size, bytes a second.
        bandwidth_ends: Its 95 % interval, bytes a second; absent where it was measured once.
        bandwidth_point: Where that was measured, and what a byte means.
        seconds_1MiB: Seconds for 1 MiB at that bandwidth; absent for a level that cannot hold it.
        seconds_1GiB: Seconds for 1 GiB likewise.
        l1_hits: How many L1 hits one such access costs.
        textbook_ns: The published figure, ns.
        textbook_source: Its source; empty when there is no figure.
        note: One sentence: why this is a range, why there is no figure, what it stands for.
        flags: `disturbed`, `degraded: ...` of the records behind it, and that a cache size is unconfirmed.
        samples: Number of values behind the median.
        ops_per_sample: Accesses behind one value.
        probe: Whose record it is of.
        path: What was measured: `24 KiB, 4k pages, page-local`.
        checks: Proofs of the records behind it: (name, held, detail).
        resolution_ns: Smallest difference that one value can show, ns.
        group: A level of memory, or an operation of the kernel, the allocator or the interpreter.
        rounds: Number of the run's rounds that the median is of; 0 where that is not known.
        why_no_interval: In few words, where there is no `interval`.
        by_cpu: Each CPU's figure, the fastest first, where CPUs differ by more than run-to-run variation.
    """

    key: str
    level: str
    size_text: str = ""
    latency_p50_ns: float | None = None
    interval: tuple[float, float] | None = None
    interval_kind: IntervalKind = "95 % interval"
    is_range: bool = False
    tail: Tail | None = None
    refused: str = ""
    bandwidth: float | None = None
    bandwidth_ends: tuple[float, float] | None = None
    bandwidth_point: str = ""
    seconds_1MiB: float | None = None  # noqa: N815 - the unit is part of the name
    seconds_1GiB: float | None = None  # noqa: N815 - the unit is part of the name
    l1_hits: float | None = None
    textbook_ns: float | None = None
    textbook_source: str = ""
    note: str = ""
    flags: tuple[str, ...] = ()
    samples: int = 0
    ops_per_sample: int = 0
    probe: str = ""
    path: str = ""
    checks: tuple[tuple[str, bool, str], ...] = ()
    resolution_ns: float = 0.0
    group: Group = "levels"
    rounds: int = 0
    why_no_interval: str = units.ONCE
    by_cpu: tuple[CpuFigure, ...] = ()

    @property
    def tail_ns(self) -> float | None:
        """Value of the tail, ns."""
        return self.tail.value_ns if self.tail else None

    @property
    def measured(self) -> bool:
        """Whether there is a latency."""
        return self.latency_p50_ns is not None

    @property
    def short(self) -> str:
        """`L3`; an operation as it is."""
        return self.level.removesuffix(" cache")

    @property
    def name(self) -> str:
        """`L3 10–14 of 32 MiB`."""
        return f"{self.short} {self.size_text}".rstrip()


#: A spread over sizes or pairs wider than this share of the median says that there was no single level: it is
#: shown as a range.
_RANGE_SHARE = 0.25
_QUANTILES = (("p999", "p99.9"), ("p99", "p99"), ("p90", "p90"))


#: Flags that are one word, in a sentence.
_FLAGS = {"disturbed": "disturbed: something else used the caches or the CPU during the measurement"}


def flagged(rungs: Sequence[Rung], name: Callable[[Rung], str] = lambda rung: rung.level) -> list[str]:
    """A line a flag, with the rungs that have it: `L3, RAM: disturbed: ...`."""
    return [
        f"{', '.join(name(rung) for rung in rungs if flag in rung.flags)}:"
        f" {_FLAGS.get(flag, flag.replace('_', ' '))}"
        for flag in sorted({flag for rung in rungs for flag in rung.flags})
    ]


def apart(rungs: Sequence[Rung], name: Callable[[Rung], str] = lambda rung: rung.level) -> list[str]:
    """A line a rung whose CPUs differ: `disk, random 4 KiB read: 70.1 µs on CPU 1, 98.0 µs on CPU 0`."""
    return [f"{name(rung)}: {on_cpus(rung.by_cpu)}" for rung in rungs if rung.by_cpu]


def on_cpus(figures: Sequence[CpuFigure], unit: Unit = "ns") -> str:
    """`70.1 µs on CPU 1, 98.0 µs on CPU 0`."""
    form = units.format_ns if unit == "ns" else units.format_rate
    return ", ".join(f"{form(own.p50)} on CPU {own.cpu}" for own in figures)


def with_record(rung: Rung, record: Record | None) -> Rung:
    """The rung with the details of a record."""
    if record is None:
        return rung
    checks = tuple((check.name, check.ok, check.detail) for check in record.checks)
    return replace(
        rung,
        samples=record.samples,
        ops_per_sample=record.ops_per_sample,
        probe=record.probe,
        path=record.point.label(),
        flags=rung.flags + tuple(record.flags),
        checks=checks,
        resolution_ns=record.resolution_ns or 0.0,
        rounds=len(record.rounds),
        why_no_interval=record.why_no_interval,
        by_cpu=record.apart if record.unit == "ns" else (),
    )


def with_textbook(rung: Rung, key: str) -> Rung:
    """The rung with the published figure of that name, if there is one."""
    figure = USUAL.get(key)
    return rung if figure is None else replace(rung, textbook_ns=figure, textbook_source=USUAL.source)


def tail_of(record: Record, kind: TailKind) -> Tail | None:
    """The highest of p99.9, p99 and p90 that had samples enough; nothing when a proof failed."""
    if record.summary is None or not record.proved:
        return None
    for field, name in _QUANTILES:
        value = getattr(record.summary, field)
        if value is not None:
            source = f"{record.probe}, {record.point.label()}"
            return Tail(value, name, kind, record.ops_per_sample, record.samples, source)
    return None


def is_wide(rung: Rung) -> bool:
    """Whether the interval says that there was no single figure."""
    interval, median = rung.interval, rung.latency_p50_ns
    return (
        interval is not None and bool(median) and interval[1] - interval[0] > _RANGE_SHARE * (median or 0.0)
    )


def absence(run: Run, probe: str) -> str:
    """Why a probe has no figures in this run; empty when nothing says so."""
    for record in run.records:
        if record.probe == probe and record.error is not None and record.error.text:
            return record.error.text
    if not any(record.probe == probe for record in run.records):
        planned = any(entry.id == probe for entry in run.header.plan)
        return "the run ended before it" if planned else "it was not part of this run"
    return ""
