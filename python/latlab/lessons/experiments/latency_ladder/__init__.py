"""Every level that data passes through, on one axis."""

from __future__ import annotations

import functools
import math
import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons.bench import NOT_TIMED, Arms, Bench, Times, nothing
from latlab.lessons.cache import brought_in, why_not_cold
from latlab.lessons.figures import Cell, Published
from latlab.lessons.machine import cache_sizes
from latlab.lessons.memory import free_below
from latlab.lessons.model import Guess, Original, Reported
from latlab.lessons.native import disk_rate, why_not
from latlab.lessons.programs import ladder
from latlab.lessons.template import reported
from latlab.run.distance import DISTANCE_M as DISTANCE_M  # for the template
from latlab.run.distance import FLOOR_NS
from latlab.units import format_bytes

if TYPE_CHECKING:
    from latlab.run.run import Run
    from latlab.run.rung import Rung

QUESTION = "How many orders of magnitude slower are disk accesses than RAM?"
ORIGIN = "a lesson, “Understanding Latency”: Latency Overview"
PROGRAMS = ("ladder.py",)
LEVELS: Final = {
    "L1": "L1 cache",
    "L2": "L2 cache",
    "L3": "L3 cache",
    "RAM": "RAM",
    "SSD": "SSD, 4 KiB at random",
    "HDD": "HDD, 4 KiB at random",
    "packet": "packet London – California – London",
}
#: The source's chart has bars without figures; these ends of its range are in its description.
LATENCIES: Final = {"L1": Published("1 nanosecond", 1e-9), "packet": Published("140 milliseconds", 0.14)}
RATES: Final = {
    "L1": Published("1 TB/s", 1e12),
    "L2": Published("1 TB/s", 1e12),
    "RAM": Published("100 GB/s", 1e11),
    "SSD": Published("up to 32 GB/s", 32e9),
    "HDD": Published("up to 150 MB/s", 150e6),
}
GUESS = Guess(
    "How many times as long as a RAM access does an access to this disk take?",
    "orders.disk_over_ram_ratio.native",
    Published("another order of magnitude", 10.0),
)
ORIGINAL_TAKES: Final = Original(45, 1.5e9, "a file of 1 GiB, arrays of up to 256 MiB, and 24 s of probes")
#: Light in fibre, London to San Francisco and back.
FLOOR_S: Final = FLOOR_NS / 1e9
#: What is drawn of each level: the first of these that there is.
ARMS: Final = {
    "native": "measured here",
    "python": "measured here in Python",
    "reference": "reference, not measured",
}
_DISKS: Final = ("SSD", "HDD")
_UNSENT: Final = "this lesson sends no packet that far"
#: Slower random reads are those of a head that moves; none that moves is faster.
SPINS_S: Final = 1e-3
#: RAM is memory of which the last cache holds at most half.
BEYOND: Final = 2
#: Powers of two of elements of four bytes; the largest takes some seconds to fill.
_LARGEST: Final = 26
_POWERS: Final = {
    "small": (12, 16, 19),
    "default": (12, 16, 18, 20, 22, 24),
    "original": (12, 16, 18, 20, 22, 24, 26),
}
_FILE, _COLD = "reading a file", "reading a file past the page cache"
_FILE_BYTES: Final = {"small": 1 << 24, "default": 1 << 28, "original": 1 << 30}


def run(bench: Bench) -> Reported:
    """As Python sees it; then the probes' ladder; references where there is no such level."""
    chased = bench.arms("chasing through memory of each size", lambda: chases(bench))
    what = "copying within memory"
    copied = bench.attempt(what, lambda: copies(bench))
    disk = bench.attempt(_FILE, lambda: file_reads(bench))
    why_disk = bench.why(_FILE) or bench.why(_COLD) or "the cache did not drop the file"
    small = bench.size == "small"
    probes = "memory.load.dependent,memory.bandwidth,storage.read.random,storage.read.sequential"
    ladder_of = "the Rust probes (memory.load.dependent, memory.bandwidth, storage.read.*)"
    native = bench.native(
        ladder_of,
        "memory.load.dependent,storage.read.random" if small else probes,
        budget=6.0 if small else 24.0,
    )
    return say(
        chased,
        Arms(copied, bench.why(what) or "the copies were not measured"),
        Arms(disk, why_disk),
        native,
        bench.why(ladder_of),
        called_spinning=rotational(bench.directory),
        largest_cache=last_cache(),
    )


