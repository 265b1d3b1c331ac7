"""One large file against many small ones."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons import words
from latlab.lessons.bench import Bench, Cannot, Times, enough_memory, nothing, timed
from latlab.lessons.cache import why_not_cold
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
    Table,
    Told,
    Unit,
)
from latlab.lessons.native import why_not
from latlab.lessons.programs import file_steps, small_files
from latlab.units import format_bytes, format_count, format_ns, format_percent

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
_PASSES = ("write_one", "write_many", "read_one", "read_many")


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


#: The document's program has 10 MB in 1,000 files; its question has 100 MB in 100.
PAIRS: Final = {
    "small": (Pair(1_000_000, 100, 5), Pair(10_000_000, 10, 3)),
    "default": (Pair(10_000_000, 1000, 6), Pair(100_000_000, 100, 4)),
    "original": (Pair(10_000_000, 1000, 20), Pair(100_000_000, 100, 10)),
}


def run(bench: Bench) -> Told:
    """Both pairs, then where the time of a small file goes."""
    first, second = PAIRS[bench.size]
    found = bench.attempt(f"{first.one_name} against {first.many_name}", lambda: passes(bench, first)) or {}
    question = (
        bench.attempt(f"{second.one_name} against {second.many_name}", lambda: passes(bench, second)) or {}
    )
    steps = bench.attempt("the steps of a small file", lambda: by_step(bench, first)) or {}
    others = bench.attempt("small reads, and reading again", lambda: other_habits(bench, first)) or {}
    durable = bench.attempt("flushing each file (fsync)", lambda: flushed(bench, first)) or {}
    cold = bench.attempt("reading what the cache was asked to forget", lambda: forgotten(bench, first)) or {}
    native = bench.native(
        "the native arm (probe storage.files)",
        "storage.files",
        profile="quick" if bench.size == "small" else "standard",
        budget=1.2 if bench.size == "small" else 10.0,
    )
    why = bench.why(f"{first.one_name} against {first.many_name}")
    why_native = why_not(native, "storage.files", bench.why("the native arm (probe storage.files)"))
    core = native_passes(native) if native is not None else {}
    tables = [
        original(first, found, core, why, why_native),
        opening(second, question, bench.why(f"{second.one_name} against {second.many_name}")),
    ]
    tables += [
        table
        for table in (step_table(first, steps), habit_table(others), disk_table(first, found, durable, cold))
        if table
    ]
    return Told(
        answer=answer(first, found, second, question),
        tables=tuple(tables),
        pictures=(picture(first, found, core),) if found else (),
        reasons=tuple(reasons(first, found, steps, others, cold)),
        misled=tuple(misled(found, durable, question, first, second)),
        answers=tuple(answers(found, steps, others)),
        further=(
            "latlab lesson small-files --dir DIR, with a directory on another disk, a network share or a USB stick",
            "latlab measure --only storage.files --profile thorough: 10,000 files too, and cold metadata as root with --drop-caches",
            "pack what belongs together: tar, zip, HDF5, SQLite, Parquet; then time your own program again",
            "latlab lesson downloads: the same fixed cost a file, on a network",
        ),
        charts=("storage_files",),
    )


def passes(bench: Bench, pair: Pair) -> dict[str, Times]:
    """The document's four timings, one and many in turn first, each write into a new folder."""
    bench.room(2 * pair.rounds * pair.total)
    # What is written, what is read back, and a buffer that is kept.
    enough_memory(int(3.2 * pair.total))
    data, numbers = os.urandom(pair.total), count()
    root = bench.folder / f"pair-{pair.files}-{pair.total}"
    root.mkdir()

    def fresh() -> Path:
        folder = root / str(next(numbers))
        folder.mkdir()
        return folder

    wrote = bench.times(
        {
            "write_one": lambda: small_files.write_one(fresh(), data),
            "write_many": lambda: small_files.write_many(fresh(), data, pair.files),
        },
        pair.rounds,
    )
    small_files.write_one(root, data)
    small_files.write_many(root, data, pair.files)
    in_order, kept = list(range(pair.files)), bytearray(pair.total)
    read = bench.times(
        {
            "read_one": lambda: small_files.read_one(root, data),
            "read_many": lambda: small_files.read_many(root, data, pair.files, in_order),
            "read_scattered": lambda: small_files.read_many(
                root, data, pair.files, random.sample(in_order, pair.files)
            ),
            "read_kept": lambda: file_steps.read_into_kept(root / "large.bin", kept),
        },
        pair.rounds,
    )
    return wrote | read


