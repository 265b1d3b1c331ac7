"""One large file against many small ones."""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons import compiled
from latlab.lessons.bench import Arms, Bench, Cannot, Times, times_of
from latlab.lessons.cache import again, why_not_cold
from latlab.lessons.figures import Cell, Published
from latlab.lessons.folder import fresh_folder
from latlab.lessons.memory import enough_memory
from latlab.lessons.model import Guess, Original, Reported
from latlab.lessons.native import findings, probed, records
from latlab.lessons.programs import file_steps, small_files
from latlab.lessons.template import reported
from latlab.units import format_bytes, format_count

if TYPE_CHECKING:
    from latlab.run.run import Run

QUESTION = "Why is it faster to read/write a single 100 MB file, than 100 files of 1 MB each?"
ORIGIN = "a lesson, “Understanding Latency”: Accessing Disk"
PROGRAMS = ("small_files.py", "file_steps.py")
PUBLISHED: Final = {
    "write_one": Published("0.00198 seconds", 0.00198),
    "write_many": Published("0.14886 seconds", 0.14886),
    "read_one": Published("0.00478 seconds", 0.00478),
    "read_many": Published("2.50339 seconds", 2.50339),
    "write_ratio": Published("75.1 slower", 75.1),
    "read_ratio": Published("523.9 slower", 523.9),
}
GUESS = Guess(
    "How many times as long does it take to write 10 MB as 1,000 files instead of one?",
    "original.write_ratio.python",
    PUBLISHED["write_ratio"],
)
ORIGINAL_TAKES: Final = Original(
    30, 4e9, "10 MB in 1,000 files are written and read 20 times, 100 MB in 100 files 10 times"
)
#: Beyond this a difference from the published figure needs a reason.
APART: Final = 2.0


@dataclass(frozen=True, slots=True)
class Pair:
    """The same bytes in one file and in `files`, `rounds` times."""

    total: int
    files: int
    rounds: int

    @property
    def each(self) -> int:
        """Bytes of one of the many."""
        return self.total // self.files

    @property
    def one_name(self) -> str:
        """`1 x 10 MB`."""
        return f"1 x {format_bytes(self.total, decimal=True)}"

    @property
    def many_name(self) -> str:
        """`1,000 x 10 kB`."""
        return f"{format_count(self.files)} x {format_bytes(self.each, decimal=True)}"


#: The published program has 10 MB in 1,000 files; its question has 100 MB in 100.
PAIRS: Final = {
    "small": (Pair(1_000_000, 100, 12), Pair(10_000_000, 10, 9)),
    "default": (Pair(10_000_000, 1000, 12), Pair(100_000_000, 100, 9)),
    "original": (Pair(10_000_000, 1000, 20), Pair(100_000_000, 100, 10)),
}
#: Rounds of which all files are kept until the end, so that each finds new memory.
_ROUNDS_KEPT: Final = 4


def run(bench: Bench) -> Reported:
    """Both pairs, then where the time of a small file goes."""
    first, second = PAIRS[bench.size]
    found = bench.arms(f"{first.one_name} against {first.many_name}", lambda: passes(bench, first))
    question = bench.arms(f"{second.one_name} against {second.many_name}", lambda: passes(bench, second))
    steps = bench.arms("the steps of a small file", lambda: by_step(bench, first))
    others = bench.arms("small reads, and reading again", lambda: other_habits(bench, first))
    durable = bench.arms("flushing each file (fsync)", lambda: flushed(bench, first))
    cold = bench.arms("reading data dropped from the cache", lambda: forgotten(bench, first))
    small = bench.size == "small"
    native, why_native = probed(
        bench, "storage.files", profile="quick" if small else "standard", budget=1.2 if small else 10.0
    )
    return say(
        Found(
            (first, second),
            found,
            question=question,
            steps=steps,
            others=others,
            durable=durable,
            cold=cold,
            core=native_passes(native),
            why_native=why_native,
        )
    )


@dataclass(frozen=True)
class Found:
    """Of the first of the pairs; `question` is of the second, `core` of the Rust probe."""

    pairs: tuple[Pair, Pair]
    found: Arms[str]
    question: Arms[str] = field(default_factory=Arms)
    steps: Arms[str] = field(default_factory=Arms)
    others: Arms[str] = field(default_factory=Arms)
    durable: Arms[str] = field(default_factory=Arms)
    cold: Arms[str] = field(default_factory=Arms)
    core: Mapping[str, Cell] = field(default_factory=dict)
    why_native: str = ""


def say(found: Found) -> Reported:
    """What these figures say."""
    pair, second = found.pairs
    return reported(__name__, pair=pair, second=second, part=part_of(pair), **vars(found))


def passes(bench: Bench, pair: Pair) -> dict[str, Times]:
    """The published four timings, one and many in turn first, each write into a new folder.

    `write_*` go into memory of the cache that held such files a moment ago; `new_*` into what the kernel has,
    with all files kept: pages that were not used recently are found at several times that cost.
    """
    bench.room((2 * _ROUNDS_KEPT + 2) * pair.total)
    # What is written, what is read back, and what was kept of it.
    enough_memory(int(3.2 * pair.total))
    data, fresh = os.urandom(pair.total), partial(fresh_folder, bench.folder, "pair")

    def write_one(folder: Path) -> float:
        return small_files.write_one(folder, data)

    def write_many(folder: Path) -> float:
        return small_files.write_many(folder, data, pair.files)

    wrote = bench.times(
        {"new_one": lambda: write_one(fresh()), "new_many": lambda: write_many(fresh())}, _ROUNDS_KEPT
    )
    # The first of each still finds new memory.
    again(write_one, fresh)
    again(write_many, fresh)
    wrote |= bench.times(
        {"write_one": lambda: again(write_one, fresh)[0], "write_many": lambda: again(write_many, fresh)[0]},
        pair.rounds,
    )
    root = fresh()
    write_one(root)
    write_many(root)
    return wrote | bench.times(
        {f"read_{way}": partial(read, way, root, data, pair) for way in ("one", "many", "scattered", "kept")},
        pair.rounds,
    )


