"""The course notebook: random pokes, their distribution, and what sequential access costs."""

from __future__ import annotations

import bisect
import contextlib
import functools
import itertools
import math
import platform
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from latlab.lessons.bench import Bench, Times, times_of
from latlab.lessons.experiments.random_pokes.timed import (
    BLOCK,
    NAMES,
    SIZES,
    SLOW_S,
    Poked,
    batched,
    clock_steps,
    poked_file,
    poked_memory,
    pokes_in,
    sequential,
)
from latlab.lessons.figures import Cell, Column, Published, Row, Series, Table
from latlab.lessons.machine import cache_sizes, cpu_facts, machine
from latlab.lessons.model import Guess, Original, Reported, Size
from latlab.lessons.native import cell_of, findings, records, why_not
from latlab.lessons.template import reported
from latlab.units import format_bytes, format_count, format_ns, format_seconds

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run

QUESTION = "Once every ~10,000 of a zero-time poke there is a 10 us delay. Maybe a context switch?"
ORIGIN = "a course notebook, “measuring memory latency”"
PROGRAMS = ("pokes.py",)

#: Mean and deviation as its table has them: memory, then file.
PUBLISHED: Final = {
    0: ("1.38e-07", "2.07e-07", "1.42e-07", "1.74e-07"),
    10**3: ("1.74e-07", "1.58e-07", "1.17e-05", "4.74e-06"),
    10**6: ("2.59e-07", "1.76e-07", "1.38e-05", "7.03e-06"),
    10**9: ("3.65e-07", "2.13e-07", "1.52e-05", "7.63e-06"),
}
#: Getting a block, and writing it so often.
CREATED: Final = {
    0: ("0.000001 sec", "0.001522 sec"),
    10**3: ("0.000002 sec", "0.007607 sec"),
    10**6: ("0.000071 sec", "0.022258 sec"),
    10**9: ("0.000046 sec", "13.825604 sec"),
}
ZEROS: Final = Published("0.00252", 0.00252)
#: “Average time per byte” by “size (MB)”.
SEQUENTIAL: Final = {1_000: "0.00036", 1_000_000: "6.3e-09", 1_000_000_000: "6.9e-09"}
GUESS = Guess(
    "How many microseconds does a random read and write back of a byte take in a cached file of 1 MB?",
    "original.bytes_1000000.file_mean",
    Published("1.38e-05 s, which is 13.8 us", 1.38e-05),
)
ORIGINAL_TAKES: Final = Original(
    100, 12e9, "files of 1 GB and 10 GB are written and poked, and 8 GB of integers are written in memory"
)

KEPT: Final = 1000
#: Where the histogram is cut in two, as there.
CUT_S: Final = 1e-6
_CLOCKS: Final = "the steps of two clocks"
_SEQUENCE: Final = "writing integers one after the other"
_BATCHES: Final = "pokes in batches, around the caches"
_NATIVE: Final = "the Rust probes (memory.poke, memory.parallelism, storage.poke)"


class Ends(NamedTuple):
    """Bytes of a small and of a large memory, and seconds a poke in each."""

    small: int
    near: float
    large: int
    far: float

    @property
    def moving(self) -> float:
        """The share of a poke in the large one that is moving data."""
        return max(1 - self.near / self.far, 0.0)


@dataclass(frozen=True)
class Found:
    """What was measured.

    Attributes:
        pokes: By place and size.
        created: Seconds to get a block of each file, and to write them all.
        clocks: Steps of each.
        sequence: Seconds to write so many integers.
        batches: Means of batches by size.
        native: The run of Rust probes.
        why: Why something was not measured, by its name.
        asked: The size of the lesson.
    """

    pokes: Mapping[tuple[str, int], Poked]
    created: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    clocks: Mapping[str, list[float]] = field(default_factory=dict)
    sequence: Mapping[int, Times] = field(default_factory=dict)
    batches: Mapping[int, list[float]] = field(default_factory=dict)
    native: Run | None = None
    why: Callable[[str], str] = lambda _: ""
    asked: Size = "default"


def run(bench: Bench) -> Reported:
    """The notebook from its first cell to its last, and its sequel."""
    found: dict[tuple[str, int], Poked] = {}
    created: dict[int, tuple[float, float]] = {}
    for size in SIZES[bench.size]:
        made = bench.attempt(pokes_in("file", size), functools.partial(poked_file, bench, size, created))
        if made is not None:
            created[size], found["file", size] = made
        memory = bench.attempt(pokes_in("memory", size), functools.partial(poked_memory, bench, size))
        if memory is not None:
            found["memory", size] = memory
    clocks = bench.attempt(_CLOCKS, lambda: clock_steps(bench)) or {}
    sequence = bench.attempt(_SEQUENCE, lambda: sequential(bench)) or {}
    batches = bench.attempt(_BATCHES, lambda: batched(bench)) or {}
    small = bench.size == "small"
    native = bench.native(
        _NATIVE,
        "memory.poke" if small else "memory.poke,memory.parallelism,storage.poke",
        budget=1.5 if small else 15.0,
    )
    said = say(Found(found, created, clocks, sequence, batches, native, bench.why, bench.size))
    return replace(said, tables=(*said.tables, system()))


