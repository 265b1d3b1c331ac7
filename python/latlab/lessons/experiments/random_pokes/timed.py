"""What is timed: pokes of one size in one place, the steps of clocks, integers in order, and batches of pokes."""

from __future__ import annotations

import bisect
import functools
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from latlab.lessons.bench import Bench, Cannot, Times, counting
from latlab.lessons.memory import free_below
from latlab.lessons.programs import pokes
from latlab.units import format_bytes, format_count, format_seconds

SIZES: Final = {
    "small": (0, 10**3, 10**6),
    "default": (0, 10**3, 10**6, 10**9),
    "original": (0, 10**3, 10**6, 10**9, 10**10),
}
POKES: Final = {"small": 5_000, "default": 100_000, "original": 100_000}
NAMES: Final = {0: "Zero", 10**3: "1KB", 10**6: "1MB", 10**9: "1GB", 10**10: "10GB"}
#: Blocks of this size make a file of at least as much; smaller ones are written byte by byte, as the notebook does.
BLOCK: Final = 10**6
#: Writing the 10 GB may take so long, reckoned from the rate of the 1 GB.
LONGEST_S: Final = 300.0
#: Integers that are written; the notebook's largest has a thousand million of them, 8 GB.
COUNTS: Final[dict[str, tuple[int, ...]]] = {
    "small": (10**3, 10**6),
    "default": (10**3, 10**6, 125 * 10**6),
    "original": (10**3, 10**6, 125 * 10**6, 10**9),
}
SLOW_S: Final = 10e-6


@dataclass(frozen=True)
class Poked:
    """Pokes of one size in one place: seconds each, smallest first; context switches meanwhile."""

    seconds: tuple[float, ...]
    switches: int | None

    @functools.cached_property
    def mean(self) -> float:
        """Of all."""
        return statistics.fmean(self.seconds)

    @functools.cached_property
    def std(self) -> float:
        """Of all, as NumPy's std."""
        return statistics.pstdev(self.seconds)

    @property
    def median(self) -> float:
        """The middle one."""
        return self.seconds[len(self.seconds) // 2]

    @property
    def slow(self) -> int:
        """How many took ten microseconds or more."""
        return self.slower(SLOW_S)

    def slower(self, least: float) -> int:
        """How many took so many seconds or more."""
        return len(self.seconds) - bisect.bisect_left(self.seconds, least)

    @property
    def zeros(self) -> float:
        """Share that took no time."""
        return sum(value == 0 for value in self.seconds) / len(self.seconds)

    @property
    def far(self) -> float:
        """Where the mean and four deviations are."""
        return self.mean + 4 * self.std

    @property
    def beyond(self) -> float:
        """Share beyond that."""
        return sum(value > self.far for value in self.seconds) / len(self.seconds)

    @property
    def normal(self) -> statistics.NormalDist:
        """Of the same mean and deviation."""
        return statistics.NormalDist(self.mean, max(self.std, 1e-12))


def pokes_in(place: str, size: int) -> str:
    """What is measured, in words."""
    return f"pokes in {'a file' if place == 'file' else place} of {NAMES[size]}"


def poked_file(
    bench: Bench, size: int, created: Mapping[int, tuple[float, float]]
) -> tuple[tuple[float, float], Poked]:
    """Creates the file, every byte of it written, and pokes it.

    Raises:
        Cannot: no room, or it would take too long at the rate of the file before.
        OSError: it cannot be written.
    """
    bench.room(size)
    if size > 10**9 and 10**9 in created:
        seconds_to_write = size / 10**9 * created[10**9][1]
        if seconds_to_write > LONGEST_S:
            raise Cannot(
                f"writing it would take {format_seconds(seconds_to_write)} at the rate of the 1 GB "
                f"file, more than {format_seconds(LONGEST_S)}"
            )
        bench.tell(
            f"writing {format_bytes(size, decimal=True)} into {bench.folder.parent}, about {format_seconds(seconds_to_write)}"
        )
    path = bench.folder / f"BlockData{size}"
    block = BLOCK if size >= BLOCK else 1
    try:
        made = pokes.create_file(path, size, block)
        return made, _poked(lambda: pokes.poke_file(path, size, POKES[bench.size]))
    finally:
        path.unlink(missing_ok=True)


def poked_memory(bench: Bench, size: int) -> Poked:
    """Pokes a bytearray.

    Raises:
        Cannot: it does not fit.
    """
    if free := free_below(1.25 * size):
        raise Cannot(f"{format_bytes(size, decimal=True)} do not fit: {free} of memory are free")
    return _poked(lambda: pokes.poke_memory(size, POKES[bench.size]))


def _poked(poke: Callable[[], list[float]]) -> Poked:
    seconds, switches = counting(poke, "ru_nvcsw", "ru_nivcsw")
    return Poked(tuple(sorted(seconds)), switches)


def clock_steps(bench: Bench) -> dict[str, list[float]]:
    """Smallest steps of the notebook's clock and of Python's finest."""
    many = 200 if bench.size == "small" else 2000
    return {"time": pokes.steps_of(time.time, many), "perf_counter": pokes.steps_of(time.perf_counter, many)}


def sequential(bench: Bench) -> dict[int, Times]:
    """Seconds to write so many integers."""
    found = {}
    for elements in COUNTS[bench.size]:
        if free := free_below(10 * elements):
            bench.lacks(
                f"{format_count(elements)} integers in memory",
                f"they take {format_bytes(8 * elements)}, and {free} are free",
            )
            continue
        rounds = 3 if elements > 10**6 else 7
        found[elements] = Times(tuple(pokes.repeated(elements) for _ in range(rounds)))
    return found


def batched(bench: Bench) -> dict[int, list[float]]:
    """Means of batches by size."""
    small = bench.size == "small"
    found = {}
    for size in (0, *(1 << power for power in ((14, 20) if small else (14, 17, 20, 23, 26, 28)))):
        if free := free_below(1.25 * size):
            bench.lacks(f"batches of pokes in {format_bytes(size)}", f"{free} of memory are free")
            continue
        found[size] = pokes.poke_batches(size, 30 if small else 100, 1000)
    return found
