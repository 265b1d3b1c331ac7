"""How many times as long an operation takes on another machine, by the figures that both runs have.

`TABLE` alone defines which figures represent what a program does. A ratio is of the same point
and method in both runs. Its uncertainty is that of both figures: their 95 % intervals where the runs know
them, and 15 % for figures of one round (3 % of `cpu.mix`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latlab.predict.figures import each_s
from latlab.predict.model import ONCE
from latlab.run.model import Record
from latlab.run.point import Point
from latlab.run.run import Run

Draws: TypeAlias = NDArray[np.float64]

DRAWS: Final = 4000
_TO_EITHER_SIDE: Final = 1.96
"""Standard deviations from the middle of a 95 % interval to its ends."""
_OF_A_CORE: Final = 0.03
"""The same of `cpu.mix`."""
_LEAST: Final = 0.005
_NEAR: Final = 4.0
"""Block sizes within this factor of the program's own are taken; where there is none, the nearest."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Which points of a probe represent an operation.

    Attributes:
        probe: Whose points.
        wanted: Which of them.
        size: Which of several sizes: `block` near the program's own, or the `largest` array; empty: all.
    """

    probe: str
    wanted: Callable[[Point], bool] = lambda _: True
    size: str = ""


_MANY: Final = 1000
"""Small files that are measured together."""

MIX: Final = (Figures("cpu.mix"),)
MEMORY: Final = (
    Figures("memory.load.dependent", lambda p: p.order == "random" and p.pages == "4k", "largest"),
    Figures("memory.bandwidth", lambda p: p.operation == "copy" and p.threads == 1, "largest"),
)
_COPY: Final = MEMORY[1:]
_MALLOC: Final = (
    Figures(
        "alloc.malloc",
        lambda p: p.allocator == "system" and p.placement == "same-thread" and (p.size_bytes or 0) <= 1 << 10,
    ),
)
_FAULT: Final = (Figures("vm.fault", lambda p: p.operation == "first-write" and p.pages == "4k"),)
_FILE_FAULT: Final = (Figures("vm.fault", lambda p: p.operation == "file-minor"),)
_CALL: Final = (Figures("kernel.syscall", lambda p: p.operation in {"getppid", "read-0", "futex-wake"}),)
_READ: Final = (Figures("storage.read.sequential", lambda p: p.path == "buffered-warm", "block"),)
_WRITE: Final = (Figures("storage.write.sequential", lambda p: p.path == "buffered", "block"),)
_NAMES: Final = (
    Figures("storage.files", lambda p: p.operation in {"stat", "read-warm"} and p.files == _MANY),
)
COLD: Final = (
    # What the kernel reads ahead is as large whatever a program's calls are: it is like large direct reads.
    Figures("storage.read.sequential", lambda p: p.path == "buffered-cold"),
    Figures("storage.read.sequential", lambda p: p.path == "direct" and (p.block_bytes or 0) >= 1 << 20),
)
RANDOM: Final = (Figures("storage.read.random", lambda p: p.queue_depth == 1),)
_WRITTEN: Final = (
    Figures("storage.write.sequential", lambda p: p.path in {"buffered-fsync-end", "direct"}, "block"),
)
_FLUSH: Final = (Figures("storage.sync"),)
_WAKE: Final = (Figures("kernel.wakeup"), Figures("kernel.context_switch", lambda p: p.threads is None))
_SPAWN: Final = (Figures("kernel.spawn", lambda p: p.operation in {"posix_spawn", "fork-exit"}),)

COMPUTING: Final = ("compute", "user-cpu", "garbage-collection", "unexplained")
"""Bracketed: between the lowest and the highest ratio of `MIX` and `MEMORY`."""
UNSCALED: Final[Mapping[str, str]] = {
    "network": "it depends on the other side and the path",
    "sleep": "the program requests this time",
    "run-queue-wait": "it depends on other programs",
    "interrupts-for-others": "it depends on other programs",
}
"""Taken as it was here, and why."""
TABLE: Final[Mapping[tuple[str, str], tuple[Figures, ...]]] = {
    ("memory-copy", ""): _COPY,
    ("allocator", ""): _MALLOC,
    ("page-faults", "of file mappings"): _FILE_FAULT,
    ("page-faults", ""): _FAULT,
    ("file-io-cpu", "reading"): _READ,
    ("file-io-cpu", "writing"): _WRITE,
    ("file-io-cpu", "flushing"): _FLUSH,
    ("file-io-cpu", "names and metadata"): _NAMES,
    ("file-io-cpu", "reading for page faults"): (*_READ, *_FILE_FAULT),
    ("file-io-cpu", ""): (*_READ, *_WRITE),
    ("kernel-cpu", ""): _CALL,
    ("storage-wait", "writing"): _WRITTEN,
    ("storage-wait", "flushing"): _FLUSH,
    ("storage-wait", "names and metadata"): RANDOM,
    ("storage-wait", "page fault"): (*COLD, *RANDOM),
    ("storage-wait", "small"): RANDOM,
    ("storage-wait", ""): COLD,
    ("pipe", ""): _WAKE,
    ("locks", ""): _WAKE,
    ("waiting-for-children", ""): _SPAWN,
    ("start-and-exit", ""): (*_SPAWN, *_FAULT),
}
"""By category of the ledger and part of it; the empty part stands for all others."""
PROBES: Final = frozenset(own.probe for figures in (*TABLE.values(), MIX, MEMORY) for own in figures)
"""All that are asked."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long one point takes there.

    Attributes:
        probe: Which probe.
        point: Its point, in words.
        value: The other machine's figure by this one's, of times; of rates the inverse.
        deviation: Of its logarithm.
    """

    probe: str
    point: str
    value: float
    deviation: float

    @property
    def ends(self) -> tuple[float, float]:
        """Of its 95 % interval."""
        factor = math.exp(_TO_EITHER_SIDE * self.deviation)
        return self.value / factor, self.value * factor


@dataclass(frozen=True, slots=True)
class Missing:
    """A run has no figure that is needed.

    Attributes:
        probe: Whose.
        there: It is the other machine's run; otherwise that of this one.
    """

    probe: str
    there: bool


def weights(deviations: Sequence[float]) -> Draws:
    """What each of several figures counts: by its precision; they sum to 1."""
    own = [1 / deviation**2 for deviation in deviations]
    return np.array(own) / sum(own)


def middle(ratios: Sequence[Ratio]) -> float:
    """The geometric mean of several ratios, the more precise ones counting more."""
    logs = [math.log(ratio.value) for ratio in ratios]
    return math.exp(float(np.dot(weights([ratio.deviation for ratio in ratios]), logs)))


def drawn(ratios: Sequence[Ratio], rng: np.random.Generator) -> Draws:
    """Values that a ratio may have: any of these, each as often as it counts and within its uncertainty."""
    logs = np.array([math.log(ratio.value) for ratio in ratios])
    deviations = [ratio.deviation for ratio in ratios]
    which = rng.choice(len(ratios), size=DRAWS, p=weights(deviations))
    own: Draws = np.exp(logs[which] + np.array(deviations)[which] * rng.standard_normal(DRAWS))
    return own


def byte_ns(run: Run, figures: Sequence[Figures]) -> float | None:
    """What a byte takes by these figures of files, ns; None where the run has none."""
    found = [
        (math.log(cost / (record.point.block_bytes or 1)), deviation(record))
        for own in figures
        for record in run.select(own.probe)
        if own.wanted(record.point) and (cost := cost_ns(record)) is not None
    ]
    if not found:
        return None
    logs, deviations = zip(*found, strict=True)
    return math.exp(float(np.dot(weights(deviations), logs)))


def ratios(here: Run, there: Run, figures: Sequence[Figures], block: float = 0.0) -> list[Ratio] | Missing:
    """The ratios that represent an operation, or what is missing where the runs have none of them in common.

    Args:
        here: This machine's run.
        there: The other one's.
        figures: Of `TABLE`.
        block: Mean bytes of the program's calls.
    """
    found: list[Ratio] = []
    missing: Missing | None = None
    for own in figures:
        mine, theirs = _points(here, own), _points(there, own)
        common = [point for point in mine if point in theirs and mine[point].method == theirs[point].method]
        if not common:
            missing = missing or Missing(own.probe, there=bool(mine))
        found += [_ratio(mine[point], theirs[point]) for point in _chosen(common, own.size, block)]
    return missing if missing is not None and not found else found


def _points(run: Run, figures: Figures) -> dict[Point, Record]:
    return {
        record.point: record
        for record in run.select(figures.probe)
        if figures.wanted(record.point) and cost_ns(record) is not None
    }


def _chosen(points: Sequence[Point], size: str, block: float) -> list[Point]:
    if size == "largest":
        return [max(points, key=lambda point: point.working_set_bytes or 0)] if points else []
    if size != "block" or not block or not points:
        return list(points)

    def away(point: Point) -> float:
        return abs(math.log((point.block_bytes or block) / block))

    nearest = min(map(away, points))
    return [point for point in points if away(point) <= max(nearest, math.log(_NEAR)) + 1e-9]


def _ratio(mine: Record, theirs: Record) -> Ratio:
    mine_ns, theirs_ns = cost_ns(mine) or math.nan, cost_ns(theirs) or math.nan
    both = math.hypot(deviation(mine), deviation(theirs))
    return Ratio(mine.probe, mine.point.label(), theirs_ns / mine_ns, both)


def cost_ns(record: Record) -> float | None:
    """What one operation takes, ns: of a disk all time by all operations, else the median.

    Of what no disk does, the slow operations are mostly kept by other programs, which a ledger has apart.
    None where the record has no figure, or one that a failed proof discards.
    """
    value = record.value
    if value is None or not math.isfinite(value) or value <= 0:
        return None
    if not _is_disk(record):
        return 1e9 / value if record.unit == "bytes_per_s" else value
    each = each_s(record)
    return value if each is None else 1e9 * each


def _is_disk(record: Record) -> bool:
    """It waits for a disk."""
    is_cached = record.point.path == "buffered-warm" or record.point.operation in {"stat", "read-warm"}
    return record.probe.startswith("storage.") and not is_cached


def deviation(record: Record) -> float:
    """Standard deviation of the logarithm of a record's figure."""
    is_disk, between = _is_disk(record), record.finding("bytes_per_s_between_blocks")
    own = between if is_disk and isinstance(between, list) else record.interval
    ends = [float(end) for end in own or () if isinstance(end, int | float) and end > 0]
    # Ends that are one: of a single block.
    if len(ends) < 2 or min(ends) == max(ends):  # noqa: PLR2004 - of a range
        # A core's own speed does not change from round to round as what others use does.
        return _OF_A_CORE if record.probe == MIX[0].probe else ONCE
    own_deviation = math.log(max(ends) / min(ends)) / (2 * _TO_EITHER_SIDE)
    # Of the few blocks of a disk two may agree by chance.
    least = ONCE / math.sqrt(max(len(record.rounds), 1)) if is_disk else _LEAST
    return max(own_deviation, least)