def by_step(bench: Bench, pair: Pair) -> dict[str, Times]:
    """Seconds a file of each step, as a Python program can see them."""
    bench.room(pair.rounds * pair.total)
    data = os.urandom(pair.total)
    rounds: dict[str, list[float]] = {}
    for number in range(pair.rounds):
        folder = bench.folder / f"steps-{number}"
        folder.mkdir()
        wrote = file_steps.write_steps(folder, data, pair.files)
        read = file_steps.read_steps(folder, pair.files)
        named = {f"write {name}": value for name, value in wrote.items()}
        named |= {f"read {name}" if name != "lookup" else "lookup": value for name, value in read.items()}
        named["missing"] = file_steps.open_nothing(folder, pair.files)
        for name, value in named.items():
            rounds.setdefault(name, []).append(value / pair.files)
    return {name: Times(tuple(values)) for name, values in rounds.items()}


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
    data, numbers = os.urandom(pair.total), count()

    def write(name: str, size: int) -> None:
        with (bench.folder / name).open("wb") as file:
            file.write(data[:size])
            file.flush()
            os.fsync(file.fileno())

    def write_few() -> None:
        for _ in range(few):
            write(f"flushed-{next(numbers)}", pair.each)

    found = bench.times(
        {
            "one": lambda: timed(lambda: write(f"flushed-{next(numbers)}", pair.total)),
            "few": lambda: timed(write_few),
        },
        3,
    )
    scaled = Times(tuple(value * pair.files / few for value in found["few"].values))
    return {"one": found["one"], "many": scaled}


def forgotten(bench: Bench, whole: Pair) -> dict[str, Times]:
    """A part of the files, read when nothing of their contents is cached; names and inodes stay in memory.

    Raises:
        Cannot: the cache does not let go of them, or cannot be asked.
    """
    pair = part_of(whole)
    bench.room(2 * pair.total)
    data, in_order = os.urandom(pair.total), list(range(pair.files))
    folder = bench.folder / "forgotten"
    folder.mkdir()
    small_files.write_one(folder, data)
    small_files.write_many(folder, data, pair.files)

    def after(read: Callable[[], float]) -> float:
        for path in folder.iterdir():
            why = why_not_cold(path)
            if why:
                raise Cannot(why)
        return read()

    return bench.times(
        {
            "one": lambda: after(lambda: small_files.read_one(folder, data)),
            "many": lambda: after(lambda: small_files.read_many(folder, data, pair.files, in_order)),
            "scattered": lambda: after(
                lambda: small_files.read_many(folder, data, pair.files, random.sample(in_order, pair.files))
            ),
        },
        3,
    )