def say(
    chased: Arms[int] = NOT_TIMED,
    copied: Arms[str] = NOT_TIMED,
    disk: Arms[str] = NOT_TIMED,
    native: Run | None = None,
    why: str = "",
    *,
    called_spinning: bool | None = None,
    largest_cache: int = 0,
) -> Reported:
    """What these figures say.

    Args:
        chased: Seconds of a step by bytes of the array.
        copied: Bytes a second by the level that was copied within.
        disk: See `file_reads`.
        native: The run of Rust probes.
        why: Why there is none.
        called_spinning: Whether the kernel calls the disk a spinning one.
        largest_cache: Bytes of the last cache before RAM; 0 where the system does not say.
    """
    from latlab.run.textbook import USUAL  # noqa: PLC0415 - figures only, but not needed at once

    rungs = {} if native is None else {rung.key: rung for rung in native.ladder()}
    kind = disk_kind(rungs, disk)
    here = Ladder(kind, rungs, native, why)
    levels = {
        key: {
            "native": here.latency(key),
            "python": python_latency(key, kind, chased, disk, largest_cache),
            "reference": reference(key, kind),
        }
        for key in LEVELS
    }
    return reported(
        __name__,
        levels=levels,
        rates={
            key: {"native": here.rate(key), "python": python_rate(key, kind, copied, disk)}
            for key in LEVELS
            if key != "packet"
        },
        cached=disk_rate(native, "read", "buffered-warm", why),
        ratios={arm: over_ram(levels, arm) for arm in ("native", "python")},
        chased=dict(sorted(chased.items())),
        why_chased=chased.why,
        disk=disk,
        kind=kind,
        called_spinning=called_spinning,
        moved=[rung for rung in rungs.values() if rung.is_range and rung.group == "levels"],
        usual=USUAL,
        why=why,
        magnitude=lambda ratio: f"{math.log10(ratio):.1f}",
    )


def chases(bench: Bench) -> dict[int, Times]:
    """Seconds of a step by bytes of the array."""
    steps = 100_000 if bench.size == "small" else 300_000
    arms, powers = {}, _POWERS[bench.size]
    if bench.size != "small" and last_cache() * BEYOND > 4 << powers[-1]:
        powers = tuple(sorted({*powers, _LARGEST}))
    for power in powers:
        size = 4 << power
        if free := free_below(2 * size):
            bench.lacks(f"an array of {format_bytes(size)}", f"{free} of memory are free")
        else:
            arms[size] = functools.partial(ladder.chase, ladder.cycle(1 << power), steps)
    return bench.times(arms, 5)


def copies(bench: Bench) -> dict[str, Times]:
    """Bytes a second (not seconds) of copies in a cache and in memory; without the latter where it does not fit."""
    large = max((1 << 25) if bench.size == "small" else (1 << 27), BEYOND * last_cache())
    arms = {
        "L1": lambda: ladder.copy_rate(1 << 14, 2000),
        "L2": lambda: ladder.copy_rate(1 << 18, 500),
        "L3": lambda: ladder.copy_rate(1 << 22, 30),
    }
    if free := free_below(3 * large):
        why = f"two blocks of {format_bytes(large)} do not fit: {free} of memory are free"
        return bench.times(arms, 5) | {"RAM": Times(why=why)}
    return bench.times(arms | {"RAM": lambda: ladder.copy_rate(large, 1)}, 5)