def say(found: Found) -> Reported:
    """What these figures say."""
    native, why, asked = found.native, found.why, found.asked
    found_causes = causes(records(native, "memory.poke", "per_op"))
    large_file = warm(native)
    integers = f"{format_count(10**9)} integers in memory"
    return reported(
        __name__,
        tuple(
            Series(f"{place}_largest_{size}", "s", poked.seconds[-KEPT:])
            for (place, size), poked in found.pokes.items()
        ),
        found=found.pokes,
        memory=[poked for (place, size), poked in found.pokes.items() if place == "memory" and size],
        largest=max((size for place, size in found.pokes if place == "memory"), default=0),
        created=found.created,
        files={size: seconds for size, (_, seconds) in found.created.items() if size >= BLOCK},
        clocks={name: step(steps) for name, steps in found.clocks.items() if steps},
        sequence=found.sequence,
        batches=times_of(found.batches),
        ends={
            "python": ends({size: statistics.median(means) for size, means in found.batches.items() if size}),
            "native": ends(
                {
                    size: record.value / 1e9
                    for record in _batches_of(native)
                    if (size := record.point.working_set_bytes) and record.value
                }
            ),
        },
        disk=disk(native),
        warm=large_file,
        warm_slow=slow_share(large_file),
        warm_causes=causes([large_file] if large_file else []),
        native=list(native_rows(native)),
        native_batches=native_batches(native),
        causes=found_causes,
        switches=sum(number for name, number in found_causes.items() if "switch" in name),
        parallel=parallel(native),
        asked=asked,
        why={
            (place, size): why(pokes_in(place, size)) or not_asked(asked, size)
            for size in NAMES
            for place in ("memory", "file")
        },
        why_integers=why(integers) or why(_SEQUENCE) or "8 GB: only with --original, where they fit",
        why_clocks=why(_CLOCKS),
        why_batches=why(_BATCHES),
        why_refused=why(_NATIVE),
        why_native={
            probe: why_not(native, probe, why(_NATIVE))
            for probe in ("memory.poke", "memory.parallelism", "storage.poke")
        },
        duration=format_seconds,
    )


def not_asked(asked: Size, size: int) -> str:
    """Why a size was not tried."""
    if size in SIZES[asked]:
        return "it was not reached"
    return f"{NAMES[size]}: {'only with --original, where it fits' if size > 10**9 else 'not with --small'}"


# --------------------------------------------------------------------------------------
# what follows from it


def quoted(text: str | None) -> Published | None:
    """A figure of the notebook, which may be followed by its unit."""
    return Published(text, float(text.split()[0])) if text else None