def part_of(pair: Pair) -> Pair:
    """A fifth of the files: flushing all of them first may take ten seconds."""
    return Pair(pair.total // 5, pair.files // 5, 3)


# ----------------------------------------------------------------------------------------------------------
# what is told


def original(pair: Pair, found: dict[str, Times], core: dict[str, Cell], why: str, why_native: str) -> Table:
    """The four timings and two ratios that the document prints."""
    titles = {
        "write_one": f"{pair.one_name}, write",
        "write_many": f"{pair.many_name}, write",
        "read_one": f"{pair.one_name}, read",
        "read_many": f"{pair.many_name}, read",
        "write_ratio": f"{pair.many_name} over {pair.one_name}, write",
        "read_ratio": f"{pair.many_name} over {pair.one_name}, read",
    }
    rows = []
    for name, title in titles.items():
        unit: Unit = "ratio" if name.endswith("ratio") else "s"
        if not found:
            cell = nothing(unit, why, PUBLISHED[name])
        elif unit == "ratio":
            kind = name.removesuffix("_ratio")
            cell = found[f"{kind}_many"].over(found[f"{kind}_one"], published=PUBLISHED[name])
        else:
            cell = found[name].cell(published=PUBLISHED[name])
        rows.append(Row(name, title, {"python": cell, "native": core.get(name, nothing(unit, why_native))}))
    size = (
        ""
        if pair.total == 10_000_000
        else " The published figures are of 10 MB in 1,000 files; these are smaller."
    )
    return Table(
        "original",
        "The same bytes in one file and in many",
        "what",
        (Column("python", "Python"), Column("native", "native")),
        tuple(rows),
        original=True,
        note=f"Medians (smallest – largest) of all files together. The native arm has 10 MB in 1,000 files at every size.{size}",
    )


def opening(pair: Pair, found: dict[str, Times], why: str) -> Table:
    """The opening question's sizes, for which the document has no figures."""
    rows = []
    for kind in ("write", "read"):
        for files, name in (("one", pair.one_name), ("many", pair.many_name)):
            key = f"{kind}_{files}"
            cell = found[key].cell() if found else nothing("s", why)
            rows.append(Row(key, f"{name}, {kind}", {"python": cell}))
        ratio = found[f"{kind}_many"].over(found[f"{kind}_one"]) if found else nothing("ratio", why)
        rows.append(Row(f"{kind}_ratio", f"{pair.many_name} over {pair.one_name}, {kind}", {"python": ratio}))
    kept = found["read_kept"].cell() if found else nothing("s", why)
    rows.append(Row("read_kept", f"{pair.one_name}, read into memory that was kept", {"python": kept}))
    return Table(
        "question",
        "The sizes of the opening question",
        "what",
        (Column("python", "Python"),),
        tuple(rows),
        note="The document asks this and gives no figures for it.",
    )


_STEPS: Final = {
    "lookup": "name to address (stat)",
    "write create": "create",
    "write write": "write",
    "write close": "close after writing",
    "read open": "open for reading",
    "read read": "read",
    "read close": "close after reading",
    "missing": "open what does not exist",
}


def step_table(pair: Pair, steps: dict[str, Times]) -> Table | None:
    """Where the time of a file goes."""
    if not steps:
        return None
    rows = [
        Row(name.replace(" ", "_"), title, {"python": steps[name].cell()}) for name, title in _STEPS.items()
    ]
    return Table(
        "steps",
        f"One file of {format_bytes(pair.each, decimal=True)}, step by step",
        "step",
        (Column("python", "Python, a file"),),
        tuple(rows),
        note="Unbuffered, so that each step is one system call with what Python does around it. The clock's own 0.1 us is in each.",
    )


def habit_table(others: dict[str, Times]) -> Table | None:
    """What buffering and keeping save."""
    if not others:
        return None
    titles = {
        "buffered": "reads of 10 bytes through Python's buffer",
        "unbuffered": "the same without a buffer (a system call each)",
        "again": "one file opened and read again and again",
        "kept": "read once, then copied from memory as often",
    }
    rows = [Row(name, title, {"python": others[name].cell()}) for name, title in titles.items()]
    rows += [
        Row(
            "buffer_ratio",
            "without a buffer over with one",
            {"python": others["unbuffered"].over(others["buffered"])},
        ),
        Row("keep_ratio", "again and again over kept", {"python": others["again"].over(others["kept"])}),
    ]
    return Table(
        "habits", "Buffering, and keeping what was read", "what", (Column("python", "Python"),), tuple(rows)
    )


def disk_table(
    pair: Pair, found: dict[str, Times], durable: dict[str, Times], cold: dict[str, Times]
) -> Table | None:
    """The disk itself, which the document's program may never reach; and files in another order."""
    rows = []
    if durable:
        rows += [
            Row("flushed_one", f"{pair.one_name}, write and fsync", {"python": durable["one"].cell()}),
            Row(
                "flushed_many", f"{pair.many_name}, write and fsync each", {"python": durable["many"].cell()}
            ),
            Row(
                "flushed_ratio", "many over one, with fsync", {"python": durable["many"].over(durable["one"])}
            ),
        ]
    if found:
        rows.append(
            Row(
                "warm_scattered",
                f"{pair.many_name}, read in another order, from the cache",
                {"python": found["read_scattered"].cell()},
            )
        )
    if cold:
        part = part_of(pair)
        rows += [
            Row(
                "cold_one",
                f"{part.one_name}, read after the cache was asked to forget it",
                {"python": cold["one"].cell()},
            ),
            Row(
                "cold_many",
                f"{part.many_name}, the same, in the order of writing",
                {"python": cold["many"].cell()},
            ),
            Row(
                "cold_scattered",
                f"{part.many_name}, the same, in another order",
                {"python": cold["scattered"].cell()},
            ),
            Row("cold_ratio", "many over one, forgotten", {"python": cold["many"].over(cold["one"])}),
            Row(
                "order_ratio",
                "another order over the order of writing",
                {"python": cold["scattered"].over(cold["many"])},
            ),
        ]
    if not rows:
        return None
    return Table(
        "disk",
        "What the document's program leaves out: flushing, cold files, another order",
        "what",
        (Column("python", "Python"),),
        tuple(rows),
        note="Of the many flushed files a twentieth was written, and the time is that times 20. Forgotten: the kernel was asked page by page that nothing of any file's contents was left; names and inodes stay in memory.",
    )


def answer(pair: Pair, found: dict[str, Times], second: Pair, question: dict[str, Times]) -> tuple[str, ...]:
    """The short answer."""
    if not found:
        return ("Nothing could be written here, so there is no answer from this machine.",)
    write, read = found["write_many"].over(found["write_one"]), found["read_many"].over(found["read_one"])
    said = [
        f"Here {pair.many_name} take {words.ratio(write)} as long to write as {pair.one_name}, and {words.ratio(read)}"
        " as long to read back from the cache."
    ]
    if question:
        mine = (
            question["write_many"].over(question["write_one"]),
            question["read_many"].over(question["read_one"]),
        )
        said.append(
            f"{second.many_name}, as in the question, take {words.ratio(mine[0])} as long to write as {second.one_name}, and {words.ratio(mine[1])} as long to read."
        )
    a_file = (found["write_many"].median - found["write_one"].median) / pair.files
    if (write.low or 0.0) > 1:
        said.append(
            f"Each file costs {format_ns(a_file * 1e9)} beyond the writing of its bytes, however few they are: the fewer it has, the larger that share of its time."
        )
    return tuple(said)


def reasons(
    pair: Pair,
    found: dict[str, Times],
    steps: dict[str, Times],
    others: dict[str, Times],
    cold: dict[str, Times],
) -> list[str]:
    """Causes, with their size here."""
    said = []
    if steps:
        whole = sum(steps[f"write {name}"].median for name in ("create", "write", "close"))
        create = steps["write create"].median
        said.append(
            f"Creating: a new name must be entered in the directory and a new inode found. That is {format_ns(create * 1e9)} a"
            f" file here, {format_percent(create / whole)} of writing one of {format_bytes(pair.each, decimal=True)}; one large file pays it once."
        )
        fetch = sum(steps[f"read {name}"].median for name in ("open", "read", "close"))
        fixed = fetch - steps["read read"].median
        said.append(
            f"Opening: the name is looked up ({format_ns(steps['lookup'].median * 1e9)} when all of it is in memory), a file object is"
            f" made, and closed again: {format_ns(fixed * 1e9)} of {format_ns(fetch * 1e9)} a file. To be told that a file"
            f" does not exist costs {format_ns(steps['missing'].median * 1e9)}: the look-up, and Python's exception."
        )
    if others:
        ratio = others["unbuffered"].over(others["buffered"])
        said.append(
            f"Python's buffer does for small reads what one large file does for small files: without it, reads of 10 bytes take {words.ratio(ratio)} as long."
        )
    if cold:
        order = cold["scattered"].over(cold["many"])
        verdict = (
            "more than the repeats differ"
            if (order.low or 0.0) > 1
            else "less than in order"
            if (order.high or 0.0) < 1
            else "no more than the repeats differ"
        )
        said.append(
            f"Order: files read in another order than they were written take {words.ratio(order)} as long once the cache was asked to forget them, {verdict}. A disk with a moving head would pay a seek for each file."
        )
    if found:
        read = found["read_many"].over(found["read_one"])
        published = PUBLISHED["read_ratio"].value
        if (
            read.number
            and pair.total == 10_000_000
            and max(read.number / published, published / read.number) > APART
        ):
            a_file, theirs = found["read_many"].median / pair.files, PUBLISHED["read_many"].value / 1000
            coldest = (
                f" Data that the cache was asked to forget costs {format_ns(cold['many'].median / part_of(pair).files * 1e9)} a file here."
                if cold
                else ""
            )
            said.append(
                f"The published ratio for reading, {PUBLISHED['read_ratio'].text}, is not what this machine shows: {words.ratio(read)}. Its 2.5 s are {format_ns(theirs * 1e9)} a"
                f" file, {theirs / a_file:.0f} times what one costs here, and 17 times what writing it cost there.{coldest} The reason is unknown: the document does"
                " not say on which system it ran. A program that examines every file when it is opened (a virus scanner) would fit; nothing measured here can tell."
            )
    return said


def misled(
    found: dict[str, Times], durable: dict[str, Times], question: dict[str, Times], pair: Pair, second: Pair
) -> list[Misled]:
    """Where the document misleads."""
    said = []
    if found and durable:
        rate = pair.total / found["write_one"].median
        real = pair.total / durable["one"].median
        said.append(
            Misled(
                "It writes without flushing and reads back at once, and gives the timings as those of an SSD.",
                f"Its 10 MB in 0.00198 s would be 5.1 GB/s. Here {pair.one_name} is “written” at {words.rate(rate)}; until it is on the disk (fsync) the rate is"
                f" {words.rate(real)}. The files are then read from the page cache: no disk is asked. What is compared is the fixed cost of a file, not disks.",
            )
        )
    if question:
        said += _about_the_question(question, second)
    if found:
        write = found["write_many"].over(found["write_one"])
        said.append(
            Misled(
                "It says that repeated runs keep the order of magnitude, and shows one run.",
                f"Here the ratio for writing was {words.ratio(write)} in {write.repeats} rounds.",
            )
        )
    return said


def _about_the_question(found: dict[str, Times], pair: Pair) -> list[Misled]:
    """Whether the premise of the opening question holds here."""
    write, read = found["write_many"].over(found["write_one"]), found["read_many"].over(found["read_one"])
    kept = found["read_one"].over(found["read_kept"])
    return [
        Misled(
            "It asks why one file of 100 MB is faster than 100 of 1 MB, and measures 10 MB in 1,000 files instead.",
            f"Here {pair.many_name} took {words.ratio(write)} as long to write as {pair.one_name}, and {words.ratio(read)} as long to read: {_premise(write, read)}"
            f" The larger the files, the less of their time is the fixed cost. Reading one large file at once has a cost of its own: new memory of its whole size."
            f" Read into memory that was kept, it is faster by a factor of {words.plain(kept.number or 0.0)} here.",
        )
    ]


def _premise(write: Cell, read: Cell) -> str:
    slower = [name for name, cell in (("writing", write), ("reading", read)) if (cell.low or 0.0) > 1]
    if len(slower) == 2:
        return "the premise holds here."
    if slower:
        return f"the premise holds here for {slower[0]} only."
    return "the premise does not hold here beyond what the rounds differ."


def answers(found: dict[str, Times], steps: dict[str, Times], others: dict[str, Times]) -> list[Answer]:
    """The document's statements that can be tested here."""
    said = []
    if others:
        ratio = others["again"].over(others["kept"])
        said.append(
            Answer(
                "Does reading the same file again and again cost even more than reading many files?",
                f"Against keeping it: {words.ratio(ratio)} as long here. Against as many different files:"
                f" {words.plain(others['again'].median / found['read_many'].median)} times as long,"
                " so an “even greater overhead” it is not; the larger ratio comes from what it is compared with."
                if found
                else f"Against keeping it: {words.ratio(ratio)} as long here.",
            )
        )
    if steps:
        said.append(
            Answer(
                "What does it cost to turn a name into an address on the disk?",
                f"{format_ns(steps['lookup'].median * 1e9)} a name when directory and inode are in memory, {format_ns(steps['missing'].median * 1e9)} when there is no such file and an exception is raised.",
            )
        )
    return said


def picture(pair: Pair, found: dict[str, Times], core: dict[str, Cell]) -> Picture:
    """The four timings, both arms, with the published ones."""
    titles = {
        "write_one": f"{pair.one_name}, write",
        "write_many": f"{pair.many_name}, write",
        "read_one": f"{pair.one_name}, read",
        "read_many": f"{pair.many_name}, read",
    }
    marks = []
    for name in _PASSES:
        times = found[name]
        marks.append(times.cell().mark(titles[name], "Python, here"))
        cell = core.get(name)
        if cell is not None and cell.number is not None and pair.total == 10_000_000:
            marks.append(cell.mark(titles[name], "native, here"))
        if pair.total == 10_000_000:
            marks.append(Mark(titles[name], PUBLISHED[name].value, "published"))
    return Picture(
        "four_timings",
        "How long do the same bytes take in one file and in many?",
        "bars",
        "time of all files together",
        "s",
        tuple(marks),
        caption="Medians; the thin lines go from the smallest to the largest of the repeats. Each step of the axis is ten times the one before.",
    )


def native_passes(run: Run) -> dict[str, Cell]:
    """The same six figures from the probe: all files together, seconds."""
    found: dict[str, Cell] = {}
    names = {"write": "write", "read-warm": "read"}
    for record in run.select("storage.files", engine="psync", sync=None):
        point, total = record.point, record.finding("total_s")
        means = record.finding("block_means_ns")
        kind = names.get(point.operation or "")
        if (
            kind is None
            or point.files not in {1, 1000}
            or not isinstance(total, float)
            or record.value is None
        ):
            continue
        blocks = (
            [value for value in means if isinstance(value, int | float)] if isinstance(means, list) else []
        )
        spread = [value * point.files / 1e9 for value in blocks] or [total]
        found[f"{kind}_{'one' if point.files == 1 else 'many'}"] = Cell(
            "s", total, min(total, *spread), max(total, *spread), len(spread)
        )
    for kind in ("write", "read"):
        one, many = found.get(f"{kind}_one"), found.get(f"{kind}_many")
        if one is not None and many is not None and one.number and many.number:
            found[f"{kind}_ratio"] = Cell("ratio", many.number / one.number, why="of the two times above")
    return found
