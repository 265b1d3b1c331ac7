"""The course notebook: random pokes, their distribution, and what sequential access costs."""

from __future__ import annotations

import bisect
import functools
import math
import platform
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons import words
from latlab.lessons.bench import Bench, Cannot, Times, available_memory, nothing
from latlab.lessons.machine import machine
from latlab.lessons.model import (
    Answer,
    Cell,
    Column,
    Guess,
    Mark,
    Misled,
    Original,
    Picture,
    Published,
    Row,
    Series,
    Table,
    Told,
    written,
)
from latlab.lessons.native import cell_of, why_not
from latlab.lessons.programs import pokes
from latlab.units import format_bytes, format_count, format_ns, format_percent, format_seconds

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
    "How many microseconds does a random read and write back of a byte take in a file of 1 MB that is in the cache?",
    "original.bytes_1000000.file_mean",
    Published("1.38e-05 s, which is 13.8 us", 1.38e-05),
)
ORIGINAL_TAKES: Final = Original(
    100, 12e9, "files of 1 GB and 10 GB are written and poked, and 8 GB of integers are written in memory"
)

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
KEPT: Final = 1000
SLOW_S: Final = 10e-6
#: Where the histogram is cut in two, as there.
CUT_S: Final = 1e-6
_PLACES: Final = ("memory", "file")


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
        return sum(value >= SLOW_S for value in self.seconds)


Found = dict[tuple[str, int], Poked]


def run(bench: Bench) -> Told:
    """The notebook from its first cell to its last, and its sequel."""
    found: Found = {}
    created: dict[int, tuple[float, float]] = {}
    for size in SIZES[bench.size]:
        name = NAMES[size]
        made = bench.attempt(
            f"pokes in a file of {name}", functools.partial(poked_file, bench, size, created)
        )
        if made is not None:
            created[size], found["file", size] = made
        memory = bench.attempt(f"pokes in memory of {name}", functools.partial(poked_memory, bench, size))
        if memory is not None:
            found["memory", size] = memory
    clocks = bench.attempt("the steps of two clocks", lambda: clock_steps(bench)) or {}
    sequence = bench.attempt("writing integers one after the other", lambda: sequential(bench)) or {}
    batches = bench.attempt("pokes in batches, around the caches", lambda: batched(bench)) or {}
    what = "the native arm (probes memory.poke, memory.parallelism, storage.poke)"
    native = bench.native(
        what,
        "memory.poke" if bench.size == "small" else "memory.poke,memory.parallelism,storage.poke",
        profile="quick",
        budget=1.5 if bench.size == "small" else 15.0,
    )
    refused = bench.why(what)
    tables = [
        original(bench, found),
        creation(bench, created),
        sequential_table(bench, sequence),
        summary(found, sequence, created, native, refused),
        bottleneck(batches, native, refused, bench.why("pokes in batches, around the caches")),
        ten_microseconds(found, native),
        distribution(found),
        clock_table(clocks, bench.why("the steps of two clocks")),
        batch_table(batches, native, refused, bench.why("pokes in batches, around the caches")),
        native_table(native, refused),
        system(),
    ]
    return Told(
        answer=answer(found, native),
        tables=tuple(tables),
        pictures=tuple(pictures(found)),
        reasons=tuple(reasons(found, native)),
        misled=tuple(misled(found, clocks, sequence)),
        answers=tuple(answers(found, created, batches, native)),
        further=(
            "latlab noise: every gap of a CPU with its cause, for ten seconds",
            "latlab measure --only memory.poke,storage.poke --profile thorough: 10 GB too, and what the tails look like",
            "latlab lesson random-pokes --pdf pokes.pdf: every figure in one file",
            "latlab lesson latency-ladder: the sizes around the caches as levels",
        ),
        charts=("poke_histogram", "pokes", "long_tail"),
        series=tuple(
            Series(f"{place}_largest_{size}", "s", poked.seconds[-KEPT:])
            for (place, size), poked in found.items()
        ),
    )


def poked_file(
    bench: Bench, size: int, created: dict[int, tuple[float, float]]
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
                f"writing it would take {format_seconds(seconds_to_write)} at the rate of the 1 GB, more than {format_seconds(LONGEST_S)}"
            )
        bench.tell(
            f"writing {format_bytes(size, decimal=True)} into {bench.folder.parent}, about {format_seconds(seconds_to_write)}"
        )
    path = bench.folder / f"BlockData{size}"
    block = BLOCK if size >= BLOCK else 1
    try:
        made = pokes.create_file(path, size, block)
        before = _switches()
        seconds = pokes.poke_file(path, size, POKES[bench.size])
        after = _switches()
    finally:
        path.unlink(missing_ok=True)
    return made, Poked(tuple(sorted(seconds)), None if before is None or after is None else after - before)