def file_reads(bench: Bench) -> dict[str, Times]:
    """Seconds of a read of 4 KiB and bytes a second, with all of the file in the page cache and nothing of it."""
    size = _FILE_BYTES[bench.size]
    bench.room(size)
    path = bench.folder / "file.bin"
    ladder.write_file(path, size)
    found = {}
    if brought_in(path):
        found["warm"] = Times(tuple(ladder.poke_file(path, 1000, forget=False)))
        found["warm_rate"] = Times(tuple(ladder.read_rate(path, forget=False) for _ in range(3)))
    if why := why_not_cold(path):
        bench.lacks(_COLD, why)
        return found
    found["cold"] = Times(tuple(ladder.poke_file(path, 300, forget=True)))
    rates = tuple(ladder.read_rate(path, forget=True) for _ in range(3) if not why_not_cold(path))
    return found | ({"cold_rate": Times(rates)} if rates else {})


def last_cache() -> int:
    """Bytes of the last cache before RAM; 0 where the system does not say."""
    return max(cache_sizes().values(), default=0)


def rotational(directory: Path) -> bool | None:
    """Whether the kernel calls the disk a spinning one; None where it does not say. A virtual disk's flag says nothing."""
    try:
        device = directory.stat().st_dev
        link = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
        for place in (link, link.parent):
            flag = place / "queue" / "rotational"
            if flag.exists():
                return flag.read_text(encoding="ascii").strip() == "1"
    except (OSError, AttributeError):
        return None
    return None


def disk_kind(rungs: Mapping[str, Rung], disk: Mapping[str, Times]) -> str:
    """`SSD` or `HDD` by what a random read takes: half a turn at 15,000 a minute is 2 ms, and no read waits less.

    Empty where no read of the disk was timed.
    """
    rung = rungs.get("disk-read")
    found = rung.latency_p50_ns / 1e9 if rung is not None and rung.latency_p50_ns else None
    if found is None and "cold" in disk:
        found = disk["cold"].median
    if found is None:
        return ""
    return "HDD" if found > SPINS_S else "SSD"


# ----------------------------------------------------------------------------------------------------------
# what follows from it


@dataclass(frozen=True)
class Ladder:
    """The Rust probes.

    Attributes:
        kind: Of the disk: see `disk_kind`.
        rungs: By key; none where there is no such arm.
        native: Its run.
        why: Why there is none.
    """

    kind: str
    rungs: Mapping[str, Rung]
    native: Run | None
    why: str

    def latency(self, key: str) -> Cell:
        """One access to a level."""
        published = LATENCIES.get(key)
        if key == "packet":
            return nothing("s", _UNSENT, published)
        if key in _DISKS and key != self.kind:
            return nothing("s", _not_this(key, self.kind) or self._absent("storage.read.random"))
        rung = self.rungs.get("disk-read" if key == self.kind else key)
        if rung is not None and rung.latency_p50_ns:
            return rung_cell(rung, published)
        note = rung.note if rung is not None else ""
        probe = "storage.read.random" if key == self.kind else "memory.load.dependent"
        return nothing("s", note or self._absent(probe), published)

    def rate(self, key: str) -> Cell:
        """What one thread reads from a level."""
        published, rung = RATES.get(key), self.rungs.get(key)
        if key in _DISKS and key != self.kind:
            absent = _not_this(key, self.kind) or self._absent("storage.read.sequential")
            return nothing("bytes_per_s", absent, published)
        if key == self.kind:
            return disk_rate(self.native, "read", "direct", self.why, published=published)
        if rung is not None and rung.bandwidth:
            point = f"one thread, {rung.bandwidth_point}"
            return Cell("bytes_per_s", rung.bandwidth, published=published, why=point)
        return nothing("bytes_per_s", self._no_reading(key), published)

    def _absent(self, probe: str) -> str:
        return why_not(self.native, probe, self.why)

    def _no_reading(self, key: str) -> str:
        rung = self.rungs.get(key)
        if rung is None or self.native is None:
            return self._absent("memory.bandwidth")
        if rung.note and not rung.measured:
            return rung.note
        sizes = [
            record.point.working_set_bytes or 0
            for record in self.native.select("memory.bandwidth", operation="read", threads=1)
            if record.value is not None
        ]
        if key == "RAM" and sizes:
            return f"the largest size read is {format_bytes(max(sizes))}, part of which a cache may have answered"
        return self._absent("memory.bandwidth")