def read(way: str, folder: Path, data: bytes, pair: Pair) -> float:
    """Seconds of reading one file, many, those in another order, or one into memory that was kept.

    In a program of its own: what a program has read before decides where its next reads find memory.
    """
    program = Path(small_files.__file__)
    words = ("read", way, folder, zlib.crc32(data), pair.each, pair.files)
    return float(compiled.reported(Path(sys.executable), program, *words)["seconds"])


def by_step(bench: Bench, pair: Pair) -> dict[str, Times]:
    """Seconds a file of each step, as a Python program can see them."""
    bench.room(pair.rounds * pair.total)
    data = os.urandom(pair.total)
    rounds: dict[str, list[float]] = {}
    for _ in range(pair.rounds):
        folder = fresh_folder(bench.folder, "steps")
        wrote = file_steps.write_steps(folder, data, pair.files)
        read = file_steps.read_steps(folder, pair.files)
        named = {f"write {name}": value for name, value in wrote.items()}
        named |= {f"read {name}" if name != "lookup" else "lookup": value for name, value in read.items()}
        named["missing"] = file_steps.open_nothing(folder, pair.files)
        for name, value in named.items():
            rounds.setdefault(name, []).append(value / pair.files)
    return times_of(rounds)


def other_habits(bench: Bench, pair: Pair) -> dict[str, Times]:
    """Small reads with and without Python's buffer; a file read again and again, or kept."""
    path = bench.folder / "habits.bin"
    path.write_bytes(os.urandom(100_000 if bench.size == "small" else 1_000_000))
    once = bench.folder / "again.bin"
    once.write_bytes(os.urandom(pair.each))
    return bench.times(
        {
            "buffered": lambda: file_steps.small_reads(path, 10, -1),
            "unbuffered": lambda: file_steps.small_reads(path, 10, 0),
            "again": lambda: file_steps.again_and_again(once, pair.files),
            "kept": lambda: file_steps.read_once_and_keep(once, pair.files),
        },
        pair.rounds,
    )


def flushed(bench: Bench, pair: Pair) -> dict[str, Times]:
    """The same writes, each file made durable; of the many, only as many as take a second or so."""
    few = max(pair.files // 20, 5)
    bench.room(4 * pair.total)
    data, fresh = os.urandom(pair.total), partial(fresh_folder, bench.folder, "flushed")

    def write(folder: Path, files: int, size: int) -> float:
        start = time.perf_counter()
        for number in range(files):
            with (folder / f"small_{number}.bin").open("wb") as file:
                file.write(data[:size])
                file.flush()
                os.fsync(file.fileno())
        return time.perf_counter() - start

    found = bench.times(
        {
            "one": lambda: again(lambda folder: write(folder, 1, pair.total), fresh)[0],
            "few": lambda: again(lambda folder: write(folder, few, pair.each), fresh)[0],
        },
        3,
    )
    scaled = Times(tuple(value * pair.files / few for value in found["few"].values))
    return {"one": found["one"], "many": scaled}


def forgotten(bench: Bench, whole: Pair) -> dict[str, Times]:
    """A part of the files, read when nothing of their contents is cached; names and inodes stay in memory.

    Raises:
        Cannot: the cache does not drop them, or cannot be asked.
    """
    pair = part_of(whole)
    bench.room(2 * pair.total)
    data = os.urandom(pair.total)
    folder = fresh_folder(bench.folder, "forgotten")
    small_files.write_one(folder, data)
    small_files.write_many(folder, data, pair.files)

    def cold(way: str) -> float:
        for path in folder.iterdir():
            if why := why_not_cold(path):
                raise Cannot(why)
        return read(way, folder, data, pair)

    return bench.times({way: partial(cold, way) for way in ("one", "many", "scattered")}, 3)


def part_of(pair: Pair) -> Pair:
    """A fifth of the files: flushing all of them first may take ten seconds."""
    return Pair(pair.total // 5, pair.files // 5, 3)


def native_passes(run: Run | None) -> dict[str, Cell]:
    """The same six figures from the probe: all files together, seconds."""
    found: dict[str, Cell] = {}
    names = {"write": "write", "read-warm": "read"}
    counts = {1: "one", 1000: "many"}
    for record in records(run, "storage.files", engine="psync", sync=None):
        point, own = record.point, findings(record)
        kind, how = names.get(point.operation or ""), counts.get(point.files or 0)
        total = own.number("total_s")
        if kind is None or how is None or total is None or record.value is None:
            continue
        spread = [mean * (point.files or 0) / 1e9 for mean in own.numbers("block_means_ns")] or [total]
        found[f"{kind}_{how}"] = Cell.within("s", total, spread, len(spread))
    for kind in ("write", "read"):
        one, many = found.get(f"{kind}_one"), found.get(f"{kind}_many")
        if one is not None and many is not None and one.number and many.number:
            low, high = (many.low or 0.0) / (one.high or 1.0), (many.high or 0.0) / (one.low or 1.0)
            count = min(one.repeats, many.repeats)
            found[f"{kind}_ratio"] = Cell(
                "ratio", many.number / one.number, low, high, count, why="of the two times above"
            )
    return found