def poked_memory(bench: Bench, size: int) -> Poked:
    """Pokes a bytearray.

    Raises:
        Cannot: it does not fit.
    """
    available = available_memory()
    if available is not None and available < 1.25 * size:
        raise Cannot(
            f"{format_bytes(size, decimal=True)} do not fit: {format_bytes(available)} of memory are free"
        )
    before = _switches()
    seconds = pokes.poke_memory(size, POKES[bench.size])
    after = _switches()
    return Poked(tuple(sorted(seconds)), None if before is None or after is None else after - before)


def _switches() -> int | None:
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return None
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


def clock_steps(bench: Bench) -> dict[str, list[float]]:
    """Smallest steps of the notebook's clock and of Python's finest."""
    many = 200 if bench.size == "small" else 2000
    return {"time": pokes.steps_of(time.time, many), "perf_counter": pokes.steps_of(time.perf_counter, many)}


def sequential(bench: Bench) -> dict[int, Times]:
    """Seconds to write so many integers; the notebook's largest has a thousand million of them, 8 GB."""
    counts: tuple[int, ...] = (1_000, 1_000_000) if bench.size == "small" else (1_000, 1_000_000, 125_000_000)
    if bench.size == "original":
        counts = (1_000, 1_000_000, 125_000_000, 1_000_000_000)
    found = {}
    for elements in counts:
        available = available_memory()
        if available is not None and available < 10 * elements:
            bench.lacks(
                f"{format_count(elements)} integers in memory",
                f"they take {format_bytes(8 * elements)}, and {format_bytes(available)} are free",
            )
            continue
        rounds = 3 if elements > 10**6 else 7
        found[elements] = Times(tuple(pokes.repeated(elements) for _ in range(rounds)))
    return found


def batched(bench: Bench) -> dict[int, list[float]]:
    """Means of batches by size."""
    sizes = (
        (0, 1 << 14, 1 << 20)
        if bench.size == "small"
        else (0, 1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 26, 1 << 28)
    )
    many = 30 if bench.size == "small" else 100
    found = {}
    for size in sizes:
        available = available_memory()
        if available is not None and available < 1.25 * size:
            bench.lacks(
                f"batches of pokes in {format_bytes(size)}", f"{format_bytes(available)} of memory are free"
            )
            continue
        found[size] = pokes.poke_batches(size, many, 1000)
    return found


# ----------------------------------------------------------------------------------------------------------
# what is told


def original(bench: Bench, found: Found) -> Table:
    """Mean and deviation, the notebook's table."""
    heads = (
        Column("memory_mean", "mem mean"),
        Column("memory_std", "mem std"),
        Column("file_mean", "disk mean"),
        Column("file_std", "disk std"),
    )
    rows = []
    for size in NAMES:
        quoted = PUBLISHED.get(size)
        cells = {}
        for number, head in enumerate(heads):
            place = head.name.partition("_")[0]
            published = Published(quoted[number], float(quoted[number])) if quoted else None
            poked = found.get((place, size))
            if poked is None:
                cells[head.name] = nothing(
                    "s",
                    bench.why(f"pokes in {'a file' if place == 'file' else 'memory'} of {NAMES[size]}")
                    or _not_asked(bench, size),
                    published,
                )
            else:
                value = poked.mean if head.name.endswith("mean") else poked.std
                cells[head.name] = Cell(
                    "s", value, published=published, why=f"of {len(poked.seconds):,} pokes, each timed alone"
                )
        rows.append(Row(f"bytes_{size}", NAMES[size], cells))
    return Table(
        "original",
        f"Mean and deviation of {POKES[bench.size]:,} random pokes",
        "block size",
        heads,
        tuple(rows),
        original=True,
        note="As the notebook calls it, “disk” is a file in the page cache: no disk is asked. With the clock and Python's own steps in each; the row Zero is those alone. The cold disk is in a table below. Published figures are seconds, as printed there.",
    )


def _not_asked(bench: Bench, size: int) -> str:
    """Why a size was not tried."""
    if size in SIZES[bench.size]:
        return "it was not reached"
    return (
        f"{NAMES[size]}: only with --original, where it fits"
        if size > 10**9
        else f"{NAMES[size]}: not with --small"
    )