def _not_this(key: str, kind: str) -> str:
    return f"this disk is not an {key}" if kind else ""


def rung_cell(rung: Rung, published: Published | None) -> Cell:
    """A rung as a cell in seconds."""
    value = (rung.latency_p50_ns or 0.0) / 1e9
    ends = (end / 1e9 for end in rung.interval or ())
    # A spread over sizes is of two at least; how many samples each had is not kept.
    repeats = rung.samples or (1 if rung.interval is None else 2)
    return Cell.within("s", value, ends, repeats, published, rung.interval_kind)


def reference(key: str, kind: str) -> Cell | None:
    """What is known of a level that is not here."""
    from latlab.run.textbook import USUAL  # noqa: PLC0415 - see above

    if key == "packet":
        return Cell("s", 0.14, why="the published figure")
    if key not in _DISKS or key == kind:
        return None
    value = USUAL.get("disk_seek" if key == "HDD" else "ssd_random_4k") or 0.0
    return Cell("s", value / 1e9, why=f"{USUAL.source}, {USUAL.year}")


def python_latency(key: str, kind: str, chased: Arms[int], disk: Arms[str], largest_cache: int = 0) -> Cell:
    """One access to a level, as Python sees it."""
    if key == "packet":
        return nothing("s", _UNSENT)
    if key in _DISKS:
        return nothing("s", _not_this(key, kind)) if kind and key != kind else _quartiles(disk["cold"])
    if key != "RAM" or len(chased) < 2:
        return nothing("s", "Python's own steps are longer and hide it")
    near, far = min(chased), max(chased)
    if far < BEYOND * largest_cache:
        return nothing(
            "s",
            f"the last-level cache holds {format_bytes(largest_cache)}, the largest array "
            f"{format_bytes(far)}",
        )
    value = chased[far].median - chased[near].median
    if value <= 0:
        return nothing(
            "s",
            f"a step through {format_bytes(far)} took no longer than through {format_bytes(near)}: "
            "any difference is within run-to-run variation",
        )
    differences = [a - b for a, b in zip(chased[far].values, chased[near].values, strict=True)]
    why = f"array of {format_bytes(far)} less {format_bytes(near)}"
    return Cell.within("s", value, differences, len(differences), why=why)


def _quartiles(times: Times) -> Cell:
    if not times:
        return times.cell()
    low, middle, high = statistics.quantiles(times.values, n=4)
    return Cell("s", middle, low, high, len(times.values), why="median; the brackets hold the middle half")


def python_rate(key: str, kind: str, copied: Arms[str], disk: Arms[str]) -> Cell:
    """Bytes a second that Python copies within a level, or reads from the disk."""
    if key not in _DISKS:
        return copied[key].cell("bytes_per_s")
    if kind and key != kind:
        return nothing("bytes_per_s", _not_this(key, kind))
    return disk["cold_rate"].cell("bytes_per_s")


def over_ram(levels: Mapping[str, Mapping[str, Cell | None]], arm: str) -> float | None:
    """How many times as long as an access to RAM one to this disk takes."""
    found = {key: cell.number for key in ("RAM", *_DISKS) if (cell := levels[key][arm]) is not None}
    ram, disk = found["RAM"], found["SSD"] or found["HDD"]
    return disk / ram if ram and ram > 0 and disk else None
