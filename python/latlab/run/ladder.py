"""The ladder: every level that data passes through, one rung each, as pure data.

A terminal table, the report's first screen and `run.ladder()` are renderings of what :func:`ladder` returns. Nothing
here invents a figure: a level that was not measured has a rung without one, and the rung says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TailKind = Literal["window means", "single accesses"]


@dataclass(frozen=True, slots=True)
class Tail:
    """The slow end of a rung.

    Attributes:
        value_ns: The quantile, ns.
        quantile: `p99.9`, or the highest one that had samples enough.
        kind: Whether one value is a mean over a window of accesses or one access alone. A quantile of window means
            says little about the tail of single accesses: within a window the slow ones are averaged away.
        ops_per_sample: Accesses behind one value.
        samples: Number of values.
        source: The record it is from: `memory.poke, 1 GB, read`.
        note: What is inside the value besides the access, if anything.
    """

    value_ns: float
    quantile: str
    kind: TailKind
    ops_per_sample: int
    samples: int
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rung:
    """One level.

    Attributes:
        key: Stable name: `L1`, `L2`, `L3`, `RAM`, `RAM+TLB`, `poke:1000000000:read`.
        level: Name for people: `L2 cache`.
        size_text: What it holds, effective beside nominal where they differ: `10-14 of 32 MiB`.
        latency_p50_ns: Median of one access, ns; absent when not measured (see `note`).
        interval: 95 % interval of the median, ns, or the range of what was seen when `is_range`.
        is_range: `interval` is a range of levels seen rather than the interval of one median; print it instead of the median.
        tail: The slow end; absent when it had too few samples (see `refused`).
        refused: Why there is no tail: `p99.9: 1,200 samples, needs 3,688`.
        bandwidth: Reading with one thread at this level's own size, bytes a second.
        bandwidth_point: Where that was measured, and what a byte means.
        seconds_1MiB: Seconds for 1 MiB at that bandwidth; absent for a level that cannot hold it.
        seconds_1GiB: Seconds for 1 GiB likewise.
        l1_hits: How many L1 hits one such access costs.
        textbook_ns: The published figure, ns.
        textbook_source: Its source; empty when there is no figure.
        note: One sentence: why this is a range, why there is no figure, what it stands for.
        flags: `disturbed`, `degraded: ...` of the records behind it, and `unvalidated`.
        samples: Number of values behind the median.
        ops_per_sample: Accesses behind one value.
        path: What was measured: `24 KiB, 4k pages, page-local`.
        checks: Proofs of the records behind it: (name, held, detail).
    """

    key: str
    level: str
    size_text: str = ""
    latency_p50_ns: float | None = None
    interval: tuple[float, float] | None = None
    is_range: bool = False
    tail: Tail | None = None
    refused: str = ""
    bandwidth: float | None = None
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
    path: str = ""
    checks: tuple[tuple[str, bool, str], ...] = ()

    @property
    def tail_ns(self) -> float | None:
        """Value of the tail, ns."""
        return self.tail.value_ns if self.tail else None

    @property
    def tail_kind(self) -> TailKind | None:
        """What one value behind the tail is."""
        return self.tail.kind if self.tail else None

    @property
    def measured(self) -> bool:
        """Whether there is a latency."""
        return self.latency_p50_ns is not None