def step(steps: list[float]) -> Cell:
    """How far a clock moves."""
    ordered = sorted(steps)
    why = "from one reading to the next that differs"
    return Cell("s", ordered[len(ordered) // 2], ordered[0], ordered[-1], len(ordered), why=why)


def ends(found: Mapping[int, float]) -> Ends | None:
    """The smallest size that is more than a byte, and the largest."""
    if len(found) < 2:
        return None
    return Ends(min(found), found[min(found)], max(found), found[max(found)])


def _batches_of(native: Run | None) -> list[Record]:
    return records(native, "memory.poke", "batch_mean", operation="read-write")


def native_batches(native: Run | None) -> list[tuple[int, Cell]]:
    """Bytes of memory, and what a poke in a batch takes there."""
    return [(record.point.working_set_bytes or 0, cell_of(record)) for record in _batches_of(native)]


def disk(native: Run | None) -> tuple[Cell, Cell] | None:
    """The time of a poke past the page cache, and its range."""
    cold = {
        record.point.path or "": record
        for record in records(native, "storage.poke", "per_op")
        if record.point.file_bytes and record.value
    }
    record = next((cold[path] for path in ("buffered-cold", "direct") if path in cold), None)
    if record is None or record.summary is None:
        return None
    span = f"{format_ns(record.summary.min)} – {format_ns(record.summary.max)}"
    return cell_of(record), Cell("text", span, why="fastest and slowest poke of the probe")


def warm(native: Run | None) -> Record | None:
    """Pokes in the largest file that the Rust probe brought in page by page."""
    found = [
        record
        for record in records(native, "storage.poke", "per_op", path="buffered-warm")
        if record.value and (record.point.file_bytes or 0) > 10**6
    ]
    return found[-1] if found else None


def slow_share(record: Record | None) -> float:
    """Of a record's pokes, the share that took ten microseconds or more; NaN where not all such were kept."""
    slow_ns = SLOW_S * 1e9
    if record is None or record.tail_dropped or (record.tail_threshold or math.inf) > slow_ns:
        return math.nan
    return sum(sample.value >= slow_ns for sample in record.tail) / record.samples


def parallel(native: Run | None) -> tuple[float | None, float | None]:
    """Ns a miss, one at a time and with most under way."""
    for record in records(native, "memory.parallelism", "derived"):
        for found in findings(record).sections("sets"):
            single, best = found.number("single_ns"), found.number("best_ns")
            if single is not None and best is not None:
                return single, best
    return None, None


def causes(pokes: list[Record]) -> dict[str, int]:
    """What a probe found behind slow pokes: name and how many; nothing where there are few."""
    if not pokes:
        return {}
    from latlab.run.causes import slow_causes  # noqa: PLC0415 - needs a run

    found = slow_causes(pokes, SLOW_S * 1e9)
    return {} if found is None else dict(found.counts)


def native_rows(native: Run | None) -> Iterator[tuple[str, str, int, Cell, Cell, Cell]]:
    """Each poke of the Rust probe alone: place, path, bytes; median, mean, deviation."""
    for probe, place in (("memory.poke", "memory"), ("storage.poke", "file")):
        for record in sorted(records(native, probe, "per_op", operation="read-write"), key=_by_path):
            size = record.point.working_set_bytes if place == "memory" else record.point.file_bytes
            if record.value is None or record.summary is None:
                continue
            mean, std = (
                Cell("s", (value or 0.0) / 1e9, why=f"of {record.samples:,} pokes")
                for value in (record.summary.mean, record.summary.std)
            )
            yield place, record.point.path or "", size or 0, cell_of(record), mean, std


def _by_path(record: Record) -> tuple[str, int]:
    return record.point.path or "", record.point.working_set_bytes or record.point.file_bytes or 0


def system() -> Table:
    """The notebook's last cell, from one program for every system."""
    facts = machine() | {"python_build": platform.python_build()[0]}
    with contextlib.suppress(OSError):
        facts["distribution"] = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    of_cpu = {"cpu family": "family", "model": "model", "stepping": "stepping", "cpu MHz": "MHz"}
    told_of_cpu = cpu_facts()
    facts |= {title: told_of_cpu[name] for name, title in of_cpu.items() if name in told_of_cpu}
    facts |= {name: format_bytes(size) for name, size in cache_sizes().items()}
    nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))
    if nodes:
        facts["NUMA nodes"] = str(nodes)
    rows = tuple(
        Row(name, name, {"here": Cell("text", text, why="as the system reports it")})
        for name, text in facts.items()
        if text
    )
    return Table(
        "system",
        "System description",
        "what",
        (Column("here", "here"),),
        rows,
        note="latlab doctor shows more.",
    )


def ccdf(values: tuple[float, ...], most: int = 60, *, log: bool = True) -> list[tuple[float, float]]:
    """`(delay, share that takes longer)` of sorted values, at shares that lie evenly on such an axis."""
    count = len(values)
    points: dict[float, float] = {}
    for number in range(most + 1):
        left = 1 - number / most
        beyond = max(round(count**left if log else count * left), 1)
        value = values[count - beyond]
        share = (count - bisect.bisect_right(values, value)) / count
        if value > 0 and share > 0:
            points[value] = share
    return sorted(points.items())


def curves(poked: Poked, below: float = math.inf) -> list[tuple[str, float, float]]:
    """1-CDF up to a delay, for linear axes where there is one: `(curve, delay, share that takes longer)`.

    `measured`, and of the `normal` while that is one poke of all.
    """
    measured = [(x, share) for x, share in ccdf(poked.seconds, log=below == math.inf) if x <= below]
    top = min(below, poked.mean + 5 * poked.std)
    low = measured[0][0] if measured else top / 100
    places = [low * (top / low) ** (number / 40) if top > low else top for number in range(41)]
    shares = [(x, 1 - poked.normal.cdf(x)) for x in places]
    normal = [(x, share) for x, share in shares if share >= 1 / len(poked.seconds)]
    return [("measured", *point) for point in measured] + [("normal", *point) for point in normal]


def histogram(poked: Poked, low: float, high: float, bins: int) -> Iterator[tuple[str, int, int]]:
    """Each bin: from where to where, pokes in it, and what a normal distribution predicts, in whole pokes."""
    edges = [low + (high - low) * number / bins for number in range(bins + 1)]
    for start, end in itertools.pairwise(edges):
        label = f"{format_ns(start * 1e9)} – {format_ns(end * 1e9)}"
        share = poked.normal.cdf(end) - poked.normal.cdf(start)
        yield label, poked.slower(start) - poked.slower(end), round(len(poked.seconds) * share)