def creation(bench: Bench, created: dict[int, tuple[float, float]]) -> Table:
    """What creating the files took."""
    rows = []
    for size in NAMES:
        quoted, made = CREATED.get(size), created.get(size)
        cells = {}
        for number, name in enumerate(("block", "write")):
            published = Published(quoted[number], float(quoted[number].split()[0])) if quoted else None
            cells[name] = (
                nothing(
                    "s",
                    bench.why(f"pokes in a file of {NAMES[size]}") or _not_asked(bench, size),
                    published,
                )
                if made is None
                else Cell("s", made[number], published=published, why="once, not flushed")
            )
        block, many = (BLOCK, size // BLOCK) if size >= BLOCK else (1, size)
        blocks = f"{many:,} {'block' if many == 1 else 'blocks'}"
        each = "1 byte" if block == 1 else f"{block:,} bytes"
        rows.append(Row(f"bytes_{size}", f"{NAMES[size]}: {blocks} of {each}", cells))
    return Table(
        "creation",
        "Creating the files",
        "file",
        (Column("block", "creating a block"), Column("write", "writing all blocks")),
        tuple(rows),
        original=True,
    )


def sequential_table(bench: Bench, sequence: dict[int, Times]) -> Table:
    """Time per element, which the notebook calls per byte, and time per byte."""
    counts = sorted({*sequence, *SEQUENTIAL})
    rows = []
    for elements in counts:
        text = SEQUENTIAL.get(elements)
        published = Published(text, float(text)) if text else None
        times = sequence.get(elements)
        absent = (
            bench.why(f"{format_count(elements)} integers in memory")
            or bench.why("writing integers one after the other")
            or "8 GB: only with --original, where they fit"
            if elements == 10**9
            else "not at this size"
        )
        if times is None:
            cells = {
                "element": nothing("s", absent, published),
                "byte": nothing("s", absent),
                "rate": nothing("bytes_per_s", absent),
            }
        else:
            cells = {
                "element": times.cell(divide=elements, published=published),
                "byte": times.cell(divide=8 * elements),
                "rate": times.rate(8 * elements),
            }
        there = f"; there “{elements / 1e6:.3f} MB”" if text else ""
        rows.append(
            Row(
                f"elements_{elements}",
                f"{format_count(elements)} integers, {format_bytes(8 * elements, decimal=True)}{there}",
                cells,
            )
        )
    return Table(
        "sequential",
        "Consecutive memory writes",
        "written",
        (
            Column("element", "time an integer (there: “per byte”)"),
            Column("byte", "time a byte"),
            Column("rate", "rate"),
        ),
        tuple(rows),
        original=True,
        note="An integer has eight bytes. New memory each time: page faults are in it.",
    )


def summary(
    found: Found,
    sequence: dict[int, Times],
    created: dict[int, tuple[float, float]],
    native: Run | None,
    refused: str,
) -> Table:
    """The notebook's ranges and blanks, tested and filled."""
    memory = [poked for (place, size), poked in found.items() if place == "memory" and size]
    span = [poked.median for poked in memory]
    published, largest = Published("100MB/sec", 1e8), max(sequence, default=0)
    single, many = parallel(native)
    rows = (
        _here(
            "memory_range",
            "memory, random: there from 1e-9 to 1e-6 s",
            _range(span, "Python's steps and the clock are in it", "memory was not poked"),
        ),
        *_of_the_disk(native, why_not(native, "storage.poke", refused)),
        _here(
            "memory_rate",
            "memory throughput: there 100 MB/s",
            sequence[largest].rate(8 * largest, published=published)
            if sequence
            else nothing("bytes_per_s", "nothing was written", published),
        ),
        *_of_the_file({size: took for size, took in created.items() if size >= BLOCK}),
        _here(
            "overlap_ratio",
            "misses under way at once: one at a time over many",
            Cell("ratio", single / many, why="medians of the probe memory.parallelism")
            if single and many
            else nothing("ratio", why_not(native, "memory.parallelism", refused)),
        ),
    )
    heads = (Column("here", "here"),)
    return Table("summary", "The notebook's summary, tested and filled", "what", heads, rows)


def _here(name: str, title: str, cell: Cell) -> Row:
    return Row(name, title, {"here": cell})


def _of_the_disk(native: Run | None, absent: str) -> tuple[Row, Row]:
    """The time of a poke past the page cache, and its range."""
    cold = {
        record.point.path or "": record
        for record in ([] if native is None else native.select("storage.poke", kind="per_op"))
        if record.point.file_bytes and record.value
    }
    disk = next((cold[path] for path in ("buffered-cold", "direct") if path in cold), None)
    latency, ends = nothing("s", absent), nothing("text", absent)
    if disk is not None and disk.summary is not None:
        span = f"{format_ns(disk.summary.min)} – {format_ns(disk.summary.max)}"
        latency, ends = cell_of(disk), Cell("text", span, why="fastest and slowest poke of the probe")
    return (
        _here("disk_latency", "SSD random access latency (blank there)", latency),
        _here("disk_range", "SSD, random: there from 1e-5 to 1e-1 s", ends),
    )


def _of_the_file(created: dict[int, tuple[float, float]]) -> tuple[Row, Row]:
    """The rate at which the largest file was written, and what a terabyte would take."""
    published, thousand = Published("1GB/sec", 1e9), Published("~1000 seconds", 1000.0)
    title = "SSD throughput (there 1GB/sec; the disk's is blank)"
    terabyte = "1 TB at that rate: there ~1000 seconds"
    if not created:
        why = "no file was created"
        return (
            _here("disk_rate", title, nothing("bytes_per_s", why, published)),
            _here("terabyte", terabyte, nothing("s", why, thousand)),
        )
    size = max(created)
    rate = size / created[size][1]
    why = "once, into the page cache; latlab lesson block-size has the disk"
    return (
        _here(
            "disk_rate",
            f"{title}: the file just created, not flushed",
            Cell("bytes_per_s", rate, published=published, why=why),
        ),
        _here(
            "terabyte",
            terabyte,
            Cell("s", 1e12 / rate, published=thousand, why="reckoned from the rate above"),
        ),
    )


def _range(values: list[float], why: str, absent: str) -> Cell:
    if not values:
        return nothing("text", absent)
    return Cell("text", f"{format_ns(min(values) * 1e9)} – {format_ns(max(values) * 1e9)} (medians)", why=why)


def parallel(native: Run | None) -> tuple[float | None, float | None]:
    """Ns a miss, one at a time and with most under way."""
    for record in [] if native is None else native.select("memory.parallelism", kind="derived"):
        sets = record.finding("sets")
        for found in sets if isinstance(sets, list) else []:
            if isinstance(found, dict):
                single, best = found.get("single_ns"), found.get("best_ns")
                if isinstance(single, int | float) and isinstance(best, int | float):
                    return float(single), float(best)
    return None, None


def ten_microseconds(found: Found, native: Run | None) -> Table:
    """The question in the notebook's summary, answered by counting."""
    rows = []
    for (place, size), poked in found.items():
        count = len(poked.seconds)
        cells = {
            "slow": Cell("count", float(poked.slow), why="counted"),
            "one_in": Cell(
                "text",
                f"1 in {words.plain(count / poked.slow)}" if poked.slow else f"none of {format_count(count)}",
                published=Published("every ~10,000", 10_000.0) if size == 0 else None,
                why="counted",
            ),
            "switches": nothing("count", "not counted on this system")
            if poked.switches is None
            else Cell("count", float(poked.switches), why="all context switches of the process meanwhile"),
        }
        rows.append(Row(f"{place}_{size}", f"{place}, {NAMES[size]}", cells))
    counted = causes(native)
    for name, number in counted.items():
        rows.append(
            Row(
                f"cause_{name.replace(' ', '_').replace('-', '_')}",
                f"native arm: {name}",
                {
                    "slow": Cell(
                        "count",
                        float(number),
                        why="samples of memory.poke of 10 us and more, each with its cause",
                    )
                },
            )
        )
    heads = (
        Column("slow", "10 us and more"),
        Column("one_in", "how often"),
        Column("switches", "context switches"),
    )
    return Table(
        "ten_microseconds",
        "Pokes of ten microseconds and more",
        "pokes",
        heads,
        tuple(rows),
        note="A context switch of this process that falls between two time stamps makes a slow poke; most fall elsewhere, in drawing places and in the loop. Where there are fewer switches than slow pokes, switches cannot be the reason of all.",
    )


def causes(native: Run | None) -> dict[str, int]:
    """What the probe found behind slow pokes: name and how many."""
    if native is None:
        return {}
    from latlab.run.causes import slow_causes  # noqa: PLC0415 - needs a run

    found = slow_causes(native.select("memory.poke", kind="per_op"), SLOW_S * 1e9)
    return {} if found is None else dict(found.counts)


def distribution(found: Found) -> Table:
    """Quantiles, zeros, and what a normal of the same mean and deviation would have."""
    rows = []
    for (place, size), poked in found.items():
        values = poked.seconds
        normal = _normal(poked)
        beyond = sum(value > poked.mean + 4 * poked.std for value in values) / len(values)
        cells = {
            "zeros": Cell(
                "share",
                sum(value == 0 for value in values) / len(values),
                published=ZEROS if (place, size) == ("memory", 10**9) else None,
                why="counted",
            ),
            "median": Cell("s", poked.median, why=f"of {len(values):,}"),
            "largest": Cell("s", values[-1], why=f"of {len(values):,}"),
            "beyond": Cell("share", beyond, why="counted"),
            "normal": Cell("share", 1 - normal.cdf(poked.mean + 4 * poked.std), why="by the formula"),
        }
        rows.append(Row(f"{place}_{size}", f"{place}, {NAMES[size]}", cells))
    heads = (
        Column("zeros", "took no time"),
        Column("median", "median"),
        Column("largest", "largest"),
        Column("beyond", "beyond mean + 4 deviations"),
        Column("normal", "a normal has there"),
    )
    return Table(
        "distribution",
        "The distribution beside a normal with the same mean and deviation",
        "pokes",
        heads,
        tuple(rows),
        note=f"The {KEPT:,} largest of each are in the JSON, under series.",
    )


def _normal(poked: Poked) -> statistics.NormalDist:
    return statistics.NormalDist(poked.mean, max(poked.std, 1e-12))


def clock_table(clocks: dict[str, list[float]], why: str) -> Table:
    """What the clocks can resolve."""
    names = {"time": "time.time(), as there", "perf_counter": "time.perf_counter()"}
    rows = []
    for name, title in names.items():
        steps = sorted(clocks.get(name, ()))
        cell = (
            Cell(
                "s",
                steps[len(steps) // 2],
                steps[0],
                steps[-1],
                len(steps),
                why="from one reading to the next that differs",
            )
            if steps
            else nothing("s", why)
        )
        rows.append(Row(name, title, {"step": cell}))
    return Table(
        "clocks",
        "How fine the clocks are in Python",
        "clock",
        (Column("step", "step"),),
        tuple(rows),
        note="A step holds the call that reads the clock.",
    )


def batch_table(batches: dict[int, list[float]], native: Run | None, refused: str, why: str) -> Table:
    """The sequel: means of batches, sizes around the caches."""
    rows = []
    for size, means in batches.items():
        ordered = sorted(means)
        cell = Cell("s", statistics.median(ordered), ordered[0], ordered[-1], len(ordered))
        rows.append(Row(f"bytes_{size}", "one byte" if size == 0 else format_bytes(size), {"python": cell}))
    for record in (
        [] if native is None else native.select("memory.poke", kind="batch_mean", operation="read-write")
    ):
        size = record.point.working_set_bytes or 0
        rows.append(
            Row(
                f"native_{size}",
                f"native, {'nothing' if size == 0 else format_bytes(size, decimal=True)}",
                {"native": cell_of(record)},
            )
        )
    if not rows:
        rows = [Row("none", "any size", {"python": nothing("s", why or refused)})]
    return Table(
        "batches",
        "The sequel: pokes in batches",
        "memory",
        (Column("python", "Python, a poke"), Column("native", "native, a poke")),
        tuple(rows),
        note="Means of 1,000 pokes: shorter than a time stamp, and without the tail.",
    )


def bottleneck(batches: dict[int, list[float]], native: Run | None, refused: str, why: str) -> Table:
    """What of a poke is calculating, and what is moving data: in Python, and below it."""
    rows = []
    for name, title, ends, absent in (
        ("python", "Python", _python_ends(batches), why or "too few sizes"),
        ("native", "native", _native_ends(native), why_not(native, "memory.poke", refused)),
    ):
        if ends is None:
            rows += [
                Row(f"{name}_small", f"{title}: a poke in the cache", {"here": nothing("s", absent)}),
                Row(f"{name}_large", f"{title}: a poke in much memory", {"here": nothing("s", absent)}),
                Row(f"{name}_moving", f"{title}: of that, moving data", {"here": nothing("share", absent)}),
            ]
            continue
        (small, near), (large, far) = ends
        told = "mean over a batch, median of batches"
        rows += [
            Row(
                f"{name}_small",
                f"{title}: a poke in {written(small, 'bytes')}",
                {"here": Cell("s", near, why=told)},
            ),
            Row(
                f"{name}_large",
                f"{title}: a poke in {written(large, 'bytes')}",
                {"here": Cell("s", far, why=told)},
            ),
            Row(
                f"{name}_moving",
                f"{title}: of that, moving data",
                {
                    "here": Cell(
                        "share", max(1 - near / far, 0.0), why="what the larger takes more, of the two above"
                    )
                },
            ),
        ]
    return Table(
        "bottleneck",
        "Moving data against calculating",
        "what",
        (Column("here", "here"),),
        tuple(rows),
        note="In the cache next to the core a poke is its instructions; what it takes more in much memory is moving data.",
    )


Ends = tuple[tuple[int, float], tuple[int, float]]


def _python_ends(batches: dict[int, list[float]]) -> Ends | None:
    """The smallest size that is more than a byte, and the largest: bytes, seconds a poke."""
    sizes = sorted(size for size in batches if size)
    if len(sizes) < 2:
        return None
    near, far = (statistics.median(batches[size]) for size in (sizes[0], sizes[-1]))
    return (sizes[0], near), (sizes[-1], far)


def _native_ends(native: Run | None) -> Ends | None:
    """The same of the native arm's batches."""
    found = {
        record.point.working_set_bytes: record.value / 1e9
        for record in (
            [] if native is None else native.select("memory.poke", kind="batch_mean", operation="read-write")
        )
        if record.point.working_set_bytes and record.value
    }
    if len(found) < 2:
        return None
    return (min(found), found[min(found)]), (max(found), found[max(found)])


def _by_path(record: Record) -> tuple[str, int]:
    return record.point.path or "", record.point.working_set_bytes or record.point.file_bytes or 0


def native_table(native: Run | None, refused: str) -> Table:
    """The native arm, each poke alone."""
    rows = []
    for probe, place in (("memory.poke", "memory"), ("storage.poke", "file")):
        records = [] if native is None else native.select(probe, kind="per_op", operation="read-write")
        for record in sorted(records, key=_by_path):
            size = record.point.working_set_bytes if probe == "memory.poke" else record.point.file_bytes
            summary_of = record.summary
            if record.value is None or summary_of is None:
                continue
            path = f", {record.point.path}" if record.point.path else ""
            mean = Cell("s", (summary_of.mean or 0.0) / 1e9, why=f"of {record.samples:,} pokes")
            std = Cell("s", (summary_of.std or 0.0) / 1e9, why=f"of {record.samples:,} pokes")
            rows.append(
                Row(
                    f"{place}_{size}{path.replace(', ', '_').replace('-', '_')}",
                    f"{place}{path}, {format_bytes(size or 0, decimal=True)}",
                    {"median": cell_of(record), "mean": mean, "std": std},
                )
            )
    if not rows:
        rows = [Row("none", "any size", {"median": nothing("s", why_not(native, "memory.poke", refused))})]
    return Table(
        "native",
        "The native arm, each poke timed alone",
        "where",
        (Column("median", "median"), Column("mean", "mean"), Column("std", "deviation")),
        tuple(rows),
        note="Cold and direct pokes wait for the disk; warm ones are answered by the page cache.",
    )


def system() -> Table:
    """The notebook's last cell, from one program for every system."""
    facts = machine() | {"python_build": platform.python_build()[0]}
    for name, path in (("L1d", "index0"), ("L2", "index2"), ("L3", "index3")):
        try:
            facts[name] = (
                Path(f"/sys/devices/system/cpu/cpu0/cache/{path}/size").read_text(encoding="ascii").strip()
            )
        except OSError:
            continue
    rows = tuple(
        Row(name, name, {"here": Cell("text", text, why="as the system says it")})
        for name, text in facts.items()
    )
    return Table(
        "system",
        "System description",
        "what",
        (Column("here", "here"),),
        rows,
        note="latlab doctor has more.",
    )


def answer(found: Found, native: Run | None) -> tuple[str, ...]:
    """The short answer: the 10 us question, then memory against files."""
    zero = found.get(("memory", 0))
    said = []
    if zero is not None:
        often = f"{zero.slow} of {len(zero.seconds):,} pokes of nothing took 10 us or more here"
        switches = (
            f"; context switches of the process meanwhile: {zero.switches}"
            if zero.switches is not None
            else ""
        )
        said.append(f"{often}{switches}.")
    counted = causes(native)
    if counted:
        total = sum(counted.values())
        said.append(
            f"The native arm knows the causes of its own {total}: "
            + ", ".join(f"{format_percent(number / total)} {name}" for name, number in counted.items())
            + "."
        )
    memory, file = found.get(("memory", 10**6)), found.get(("file", 10**6))
    if memory is not None and file is not None:
        said.append(
            f"A poke of 1 MB takes {format_ns(memory.median * 1e9)} in memory and {format_ns(file.median * 1e9)} in a file that is in the cache (medians), {words.plain(file.median / memory.median)} times as long."
        )
    return tuple(said) or ("Nothing was measured here, so there is no answer from this machine.",)


def reasons(found: Found, native: Run | None) -> list[str]:
    """Causes, with their size here."""
    said = []
    zero = found.get(("memory", 0))
    small = found.get(("memory", 10**3))
    if zero is not None and small is not None:
        said.append(
            f"A poke of nothing already takes {format_ns(zero.median * 1e9)}: two readings of the clock. Of a poke in 1 KB, {format_ns(small.median * 1e9)}, that is {format_percent(min(zero.median / small.median, 1.0))}; the rest is Python's own steps (medians: a mean is that of the few slowest, too)."
        )
    file, memory = found.get(("file", 10**6)), found.get(("memory", 10**6))
    if file is not None and memory is not None:
        said.append(
            f"A file in the page cache costs four calls of the kernel for a poke (seek, read, seek, write): {format_ns((file.median - memory.median) * 1e9)} more than memory (medians). No disk is in that."
        )
    largest = max((size for place, size in found if place == "memory"), default=0)
    if largest > 10**6 and memory is not None:
        more = found["memory", largest].median - memory.median
        if more > 0:
            said.append(
                f"A poke in {NAMES[largest]} of memory takes {format_ns(more * 1e9)} more than in 1 MB (medians): misses of the caches and of the address translation."
            )
    said += _large_pieces(found, native)
    counted = causes(native)
    if counted:
        switches = sum(number for name, number in counted.items() if "switch" in name)
        total = sum(counted.values())
        said.append(
            f"“Maybe a context switch?” {format_percent(switches / total)} of the native arm's {total} pokes of 10 us and more were one. The others, by their evidence: "
            + ", ".join(f"{name} ({number})" for name, number in counted.items() if "switch" not in name)
            + "."
        )
    single, many = parallel(native)
    if single and many:
        said.append(
            f"Latency is not bandwidth: a miss alone takes {format_ns(single)}, and {format_ns(many)} each where many are under way at once, {words.plain(single / many)} times as many a second."
        )
    return said


def _large_pieces(found: Found, native: Run | None) -> list[str]:
    """A large file that is dear to poke although it is in the cache."""
    small, large = found.get(("file", 10**6)), found.get(("file", 10**9))
    if small is None or large is None:
        return []
    middles = [poked.median for poked in (small, large)]
    warm = [
        record
        for record in (
            [] if native is None else native.select("storage.poke", kind="per_op", path="buffered-warm")
        )
        if (record.point.file_bytes or 0) > 10**6 and record.value
    ]
    if middles[1] < 3 * middles[0] or not warm:
        return []
    return [
        f"A poke in the file of 1 GB takes {format_ns(middles[1] * 1e9)} (median), in that of 1 MB {format_ns(middles[0] * 1e9)}. The native arm, whose file is brought in"
        f" page by page, has {format_ns(warm[-1].value)} for {format_bytes(warm[-1].point.file_bytes, decimal=True)}: it is not the size. A file that was written in large blocks can lie in the cache in pieces of up to 2 MiB, and"
        " some file systems go through all of a piece to write one byte (see the method of storage.poke)."
    ]


def misled(found: Found, clocks: dict[str, list[float]], sequence: dict[int, Times]) -> list[Misled]:
    """Where the notebook misleads."""
    said = []
    largest = max(sequence, default=0)
    if largest:
        times = sequence[largest]
        said.append(
            Misled(
                "Its “Average time per byte” divides by integers of eight bytes, and so it comes to “memory: 100 MB/s”.",
                f"6.9e-09 an integer is 8.6e-10 a byte, 1.2 GB/s there. Here: {format_ns(times.median / largest * 1e9)} an integer, {format_ns(times.median / largest / 8 * 1e9)} a byte, {words.rate(8 * largest / times.median)}. Its “1000 MB” are 8 GB.",
            )
        )
    if clocks:
        steps = {name: sorted(values)[len(values) // 2] for name, values in clocks.items()}
        zero = found.get(("memory", 0))
        told = (
            f" A poke of nothing takes {format_ns(zero.median * 1e9)} here (median)."
            if zero is not None
            else ""
        )
        said.append(
            Misled(
                "It times accesses of nanoseconds with time.time(), whose steps it gives as a microsecond, and reads a mean of 1.38e-07 from them.",
                f"Here time.time() moves by {format_ns(steps['time'] * 1e9)} and perf_counter by {format_ns(steps['perf_counter'] * 1e9)}, the call included.{told} A single access to a cache cannot be seen so; the batches below can.",
            )
        )
    said += [
        Misled(
            "It calls a column “disk”.",
            "The files were written just before, so the page cache answers. Cold pokes of the native arm are in a table of their own.",
        ),
        Misled(
            "Its pokes come from a library that is not part of it, and it does not say whether one value is one access or a batch.",
            "A mean over a batch has no tail: one slow access of 10 us in a batch of 1,000 is 10 ns in the mean. Both are shown here, each called what it is.",
        ),
        Misled("It compares with a normal distribution.", _normal_told(found)),
        Misled(
            "It leaves blanks: “SSD random access latency is”, “Disk: (fill in)”.",
            "The table of its summary has them, measured here where the native arm ran.",
        ),
        Misled(
            "It writes 10 GB in 8.9 s in one place and 1 GB in 13.8 s in another.",
            "The second is its own measurement of that day. A write that is not flushed ends in memory: its time says little of the disk.",
        ),
    ]
    return said


def _normal_told(found: Found) -> str:
    for key in (("memory", 10**9), ("memory", 10**6), ("memory", 10**3)):
        if key in found:
            poked = found[key]
            share = sum(value > poked.mean + 4 * poked.std for value in poked.seconds) / len(poked.seconds)
            return f"Beyond the mean and four deviations lie {format_percent(share)} of the pokes in memory of {NAMES[key[1]]} here; a normal has 0.0032 % there, and nothing at all where the largest is ({format_ns(poked.seconds[-1] * 1e9)})."
    return "Latencies have long tails: see the table of the distribution."


def answers(
    found: Found,
    created: dict[int, tuple[float, float]],
    batches: dict[int, list[float]],
    native: Run | None,
) -> list[Answer]:
    """What else it says."""
    said = []
    memory = [
        poked.median
        for (place, size), poked in sorted(found.items(), key=lambda each: each[0][1])
        if place == "memory" and size
    ]
    if len(memory) > 1:
        said.append(
            Answer(
                "Does random access degrade with the size of the block?",
                f"In memory from {format_ns(memory[0] * 1e9)} to {format_ns(memory[-1] * 1e9)} (medians, Python's steps in each).",
            )
        )
    sizes = [size for size in created if size >= BLOCK]
    if sizes:
        size = max(sizes)
        said.append(
            Answer(
                "How long would 1 TB take to write?",
                f"At the rate of the file just created, {format_seconds(1e12 * created[size][1] / size)}; flushed it is longer (latlab lesson block-size).",
            )
        )
    shares = [
        f"{title} {format_percent(max(1 - near / far, 0.0))} ({format_ns(near * 1e9)} in {written(small, 'bytes')}, {format_ns(far * 1e9)} in {written(large, 'bytes')})"
        for title, ends in (("in Python", _python_ends(batches)), ("below Python", _native_ends(native)))
        if ends is not None
        for (small, near), (large, far) in (ends,)
    ]
    if shares:
        said.append(
            Answer(
                "Is “the main bottleneck moving data around, not calculation”?",
                f"Of a random poke, moving data is {'; '.join(shares)}. It depends on who calculates: the slower the program's own steps, the less its data matters.",
            )
        )
    said.append(
        Answer(
            "Latencies typically have long tails: use log-log graphs?",
            "Yes: on linear axes the few slow pokes lie on the axis itself. Both are drawn.",
        )
    )
    return said


# ----------------------------------------------------------------------------------------------------------
# pictures


def pictures(found: Found) -> list[Picture]:
    """Histogram, 1-CDF linear and log-log beside a normal, and all sizes in one figure."""
    key = next((key for key in (("memory", 10**9), ("memory", 10**6)) if key in found), None)
    if key is None:
        return []
    poked, name = found[key], f"memory of {NAMES[key[1]]}"
    return [
        Picture(
            "all_sizes",
            "How often does a poke take longer, in memory and in files of each size?",
            "lines",
            "1-CDF: pokes that take longer",
            "share",
            tuple(_all_sizes(found)),
            x_axis="delay, logarithmic",
            x_unit="s",
            caption="Both axes logarithmic. The row Zero is the clock alone.",
        ),
        histogram(poked, name, below=True),
        histogram(poked, name, below=False),
        Picture(
            "ccdf_linear",
            f"1-CDF of {name}, linear",
            "lines",
            "1-CDF: pokes that take longer",
            "share",
            tuple(_ccdf_marks(poked, below=CUT_S)),
            log=False,
            x_axis="delay",
            x_unit="s",
            x_log=False,
            caption="Beside a normal with the same mean and deviation, of which a part lies below the fastest poke. What is slower than the end of the axis is left out.",
        ),
        Picture(
            "ccdf_loglog",
            f"1-CDF of {name}, log-log",
            "lines",
            "1-CDF: pokes that take longer",
            "share",
            tuple(_ccdf_marks(poked, below=math.inf)),
            x_axis="delay, logarithmic",
            x_unit="s",
            caption="The normal has the same mean and deviation. It ends where less than one poke of all would be slower; what was measured goes on as long as there are pokes.",
        ),
    ]


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


def _all_sizes(found: Found) -> list[Mark]:
    marks = []
    for (place, size), poked in sorted(found.items(), key=lambda each: (each[0][0] != "memory", each[0][1])):
        if place == "file" and size == 0:
            continue
        name = "Zero" if size == 0 else f"{NAMES[size]} {place}"
        marks += [Mark(name, share, name, x) for x, share in ccdf(poked.seconds, 40)]
    return marks


def _ccdf_marks(poked: Poked, *, below: float) -> list[Mark]:
    # What is cut is drawn on linear axes.
    measured = [(x, share) for x, share in ccdf(poked.seconds, log=below == math.inf) if x <= below]
    marks = [Mark("measured", share, "measured", x) for x, share in measured]
    normal, least = _normal(poked), 1 / len(poked.seconds)
    top = min(below, poked.mean + 5 * poked.std)
    low = measured[0][0] if measured else top / 100
    for number in range(41):
        x = low * (top / low) ** (number / 40) if top > low else top
        share = 1 - normal.cdf(x)
        if share >= least:
            marks.append(Mark("normal", share, "a normal of the same mean and deviation", x))
    return marks


def histogram(poked: Poked, name: str, *, below: bool) -> Picture:
    """The notebook's two histograms: below the cut, and above it."""
    low, high, bins = (0.0, CUT_S, 20) if below else (CUT_S, 10 * CUT_S, 10)
    width, count = (high - low) / bins, len(poked.seconds)
    counts = [0] * bins
    for value in poked.seconds:
        place = int((value - low) / width)
        if value >= low and place < bins:
            counts[place] += 1
    normal = _normal(poked)
    marks = []
    for number, own in enumerate(counts):
        start, end = low + number * width, low + (number + 1) * width
        label = f"{format_ns(start * 1e9)} – {format_ns(end * 1e9)}"
        marks.append(Mark(label, float(own), "measured"))
        marks.append(
            Mark(
                label,
                count * (normal.cdf(end) - normal.cdf(start)),
                "a normal of the same mean and deviation",
            )
        )
    side = "below" if below else "from"
    return Picture(
        f"histogram_{side}",
        f"Histogram of {name}, {side} 1 us",
        "bars",
        "pokes",
        "count",
        tuple(marks),
        log=False,
    )
