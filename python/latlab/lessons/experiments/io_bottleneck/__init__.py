"""Counting words: how much of the time is I/O, in several languages."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from latlab.lessons import words as told
from latlab.lessons.bench import (
    PLAIN,
    Bench,
    Cannot,
    Times,
    available_memory,
    in_turns,
    nothing,
    own_folder,
    reason_of,
    time_left,
)
from latlab.lessons.cache import NOT_KEPT, brought_in, why_not_cold
from latlab.lessons.compiled import built
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
    Unit,
)
from latlab.lessons.native import PLAIN_BLOCK, disk_rate, nearest_block
from latlab.lessons.processes import last_words, run_whole
from latlab.lessons.programs import disk_speed, words_text
from latlab.text import clean
from latlab.units import format_bytes, format_count, format_ns, format_percent

if TYPE_CHECKING:
    from latlab.run.run import Run

QUESTION = "What's the performance bottleneck in your program?"
ORIGIN = "an article, “I/O is no longer the bottleneck”"
PROGRAMS = (
    "words.py",
    "words_simple.go",
    "words_optimised.go",
    "words.rs",
    "words.c",
    "words_text.py",
    "disk_speed.py",
)
#: It counts the words of a file of the user's, where one is named.
TAKES_FILE = True
GUESS = Guess(
    "How much of the time of the simple Go program is reading the file, in percent?",
    "share.go_simple.reading",
    Published("14%", 0.14),
)
ORIGINAL_TAKES: Final = Original(
    600,
    27e9,
    "seven programs count a text of 413 MB three times, from the page cache and past it, and files of 4 GiB are written and read",
)
STAGES: Final = ("reading", "processing", "sorting", "outputting")
COPIES: Final = {"small": 1, "default": 3, "original": 100}
_COPY_BYTES: Final = {
    "small": 400_000,
    "default": words_text.BYTES,
    "original": words_text.BYTES,
}
_ROUNDS: Final = {"small": 2, "default": 3, "original": 3}
_DISK_MIB: Final = {"small": 8, "default": 256, "original": 4096}
#: All words, and out of how many different ones they are drawn.
_SORTED: Final = {
    "small": (20_000, (100, 20_000)),
    "default": (400_000, (1_000, 10_000, 100_000, 400_000)),
    "original": (1_000_000, (1_000, 10_000, 100_000, 1_000_000)),
}
_LONGEST_S: Final = {"small": 60.0, "default": 120.0, "original": 1800.0}
#: Rounds are left out where they would take longer than this: a slow machine is to come to its end too.
_COUNTING_S: Final = {"small": 20.0, "default": 20.0, "original": math.inf}
_SORTING_S: Final = {"small": 5.0, "default": 8.0, "original": 60.0}
_DISK_S: Final = {"small": 5.0, "default": 8.0, "original": 120.0}
#: With what the quick profile may write there would be nothing left for writes that are not flushed.
_NATIVE_BYTES: Final = {"small": 1 << 29, "default": 1 << 30, "original": 1 << 30}
_NATIVE_S: Final = {"small": 1.5, "default": 8.0, "original": 30.0}
#: With longer ones a round takes more than some seconds: each program is told.
_LONG_TEXT: Final = 100_000_000
_MOST_FILE: Final = 1 << 36
_ALL_SORTED: Final = 50_000
#: With fewer samples in a stage of a program nothing is said of what it is made of.
_FEWEST_SAMPLES: Final = 30
#: Half of the time: what takes more is the bottleneck.
HALF: Final = 0.5
CACHED, COLD = "cached", "cold"
_SORT: Final = "sorting, by the number of different words"


@dataclass(frozen=True, slots=True)
class Arm:
    """One program.

    Attributes:
        name: For programs.
        title: For people.
        language: Of it.
        way: A way of `words.py`, or the file that is built.
        memory: The most memory that it takes, for each byte of the text.
    """

    name: str
    title: str
    language: str
    way: str
    memory: float = 0.5


ARMS: Final = (
    Arm("python_simple", "Python", "python", "simple", 20.0),
    Arm("go_simple", "Go (simple)", "go", "words_simple.go", 10.0),
    Arm("go_optimised", "Go (optimised)", "go", "words_optimised.go"),
    Arm("python_lines", "Python (line by line)", "python", "by-line"),
    Arm("python_optimised", "Python (optimised)", "python", "optimised"),
    Arm("rust", "Rust", "rust", "words.rs"),
    Arm("c", "C", "c", "words.c"),
)
ONLY_READ: Final = Arm("only_read", "Python (only reading the lines)", "python", "only-read")
NEWLINES: Final = Arm("newlines", "Python (only counting the lines)", "python", "newlines")
_ALL: Final = (*ARMS, ONLY_READ, NEWLINES)
#: Reading line by line is told apart by a second program, which cannot be done where the disk is waited for.
_TAKES_TURNS: Final = ("python_lines", "only_read")
TITLES: Final = {arm.name: arm.title for arm in _ALL}
ORIGINAL: Final = ("python_simple", "go_simple", "go_optimised")
OTHERS: Final = ("python_lines", "python_optimised", "rust", "c")

PUBLISHED: Final = {
    "python_simple": ("0.384", "7.980", "0.005", "0.010", "8.386"),
    "go_simple": ("0.499", "3.492", "0.002", "0.009", "4.000"),
    "go_optimised": ("0.154", "2.249", "0.002", "0.010", "2.414"),
}
PUBLISHED_SHARE: Final = {"go_simple": Published("14%", 0.14), "go_optimised": Published("7%", 0.07)}
PUBLISHED_DISK: Final = {
    "read_cold": Published("1.7 GB/s", 1.7e9),
    "read_cached": Published("10.8 GB/s", 10.8e9),
    "write_sync": Published("1.2 GB/s", 1.2e9),
    "write": Published("1.6 GB/s", 1.6e9),
}
OPTIMISED: Final = Published("7.5 seconds", 7.5)


@dataclass(frozen=True, slots=True)
class Text:
    """What is counted, and what must come out.

    Attributes:
        path: The file.
        size: Its bytes.
        words: How many, with repetitions.
        distinct: How many different ones.
        lines: How many.
        check: Of the counts: see `checksum`.
        cold_why: Why it cannot be read past the cache; empty where it can.
        note: What must be known of it.
    """

    path: Path
    size: int
    words: int
    distinct: int
    lines: int
    check: tuple[int, int]
    cold_why: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """One run of a program: seconds of the whole process and of each stage."""

    seconds: float
    stages: Mapping[str, float]
    peak_bytes: int | None = None

    @property
    def total(self) -> float:
        """All stages together, which is what the article calls the total."""
        return sum(self.stages.values())

    def of(self, stage: str) -> float:
        """One stage; `total` and `process` are all of them and the whole process."""
        if stage in {"total", "process"}:
            return self.total if stage == "total" else self.seconds
        return self.stages.get(stage, 0.0)

    def share(self, *stages: str) -> float:
        """Of the total."""
        return sum(self.of(stage) for stage in stages) / self.total


Runs = dict[tuple[str, str], tuple[Heard, ...]]
Ledgers = dict[str, tuple[str, dict[str, Any]]]


def run(bench: Bench) -> Told:
    """The disk, the text, the programs, sorting, the ledger; then the probes."""
    with Workshop(bench) as shop:
        what_text = f"the text: {shop.announced}"
        text = bench.attempt(what_text, shop.make_text)
        disk = bench.attempt("the speed of the disk", lambda: disk_times(bench)) or {}
        calls = bench.attempt("reading by system calls of several sizes", lambda: call_times(bench)) or {}
        programs = shop.build()
        runs: Runs = {} if text is None else shop.count(programs, text)
        sorting = bench.attempt(_SORT, lambda: shop.sort(programs)) or {}
        ledgers = {} if text is None or bench.plain else shop.explain(programs, text)
    what_native = "the native arm (probes storage.read.sequential, storage.write.sequential)"
    native = bench.native(
        what_native,
        "storage.read.sequential,storage.write.sequential",
        profile="quick",
        budget=_NATIVE_S[bench.size],
        max_bytes=_NATIVE_BYTES[bench.size],
    )
    runs = with_lines_apart(runs)
    why = functools.partial(_why, bench, what_text)
    claims = claim_table(runs, why)
    shares = share_table(runs, ledgers, why)
    disk_speeds = disk_table(
        bench.size, disk, native, bench.why("the speed of the disk"), bench.why(what_native)
    )
    moved = movement_table(runs, cold_rate(bench.size, disk), text, why)
    tables = [
        disk_speeds,
        stage_table("original", ORIGINAL, runs, text, why),
        shares,
        stage_table("others", OTHERS, runs, text, why),
        claims,
        text_table(text, why("")),
        sorting_table(sorting, bench.size, functools.partial(_why, bench, _SORT)),
        moved,
        call_table(calls, bench.why("reading by system calls of several sizes")),
        *((ledger_table(ledgers),) if ledgers else ()),
    ]
    return Told(
        answer=answer(runs, text, shares),
        tables=tuple(tables),
        pictures=tuple(pictures(bench.size, runs, sorting, disk)),
        reasons=tuple(reasons(runs, ledgers, text, claims, cold_rate(bench.size, disk))),
        misled=tuple(misled(runs, ledgers)),
        answers=tuple(answers(runs, sorting, ledgers, text, claims, calls, cold_rate(bench.size, disk))),
        further=(
            "latlab lesson io-bottleneck --file YOUR.txt: your own text; --dir DIR: your slowest disk or network share",
            "latlab explain --best-of 3 -- PROGRAM: the same question, asked of a program of yours",
            'latlab stages go (c, rust, lines): how a program marks its stages; in Python with latlab.stage("read"):',
            "latlab lesson block-size: when the size of reads matters",
        ),
        series=tuple(series(sorting)),
        charts=("storage_blocks",),
    )


def _why(bench: Bench, whole: str, name: str, state: str = "") -> str:
    """Why a program has no figure: its text, or the whole part; its building; its run in that state."""
    title = TITLES.get(name, "")
    found = [bench.why(whole), bench.why(title), bench.why(f"{title}, {state}")]
    if state == COLD and name in _TAKES_TURNS:
        found.append("reading takes turns with processing, and the kernel reads ahead meanwhile")
    if state == CACHED and name == "python_lines":
        found.append("no run told what reading alone takes of it")
    return next(filter(None, found), "it was not run")


class Workshop:
    """A folder with the text and the programs, on the disk that is measured where that can be written."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._held = contextlib.ExitStack()
        try:
            bench.room(2 * self._size)
            self.folder, self.off_disk = bench.folder, ""
        except (OSError, Cannot) as error:
            why = reason_of(error) if isinstance(error, OSError) else str(error)
            self.folder = self._held.enter_context(own_folder(Path(tempfile.gettempdir())))
            self.off_disk = f"the text lies in the temporary directory: {why}"
        self.numbers = itertools.count()

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.close()

    @property
    def _size(self) -> int:
        """Bytes of the text."""
        file = self.bench.file
        own = COPIES[self.bench.size] * _COPY_BYTES[self.bench.size]
        return own if file is None else file.stat().st_size

    @property
    def announced(self) -> str:
        """What is going to be counted."""
        size = format_bytes(self._size, decimal=True)
        if self.bench.file is not None:
            return f"your file, {size}"
        copies = COPIES[self.bench.size]
        return f"{size}, {copies} {'copy' if copies == 1 else 'copies'} of one that is made here"

    # ------------------------------------------------------------------------------------------------ the text

    def make_text(self) -> Text:
        """Writes the text, until it is on the disk."""
        path = self.folder / "text"
        if self.bench.file is not None:
            return self._own_text(self.bench.file, path)
        copies, size = COPIES[self.bench.size], _COPY_BYTES[self.bench.size]
        self._room(copies * size)
        copy, tally = words_text.one_copy(size)
        words_text.write_copies(path, copy, copies)
        counts = {word.encode(): count * copies for word, count in tally.items()}
        return self._text(path, counts, copy.count(b"\n") * copies)

    def _own_text(self, source: Path, path: Path) -> Text:
        """A copy of the user's file in ASCII, on whose words all languages agree."""
        size = source.stat().st_size
        if size > _MOST_FILE:
            raise Cannot(
                f"the file has {format_bytes(size)}: more than {format_bytes(_MOST_FILE)} is not counted"
            )
        self._room(size)
        counts: Counter[bytes] = Counter()
        lines = replaced = 0
        with source.open("rb") as file, path.open("wb") as target:
            for line in _pieces(file):
                plain = line.translate(_TO_ASCII)
                replaced += len(line) - len(line.translate(None, _NOT_ASCII))
                target.write(plain)
                counts.update(plain.lower().split())
                lines += plain.count(b"\n")
            target.flush()
            os.fsync(target.fileno())
        if not counts:
            raise Cannot("there is not one word in the file")
        note = "Your own file, copied to the disk that is measured."
        if replaced:
            note += f" In the copy {format_count(replaced)} bytes that are not ASCII are the letter x: on those the languages do not agree what a word is."
        return self._text(path, counts, lines, note)

    def _text(self, path: Path, counts: Mapping[bytes, int], lines: int, note: str = "") -> Text:
        check = checksum(b"%b %d" % each for each in counts.items())
        cold = self.off_disk or why_not_cold(path)
        return Text(path, path.stat().st_size, sum(counts.values()), len(counts), lines, check, cold, note)

    def _room(self, needed: int) -> None:
        if not self.off_disk:
            self.bench.room(2 * needed)
        elif shutil.disk_usage(self.folder).free < 2 * needed:
            raise Cannot(
                f"neither the disk nor the temporary directory has room for {format_bytes(2 * needed)}"
            )

    # ------------------------------------------------------------------------------------------- the programs

    def build(self) -> dict[str, list[str]]:
        """The command of each program that can be run here."""
        here = Path(words_text.__file__).parent
        commands = {
            arm.name: [sys.executable, str(here / "words.py"), arm.way]
            for arm in _ALL
            if arm.language == "python"
        }
        compiled = [arm for arm in ARMS if arm.language != "python"]
        if self.bench.plain:
            for arm in compiled:
                self.bench.lacks(arm.title, PLAIN)
            return commands
        self.bench.tell("building the programs")
        with ThreadPoolExecutor(len(compiled)) as pool:
            building = {
                arm: pool.submit(built, arm.language, here / arm.way, self.folder / arm.name)
                for arm in compiled
            }
        for arm, future in building.items():
            program = self.bench.attempt(arm.title, future.result, told=False)
            if program is not None:
                commands[arm.name] = [str(program)]
        return commands

    # --------------------------------------------------------------------------------------------- running them

    def count(self, programs: Mapping[str, Sequence[str]], text: Text) -> Runs:
        """Each program a few times, from the page cache and past it; the order turns round each time."""
        if text.cold_why:
            self.bench.lacks("reading past the cache", text.cold_why)
            for arm in _ALL:
                self.bench.keep_why(f"{arm.title}, {COLD}", text.cold_why)
        states = (CACHED,) if text.cold_why else (CACHED, COLD)
        live = [
            (arm, state)
            for arm in _ALL
            for state in states
            if arm.name in programs and not (state == COLD and arm.name in _TAKES_TURNS)
        ]
        found: dict[tuple[str, str], list[Heard]] = {(arm.name, state): [] for arm, state in live}
        rounds, begun = _ROUNDS[self.bench.size], time.perf_counter()
        for number, (arm, state) in enumerate(in_turns(live, rounds, _COUNTING_S[self.bench.size])):
            done, place = divmod(number, len(live))
            if place == 0:
                left = f", {time_left(begun, done, rounds)}" if done else ""
                self.bench.tell(f"counting words, round {done + 1} of {rounds}{left}")
            if (arm.name, state) in found:
                if text.size >= _LONG_TEXT:
                    self.bench.tell(f"  {arm.title}, {'' if state == CACHED else 'not '}cached")
                work = functools.partial(self.once, arm, programs[arm.name], text, state)
                heard = self.bench.attempt(f"{arm.title}, {state}", work, told=False)
                if heard is None:
                    del found[arm.name, state]
                else:
                    found[arm.name, state].append(heard)
        return {each: tuple(heard) for each, heard in found.items()}

    def once(self, arm: Arm, command: Sequence[str], text: Text, state: str) -> Heard:
        """One run: its stages, and whether its counts are right.

        Raises:
            Cannot: they are not, or there is not enough memory.
        """
        free, needed = available_memory(), int(arm.memory * text.size)
        if free is not None and free < needed:
            raise Cannot(
                f"it needs about {format_bytes(needed)} of memory for this text, and {format_bytes(free)} are free"
            )
        prepare(text.path, state)
        kind = "plain" if self.bench.plain else "marks"
        answer = self.folder / f"answer-{next(self.numbers)}"
        listening = Path(words_text.__file__).parent.parent / "listening.py"
        output, errors = self._started(
            # latlab is on the path that it is given: no `site` is needed.
            [sys.executable, "-S", str(listening), kind, str(answer), *command],
            text.path,
            _LONGEST_S[self.bench.size],
        )
        found = json.loads(answer.read_text(encoding="utf-8"))
        answer.unlink()
        if found["code"]:
            raise Cannot(f"the program ended with {found['code']}: {_said(errors)}")
        if found.get("missed"):
            raise Cannot(f"{found['missed']} marks of its stages were lost: the machine is too busy")
        stages = found["stages"] if kind == "marks" else _spoken(errors)
        check_output(arm, output, text)
        return Heard(found["seconds"], _stages(stages), found["peak_bytes"])

    def _started(self, command: Sequence[str], source: Path, longest: float) -> tuple[bytes, bytes]:
        """Runs a command on the file, and returns what it wrote; ends it, and what it started, when it takes too long."""
        out, err = self.folder / "output", self.folder / "errors"
        with source.open("rb") as stdin, out.open("wb") as stdout, err.open("wb") as stderr:
            code = run_whole(
                command, longest, stdin=stdin, stdout=stdout, stderr=stderr, environment=os.environ
            )
        errors = err.read_bytes()
        if code:
            raise Cannot(f"the program ended with {code}: {_said(errors)}")
        return out.read_bytes(), errors

    def sort(self, programs: Mapping[str, Sequence[str]]) -> dict[tuple[str, int], tuple[Heard, ...]]:
        """Texts of as many words out of ever more different ones."""
        size, asked = _SORTED[self.bench.size]
        arms = [arm for arm in ARMS if arm.name in programs and arm.name in {"python_simple", "go_optimised"}]
        texts = []
        self._room(16 * size)
        for distinct in asked:
            made, tally = words_text.of_many_words(size, distinct)
            path = self.folder / f"many-{distinct}"
            words_text.write_copies(path, made, 1)
            counts = {word.encode(): count for word, count in tally.items()}
            texts.append(self._text(path, counts, made.count(b"\n")))
        found: dict[tuple[str, int], list[Heard]] = {
            (arm.name, text.distinct): [] for text in texts for arm in arms
        }
        for text, arm in self.bench.turns(
            [(text, arm) for text in texts for arm in arms],
            _ROUNDS[self.bench.size],
            _SORTING_S[self.bench.size],
        ):
            if (arm.name, text.distinct) in found:
                work = functools.partial(self.once, arm, programs[arm.name], text, CACHED)
                heard = self.bench.attempt(f"{arm.title}, {_sorted(text.distinct)}", work, told=False)
                if heard is None:
                    del found[arm.name, text.distinct]
                else:
                    found[arm.name, text.distinct].append(heard)
        return {each: tuple(heard) for each, heard in found.items()}

    def explain(self, programs: Mapping[str, Sequence[str]], text: Text) -> Ledgers:
        """Where the wall time of each program goes, by `latlab explain`."""
        names = ORIGINAL[-1:] if self.bench.size == "small" else (*ORIGINAL, *OTHERS[1:])
        state = CACHED if text.cold_why else COLD
        found: Ledgers = {}
        for arm in ARMS:
            if arm.name in names and arm.name in programs:
                work = functools.partial(self._explained, arm, programs[arm.name], text, state)
                ledger = self.bench.attempt(f"latlab explain: {arm.title}", work)
                if ledger is not None:
                    found[arm.name] = (state, ledger)
        return found

    def _explained(self, arm: Arm, command: Sequence[str], text: Text, state: str) -> dict[str, Any]:
        prepare(text.path, state)
        answer = self.folder / "ledger.json"
        explain = [
            sys.executable,
            "-m",
            "latlab",
            "explain",
            "--no-limits",
            "--runs",
            "1",
            "--json",
            str(answer),
            "--",
        ]
        output, _ = self._started([*explain, *command], text.path, _LONGEST_S[self.bench.size] + 30)
        check_output(arm, output, text)
        ledger: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        if not ledger["stages"] or not ledger["closure"]["holds"]:
            raise Cannot("the ledger has no stages, or does not close")
        return ledger


_NOT_ASCII: Final = bytes(range(128, 256))
#: White space is a blank or the end of a line: some languages have more kinds of it than others.
_TO_ASCII: Final = bytes(
    ord("x") if each >= 128 else each if each in b"\n" or not (9 <= each <= 13 or 28 <= each <= 31) else 32
    for each in range(256)
)


def _pieces(file: Any) -> Iterable[bytes]:  # noqa: ANN401 - a binary file
    """Its content in pieces that end between words, the last with the end of a line."""
    rest = b""
    while chunk := file.read(1 << 20):
        piece = rest + chunk
        end = max(piece.rfind(b" "), piece.rfind(b"\n")) + 1
        rest = piece[end:]
        yield piece[:end]
    if rest:
        yield rest + b"\n"


def _said(errors: bytes) -> str:
    return last_words(errors) or "it says nothing"


def _sorted(distinct: int) -> str:
    """What a program does with a text of so many different words."""
    return f"sorting {distinct:,} different words"


def _spoken(errors: bytes) -> dict[str, float]:
    """The stages that a Python program tells itself."""
    pairs = (line.split() for line in errors.decode().splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in STAGES}


def _stages(found: Mapping[str, float]) -> dict[str, float]:
    if not any(found.get(stage) for stage in STAGES):
        raise Cannot("no stage of it was heard")
    return {stage: found.get(stage, 0.0) for stage in STAGES}


def checksum(lines: Iterable[bytes]) -> tuple[int, int]:
    """How many lines, and a sum that depends on each of them and not on their order; of this process only."""
    kept = list(lines)
    return len(kept), sum(map(hash, kept))


def check_output(arm: Arm, output: bytes, text: Text) -> None:
    """Looks whether the counts are those of the text, and the most frequent first.

    Raises:
        Cannot: they are not.
    """
    lines = output.splitlines()
    if arm in {ONLY_READ, NEWLINES}:
        if lines != [b"lines %d" % text.lines]:
            raise Cannot(
                f"its counts are wrong: {clean(output[:60].decode('utf-8', 'replace'))!r} for {text.lines:,} lines"
            )
        return
    if checksum(lines) != text.check:
        raise Cannot(
            f"its counts are wrong: {len(lines):,} different words of {text.distinct:,}, or other counts of them"
        )
    # Of very many different words only the ends are looked at.
    shown = lines if len(lines) <= _ALL_SORTED else lines[:1000] + lines[-1000:]
    counts = [int(line.rpartition(b" ")[2]) for line in shown]
    if counts != sorted(counts, reverse=True):
        raise Cannot("its output is wrong: the most frequent words do not come first")


def prepare(path: Path, state: str) -> None:
    """Puts the file into the page cache, or out of it; and looks whether it is there.

    Raises:
        Cannot: the cache does not do as asked.
    """
    if state == CACHED:
        if not brought_in(path):
            raise Cannot(NOT_KEPT)
        return
    why = why_not_cold(path)
    if why:
        raise Cannot(why)


# ----------------------------------------------------------------------------------------------------------
# the disk


def disk_times(bench: Bench) -> dict[str, Times]:
    """Seconds for one large file: written with and without sync, read past the cache and from it."""
    size = _DISK_MIB[bench.size] << 20
    bench.room(size)
    path, found = bench.folder / "disk", dict[str, list[float]]()
    data = disk_speed.blocks(_DISK_MIB[bench.size])
    try:
        for kind in bench.turns(("write_sync", "write", "read"), 3, _DISK_S[bench.size]):
            if kind != "read":
                found.setdefault(kind, []).append(disk_speed.write(path, data, sync=kind == "write_sync"))
                # What is left to be written must not disturb the next one.
                disk_speed.flush(path)
                continue
            if not why_not_cold(path):
                found.setdefault("read_cold", []).append(disk_speed.read(path))
            if brought_in(path):
                found.setdefault("read_cached", []).append(disk_speed.read(path))
    finally:
        path.unlink(missing_ok=True)
    return {name: Times(tuple(values)) for name, values in found.items()}


_BLOCKS: Final = (4 << 10, 64 << 10, 1 << 20)


def call_times(bench: Bench) -> dict[int, Times]:
    """Seconds to read a cached file by calls of each size."""
    size = min(_DISK_MIB[bench.size], 64)
    bench.room(size << 20)
    path = bench.folder / "calls"
    try:
        disk_speed.write(path, disk_speed.blocks(size), sync=False)
        if not brought_in(path):
            raise Cannot(NOT_KEPT)
        arms = {str(block): functools.partial(disk_speed.read, path, block) for block in _BLOCKS}
        return {
            int(name): Times(tuple(value / (size << 20) for value in times.values))
            for name, times in bench.times(arms, 3).items()
        }
    finally:
        path.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------------------
# what is told

Why = Callable[..., str]


def with_lines_apart(runs: Runs) -> Runs:
    """Line by line, reading apart from processing: by the runs that only read the lines.

    A pair whose reading alone took longer than both together was disturbed, and does not tell them apart.
    """
    found = dict(runs)
    whole, reading = found.pop(("python_lines", CACHED), ()), found.pop((ONLY_READ.name, CACHED), ())
    pairs = []
    for one, other in zip(whole, reading, strict=False):
        read, both = other.of("reading"), one.of("processing")
        if read < both:
            stages = {**one.stages, "reading": read, "processing": both - read}
            pairs.append(Heard(one.seconds, stages, one.peak_bytes))
    if pairs:
        found["python_lines", CACHED] = tuple(pairs)
    return found


def best(runs: Sequence[Heard]) -> Heard:
    """The fastest of them, by its stages together."""
    return min(runs, key=lambda each: each.total)


def _spread(
    runs: Sequence[Heard],
    unit: Unit,
    value: Callable[[Heard], float],
    *,
    published: Published | None = None,
    why: str = "",
) -> Cell:
    """A figure of the fastest run, with the smallest and largest of all."""
    values = [value(each) for each in runs]
    return Cell(unit, value(best(runs)), min(values), max(values), len(values), published, why)


def _of(stage: str, run: Heard) -> float:
    return run.of(stage)


def stage_table(name: str, names: Sequence[str], runs: Runs, text: Text | None, why: Why) -> Table:
    """Stages by program, best of three, as the article has it."""
    rows = []
    titles = {stage: stage.capitalize() for stage in STAGES} | {"total": "Total"}
    for number, (stage, title) in enumerate(titles.items()):
        cells = {}
        for each in names:
            published = (
                Published(f"{PUBLISHED[each][number]} s", float(PUBLISHED[each][number]))
                if each in PUBLISHED
                else None
            )
            if each == "python_optimised" and stage == "total":
                published = OPTIMISED
            heard = runs.get((each, CACHED))
            note = (
                "by a second program that only reads the lines"
                if each == "python_lines" and stage in {"reading", "processing"}
                else ""
            )
            cells[each] = (
                _spread(heard, "s", functools.partial(_of, stage), published=published, why=note)
                if heard
                else nothing("s", why(each, CACHED), published)
            )
        rows.append(Row(stage, title, cells))
    cells = {each: _process(runs.get((each, CACHED)), why(each, CACHED)) for each in names}
    rows.append(Row("process", "the whole process, from outside", cells))
    cells = {each: _cold(runs.get((each, COLD)), why(each, COLD)) for each in names}
    rows.append(Row("cold_reading", "Reading, when the file is not cached", cells))
    cells = {each: _peak(runs.get((each, CACHED)), why(each, CACHED)) for each in names}
    rows.append(Row("peak", "most memory", cells))
    size = "nothing" if text is None else format_bytes(text.size, decimal=True)
    published_of = (
        " The published figures are of 413 MB."
        if name == "original" and text is not None and text.size != 413_000_000
        else ""
    )
    return Table(
        name,
        f"Counting the words of {size}, best of {len(next(iter(runs.values()), ()))} runs"
        + ("" if name == "original" else ": further programs"),
        "stage",
        tuple(Column(each, TITLES[each]) for each in names),
        tuple(rows),
        original=name == "original",
        note=f"Of the fastest run (smallest – largest of all), the file in the page cache. Measured at this size.{published_of}",
    )


def _process(runs: Sequence[Heard] | None, why: str) -> Cell:
    return (
        _spread(runs, "s", lambda run: run.seconds, why="with starting and ending")
        if runs
        else nothing("s", why)
    )


def _cold(runs: Sequence[Heard] | None, why: str) -> Cell:
    return (
        _spread(runs, "s", lambda run: run.of("reading"), why="the cache was asked to drop it, and looked at")
        if runs
        else nothing("s", why)
    )


def _peak(runs: Sequence[Heard] | None, why: str) -> Cell:
    peaks = [run.peak_bytes for run in runs or () if run.peak_bytes is not None]
    if runs and not peaks:
        return nothing("bytes", "less than the interpreter that starts it: not told apart")
    if not peaks:
        return nothing("bytes", why)
    return Cell("bytes", float(max(peaks)), float(min(peaks)), float(max(peaks)), len(peaks))


def share_table(runs: Runs, ledgers: Ledgers, why: Why) -> Table:
    """What share of the time is I/O: by stages, and by the ledger."""
    rows = []
    for arm in ARMS:
        cached, cold = runs.get((arm.name, CACHED)), runs.get((arm.name, COLD))
        published = PUBLISHED_SHARE.get(arm.name)
        cells = {
            "reading": _spread(cached, "share", lambda run: run.share("reading"), published=published)
            if cached
            else nothing("share", why(arm.name, CACHED), published),
            "io": _spread(cached, "share", io_share) if cached else nothing("share", why(arm.name, CACHED)),
            "cold": _spread(cold, "share", io_share) if cold else nothing("share", why(arm.name, COLD)),
        }
        if ledgers:
            cells |= _from_ledger(ledgers.get(arm.name))
        rows.append(Row(arm.name, arm.title, cells))
    columns = [
        Column("reading", "reading"),
        Column("io", "reading and outputting"),
        Column("cold", "the same, file not cached"),
    ]
    if ledgers:
        columns += [Column("cpu", "kernel's CPU for files"), Column("waiting", "waiting for the disk")]
    return Table(
        "share",
        "What share of the time is I/O?",
        "program",
        tuple(columns),
        tuple(rows),
        note="Of all stages together. Reading as a stage is more than I/O: new memory, and decoding in Python. The ledger of latlab explain (one run, its share of wall time with start and end, the file not cached where that is possible) tells the kernel's work on files and waiting apart from that."
        if ledgers
        else "Of all stages together. Reading as a stage is more than I/O: new memory, and decoding in Python.",
    )


def io_share(run: Heard) -> float:
    """Reading and outputting."""
    return run.share("reading", "outputting")


def _from_ledger(found: tuple[str, dict[str, Any]] | None) -> dict[str, Cell]:
    """The two parts of I/O."""
    if found is None:
        why = "latlab explain was not run on it"
        return {"cpu": nothing("share", why), "waiting": nothing("share", why)}
    rows = _undivided(found[1]) | {row["name"]: row for row in found[1]["categories"]}
    cells = {}
    for name, category in (("cpu", "file-io-cpu"), ("waiting", "storage-wait")):
        row = rows.get(category, {"share": 0.0, "low": 0.0, "high": 0.0})
        low, high = min(row["low"], row["share"]), max(row["high"], row["share"])
        cells[name] = Cell(
            "share",
            row["share"],
            low,
            high,
            max(int(found[1]["observer"]["samples"]), 1),
            why=f"one run at level {found[1]['level']}, 95 % interval, file {found[0]}",
        )
    return cells


def _undivided(ledger: dict[str, Any]) -> dict[str, Any]:
    """What counts say of the kernel's work by category, if the ledger leaves that whole; else nothing."""
    rows = {row["name"]: row for row in ledger["categories"]}
    kernel = rows.get("kernel-cpu", {})
    return {} if "file-io-cpu" in rows else {each["name"]: each for each in kernel.get("within", ())}


def claim_table(runs: Runs, why: Why) -> Table:
    """What the article says in words, as ratios."""

    def ratio(one: str, other: str, published: Published | None = None) -> Cell:
        mine, theirs = runs.get((one, CACHED)), runs.get((other, CACHED))
        if not mine or not theirs:
            return nothing("ratio", why(one if not mine else other, CACHED), published)
        value = best(mine).total / best(theirs).total
        pairs = [a.total / b.total for a, b in zip(mine, theirs, strict=False)]
        low, high = min(value, *pairs), max(value, *pairs)
        return Cell("ratio", value, low, high, len(pairs), published, "of the totals above")

    rows = (
        Row(
            "lines_ratio",
            "Python line by line over all at once",
            {"here": ratio("python_lines", "python_simple")},
        ),
        Row(
            "optimised_ratio",
            "optimised Python over simple",
            {"here": ratio("python_optimised", "python_simple", Published("8.4 to 7.5 seconds", 7.5 / 8.4))},
        ),
        Row("go_ratio", "optimised Go over simple", {"here": ratio("go_optimised", "go_simple")}),
        Row("python_ratio", "simple Python over simple Go", {"here": ratio("python_simple", "go_simple")}),
    )
    return Table("claims", "How the programs compare", "what", (Column("here", "here"),), rows)


def text_table(text: Text | None, why: str) -> Table:
    """Both Ns."""
    why_shown = (
        "known from how it was made, and each program with a figure came to the same"
        if text and not text.note
        else "counted when it was copied, and each program with a figure came to the same"
    )

    def cell(unit: Unit, value: Callable[[Text], int], published: Published | None = None) -> Cell:
        return (
            nothing(unit, why, published)
            if text is None
            else Cell(unit, float(value(text)), published=published, why=why_shown)
        )

    rows = (
        Row("size", "bytes", {"here": cell("bytes", lambda text: text.size, Published("413MB", 413e6))}),
        Row(
            "words", "words, with repetitions (the first N)", {"here": cell("count", lambda text: text.words)}
        ),
        Row(
            "distinct", "different words (the second N)", {"here": cell("count", lambda text: text.distinct)}
        ),
        Row("lines", "lines", {"here": cell("count", lambda text: text.lines)}),
    )
    note = text.note if text else ""
    return Table("text", "The text that is counted", "what", (Column("here", "here"),), rows, note=note)


Sorting = dict[tuple[str, int], tuple[Heard, ...]]


def sorting_table(sorting: Sorting, size: str, why: Why) -> Table:
    """Processing and sorting, by how many words are different."""
    arms = [name for name in ("python_simple", "go_optimised") if any(each == name for each, _ in sorting)]
    shown = {"python_simple": "Python", "go_optimised": "Go (optimised)"}
    columns = [
        Column(f"{name}_{part}", f"{shown[name]}: {title}")
        for name in arms or ["python_simple"]
        for part, title in (
            ("processing", "processing"),
            ("sorting", "sorting"),
            ("share", "share of sorting"),
        )
    ]
    rows = []
    for distinct in sorted({distinct for _, distinct in sorting}):
        cells = {}
        for name in arms:
            heard = sorting.get((name, distinct))
            for stage in ("processing", "sorting"):
                cells[f"{name}_{stage}"] = (
                    _spread(heard, "s", functools.partial(_of, stage))
                    if heard
                    else nothing("s", why(name, _sorted(distinct)))
                )
            cells[f"{name}_share"] = (
                _spread(heard, "share", lambda run: run.share("sorting"))
                if heard
                else nothing("share", why(name, _sorted(distinct)))
            )
        rows.append(Row(f"distinct_{distinct}", f"{distinct:,}", cells))
    if not rows:
        rows = [Row("none", "any", {columns[0].name: nothing("s", why("python_simple"))})]
    return Table(
        "sorting",
        f"Sorting, where {format_count(_SORTED[size][0])} words have ever more different ones among them",
        "different words",
        tuple(columns),
        tuple(rows),
        note="Words are drawn at random, each as likely as any other, so that their counts differ and sorting has something to do.",
    )


def movement_table(runs: Runs, rate: float | None, text: Text | None, why: Why) -> Table:
    """How fast each program works, against how fast the disk hands over."""
    rows = []
    for name in (NEWLINES.name, *(arm.name for arm in reversed(ARMS))):
        heard, past = runs.get((name, CACHED)), runs.get((name, COLD))
        mine = processed(heard, text)
        cells = {
            "rate": _spread(heard, "bytes_per_s", lambda run: text.size / run.of("processing"))
            if heard and text
            else nothing("bytes_per_s", why(name, CACHED)),
            "disk_ratio": Cell(
                "ratio", rate / mine, why="the disk's rate, not cached, over that of the program"
            )
            if rate and mine
            else nothing("ratio", "the disk could not be read past the cache" if mine else why(name, CACHED)),
            "io": _spread(past, "share", io_share) if past else nothing("share", why(name, COLD)),
        }
        rows.append(Row(name, TITLES[name], cells))
    return Table(
        "movement",
        "Moving the text against working on it",
        "program",
        (
            Column("rate", "text that its processing goes through"),
            Column("disk_ratio", "the disk's rate over that"),
            Column("io", "share of I/O, file not cached"),
        ),
        tuple(rows),
        note="The second column is about how many CPUs would have to process at once before this disk held them up.",
    )


def processed(runs: Sequence[Heard] | None, text: Text | None) -> float | None:
    """Bytes a second of the processing alone."""
    return text.size / best(runs).of("processing") if runs and text else None


def cold_rate(size: str, disk: Mapping[str, Times]) -> float | None:
    """Bytes a second from the disk, past the cache."""
    return (_DISK_MIB[size] << 20) / disk["read_cold"].median if "read_cold" in disk else None


_DISK_ROWS: Final = {
    "read_cold": ("Read (not cached)", "read", "buffered-cold"),
    "read_cached": ("Read (cached)", "read", "buffered-warm"),
    "write_sync": ("Write (incl. sync time)", "write", "buffered-fsync-end"),
    "write": ("Write (not incl. sync)", "write", "buffered"),
}


_ABSENT: Final = {
    "read_cold": "the cache did not let go of the file, or cannot be asked here",
    "read_cached": NOT_KEPT,
}


def disk_table(size: str, disk: Mapping[str, Times], native: Run | None, why: str, refused: str) -> Table:
    """The article's first table."""
    rows = []
    for name, (title, side, path) in _DISK_ROWS.items():
        absent = why or _ABSENT.get(name, "it was not measured")
        cells = {
            "python": disk[name].rate(_DISK_MIB[size] << 20, published=PUBLISHED_DISK[name])
            if name in disk
            else nothing("bytes_per_s", absent, PUBLISHED_DISK[name]),
            "native": disk_rate(native, side, path, refused),
        }
        rows.append(Row(name, title, cells))
    file = format_bytes(_DISK_MIB[size] << 20)
    smaller = "" if size == "original" else " The published figures are of 4 GB."
    others = "".join(
        f" {title}, native: blocks of {format_bytes(found[0])}."
        for title, side, path in _DISK_ROWS.values()
        if (found := nearest_block(native, side, path)) is not None and found[0] != PLAIN_BLOCK
    )
    return Table(
        "disk",
        f"The disk: one file of {file}, 1 MiB at a time",
        "I/O type",
        (Column("python", "Python"), Column("native", "native")),
        tuple(rows),
        original=True,
        note=f"Medians (smallest – largest). Not cached: the kernel was asked page by page that nothing of the file was left. What a host below a virtual disk keeps cannot be seen.{smaller}{others}",
    )


def call_table(calls: Mapping[int, Times], why: str) -> Table:
    """What the system calls cost."""
    rows = []
    for block in _BLOCKS:
        times = calls.get(block)
        cells = {
            "rate": times.rate(1.0) if times else nothing("bytes_per_s", why),
            "call": times.cell(divide=1 / block) if times else nothing("s", why),
        }
        rows.append(Row(f"block_{block}", format_bytes(block), cells))
    return Table(
        "calls",
        "Reading a cached file by system calls of several sizes (Python)",
        "bytes a call",
        (Column("rate", "rate"), Column("call", "one call")),
        tuple(rows),
    )


_LEDGER: Final = {
    "share": ("of all", ()),
    "waiting": ("waiting for the disk", ("storage-wait",)),
    "cpu": ("kernel's CPU for files", ("file-io-cpu",)),
    "faults": ("page faults", ("page-faults",)),
    "memory": ("copying, allocating, collecting", ("memory-copy", "allocator", "garbage-collection")),
    "own": ("its own code", ("compute", "user-cpu")),
    "busy": ("on a CPU or ready", ("on-cpu-or-ready",)),
    "queue": ("ready, waiting for a CPU", ("run-queue-wait",)),
    "unexplained": ("not explained", ("unexplained", "kernel-cpu")),
    "rest": ("the rest", ()),
}


#: What is only the kernel's work.
_IN_THE_KERNEL: Final = frozenset({"file-io-cpu", "page-faults"})


def ledger_table(ledgers: Ledgers) -> Table:
    """Stage by category."""
    rows = []
    for name, (state, ledger) in ledgers.items():
        why = f"of one run under latlab explain at level {ledger['level']}, {ledger['observer']['samples']} samples, file {state}"
        parts, undivided = [("all", "all", ledger["categories"], 1.0)], _undivided(ledger)
        for stage in ledger["stages"]:
            title = stage["name"] or "outside its stages"
            parts.append((stage["name"] or "outside", title, stage["categories"], stage["share"]))
        for part, title, categories, share in parts:
            own = {each["name"]: each["share"] for each in categories}
            cells = {"share": Cell("share", share, why=why)}
            for column, (_, kinds) in _LEDGER.items():
                if kinds and _IN_THE_KERNEL.intersection(kinds) & undivided.keys():
                    cells[column] = nothing(
                        "share", "the kernel's work is not divided: it is among what is not explained"
                    )
                elif kinds:
                    cells[column] = Cell("share", sum(own.get(kind, 0.0) for kind in kinds), why=why)
            known = sum(cell.number or 0.0 for column, cell in cells.items() if column != "share")
            # What is left of the sums' own rounding is no share.
            cells["rest"] = Cell("share", max(round(share - known, 6), 0.0), why=why)
            rows.append(Row(f"{name}_{part}", f"{TITLES[name]}: {title}", cells))
    return Table(
        "ledger",
        "What the stages are made of (latlab explain), each as a share of the program's wall time",
        "program and stage",
        tuple(Column(name, title) for name, (title, _) in _LEDGER.items()),
        tuple(rows),
        note="How a stage divides is told by the samples in it; of a stage with few of them, and of the kernel's work at levels 2 and 3, it is estimated from the whole program's. The rest: starting and ending, interrupts, other waits. On a CPU or ready: where latlab explain saw only that (without samples, or while recording would have cost too much)."
        + (
            " At level 3 nothing can look into a program's own code: there it includes page faults and all of memory."
            if any(ledger["level"] == 3 for _, ledger in ledgers.values())
            else ""
        ),
    )


def _verdict(runs: Sequence[Heard]) -> str:
    """`is`, `is not`, or `may be` the bottleneck: beyond what the runs differ."""
    shares = [io_share(run) for run in runs]
    return "is" if min(shares) > HALF else "is not" if max(shares) < HALF else "may be"


def answer(runs: Runs, text: Text | None, shares: Table) -> tuple[str, ...]:
    """The verdict."""
    known = [arm for arm in ARMS if (arm.name, CACHED) in runs]
    if text is None or not known:
        return ("No program could be run here, so there is no answer from this machine.",)
    said = [
        f"{arm.title} {format_ns(best(runs[arm.name, CACHED]).total * 1e9)} ({_percent(shares.cell(arm.name, 'io'))} of it I/O)"
        for arm in known
    ]
    state = COLD if any((arm.name, COLD) in runs for arm in known) else CACHED
    verdicts: dict[str, list[Arm]] = {}
    for arm in known:
        if (arm.name, state) in runs:
            verdicts.setdefault(_verdict(runs[arm.name, state]), []).append(arm)
    parts = []
    for verdict, arms in verdicts.items():
        values = [best(runs[arm.name, state]) for arm in arms]
        low, high = min(map(io_share, values)), max(map(io_share, values))
        span = format_percent(low) if low == high else f"{format_percent(low)} to {format_percent(high)}"
        whom = (
            "any of them"
            if len(arms) == len(known) and verdict == "is not"
            else ", ".join(arm.title for arm in arms)
        )
        parts.append(f"I/O {verdict} the bottleneck of {whom}: it takes {span} of the time")
    how = "read from the disk, with nothing of it in the page cache" if state == COLD else "in the page cache"
    return (
        f"Counting {format_count(text.words)} words ({format_count(text.distinct)} different ones, {format_bytes(text.size, decimal=True)}), the file in the page cache: {'; '.join(said)}.",
        f"With the file {how}: {'; '.join(parts)}. {_largest(runs, known)}",
    )


def _largest(runs: Runs, known: Sequence[Arm]) -> str:
    """Which stage takes the most."""
    largest = {max(STAGES, key=best(runs[arm.name, CACHED]).of) for arm in known}
    return "The stage that takes longest is processing, in each." if largest == {"processing"} else ""


def _percent(cell: Cell) -> str:
    return format_percent(cell.number)


def _ledger_share(ledgers: Ledgers, name: str, *kinds: str, stage: str | None = None) -> float | None:
    """A share of the program's wall time; None where the ledger cannot tell."""
    if name not in ledgers:
        return None
    ledger = ledgers[name][1]
    if ledger["level"] == 3 and set(kinds) & {
        "page-faults",
        "memory-copy",
        "allocator",
        "garbage-collection",
    }:
        return None
    if _IN_THE_KERNEL.intersection(kinds) & _undivided(ledger).keys():
        return None
    categories = ledger["categories"]
    if stage is not None:
        categories = next((each["categories"] for each in ledger["stages"] if each["name"] == stage), [])
        if any(row["name"] == "on-cpu-or-ready" and row["share"] > 0.01 for row in categories):
            return None
    return float(sum(row["share"] for row in categories if row["name"] in kinds))


def _seen(ledgers: Ledgers, name: str, stage: str) -> bool:
    """Whether enough samples of the program and the kernel fell into a stage; else the whole program's were divided."""
    ledger = ledgers[name][1]
    share = next((each["share"] for each in ledger["stages"] if each["name"] == stage), 0.0)
    return bool(ledger["level"] == 1 and share * ledger["observer"]["samples"] >= _FEWEST_SAMPLES)


_IN_MEMORY: Final = ("page-faults", "memory-copy", "allocator", "garbage-collection")


def reasons(runs: Runs, ledgers: Ledgers, text: Text | None, claims: Table, rate: float | None) -> list[str]:
    """Causes, with their size here."""
    said = []
    python = runs.get(("python_simple", CACHED))
    if python and text:
        quick = best(python)
        said.append(
            f"Simple Python needs {format_ns(quick.of('processing') / text.words * 1e9)} of processing for each word, and {format_ns(quick.of('reading') / text.words * 1e9)} of reading for the {text.size / text.words:.1f} bytes that a word has. Bytes come in large blocks, words one by one: each is split off, turned into lower case and looked up in a table."
        )
    for name in ORIGINAL:
        memory = _ledger_share(ledgers, name, *_IN_MEMORY)
        if memory is not None and memory >= 0.02:
            own = _ledger_share(ledgers, name, "compute") or 0.0
            faults = _ledger_share(ledgers, name, "page-faults") or 0.0
            said.append(
                f"{TITLES[name]}: {format_percent(memory)} of its time goes into memory (page faults {format_percent(faults)}, the rest copying, the allocator and collecting garbage), {format_percent(own)} into its own instructions, among which are its waits for memory (latlab explain, stage by stage in the table)."
            )
    for name in ("c", "rust", "go_optimised"):
        ahead = runs.get((name, COLD))
        if text and rate and ahead and best(ahead).of("reading") < 0.7 * text.size / rate:
            said.append(
                f"The disk works while the program does: it needs {format_ns(text.size / rate * 1e9)} for this text, and {TITLES[name]}, reading 64 KiB at a time with nothing in the page cache, spends {format_ns(best(ahead).of('reading') * 1e9)} on reading. The kernel reads ahead meanwhile. A program that first reads everything and then processes waits for all of it."
            )
            break
    queues = [share for name in ledgers if (share := _ledger_share(ledgers, name, "run-queue-wait"))]
    if queues and max(queues) > 0.2:
        said.append(
            f"This machine was busy: the programs waited up to {format_percent(max(queues))} of their time for a CPU (latlab explain). Run the lesson again when other programs leave it alone."
        )
    peaks = {
        name: max((run.peak_bytes for run in heard if run.peak_bytes), default=0)
        for name in ("python_simple", "go_simple", "go_optimised", "python_optimised")
        if (heard := runs.get((name, CACHED)))
    }
    if text:
        for one, other in (("go_simple", "go_optimised"), ("python_simple", "python_optimised")):
            if peaks.get(one) and other in peaks:
                ratio = best(runs[one, CACHED]).total / best(runs[other, CACHED]).total
                less = (
                    f"needs {format_bytes(peaks[other])}"
                    if peaks[other]
                    else "needs less than the interpreter that starts it"
                )
                said.append(
                    f"{TITLES[one]} takes {format_bytes(peaks[one])} of memory, {peaks[one] / text.size:.1f} bytes for each byte of the text, and {told.plain(ratio)} times as long as {TITLES[other]}, which counts the same words in the same kind of table and {less}."
                )
    if claims.cell("python_ratio", "here").number:
        said.append(
            f"Python is {told.ratio(claims.cell('python_ratio', 'here'))} as slow as simple Go here, and not more, because its split, lower and Counter are loops in C."
        )
    return said


def misled(runs: Runs, ledgers: Ledgers) -> list[Misled]:
    """Where the article misleads."""
    simple, optimised = runs.get(("go_simple", CACHED)), runs.get(("go_optimised", CACHED))
    here = (
        f" Here: {format_percent(best(simple).share('reading'))} of simple Go, {format_percent(best(optimised).share('reading'))} of optimised Go, the file in the page cache."
        if simple and optimised
        else ""
    )
    said = [
        Misled(
            "It says that disk I/O takes 14% of simple Go and 7% of optimised Go.",
            f"Its table gives 0.499 of 4.000, 12.5 %, and with outputting 12.7 %; for optimised Go 6.4 %, and with outputting 6.8 %.{here}",
        ),
        Misled(
            "Its stages do not add up to its totals.",
            "Python's four stages are 8.379, its total 8.386; simple Go's are 4.002 and 4.000, optimised Go's 2.415 and 2.414. Rounding allows 2 ms. Here the total is the sum of the stages, and the whole process has a row of its own.",
        ),
    ]
    rate = 413e6 / 0.154
    here = ""
    cold, cached = runs.get(("go_optimised", COLD)), runs.get(("go_optimised", CACHED))
    if cold and cached:
        here = f" Here optimised Go reads for {format_ns(best(cached).of('reading') * 1e9)} from the page cache, and for {format_ns(best(cold).of('reading') * 1e9)} when the file is not in it."
    said.append(
        Misled(
            "It calls the stage of reading “disk I/O”.",
            f"Optimised Go's 413 MB in 0.154 s are {told.rate(rate)}, more than the 1.7 GB/s that its own table gives the disk: that file came from the page cache, at least in part. The article does not say so.{here}",
        )
    )
    moved, memory, whole = (
        _ledger_share(ledgers, "go_simple", *kinds, stage="reading")
        for kinds in (("file-io-cpu", "storage-wait"), _IN_MEMORY, _OF_READING)
    )
    if moved is not None and memory is not None and whole and _seen(ledgers, "go_simple", "reading"):
        said.append(
            Misled(
                "It takes the stage of reading for I/O.",
                f"Of simple Go's reading, waits for a CPU left out, {format_percent(moved / whole)} is I/O here (the kernel's work on files, and waiting for the disk), and {format_percent(memory / whole)} is memory: pages that are touched for the first time while it grows, and the copy that a string is.",
            )
        )
    return said


#: What a program does while it reads; that other programs had its CPU is no part of it.
_OF_READING: Final = (
    "compute",
    "user-cpu",
    "on-cpu-or-ready",
    "memory-copy",
    "allocator",
    "garbage-collection",
    "page-faults",
    "file-io-cpu",
    "kernel-cpu",
    "storage-wait",
    "locks",
    "sleep",
    "unexplained",
)


def answers(
    runs: Runs,
    sorting: Sorting,
    ledgers: Ledgers,
    text: Text | None,
    claims: Table,
    calls: Mapping[int, Times],
    rate: float | None,
) -> list[Answer]:
    """Its other questions, and the page that reconciles it with the course notebook."""
    said = []
    if runs and text:
        said.append(Answer(BOTH, " ".join(reconciled(runs, ledgers, text, rate))))
    python = sorted(
        (distinct, heard) for (name, distinct), heard in sorting.items() if name == "python_simple"
    )
    if text and python:
        words, distinct = text.words, text.distinct
        said.append(
            Answer(
                "Is sorting the bottleneck, being O(N log N)?",
                f"There are two Ns: {format_count(words)} words are processed, {format_count(distinct)} different ones are sorted. {_sorting_words(python)}",
            )
        )
    lines, whole = runs.get(("python_lines", CACHED)), runs.get(("python_simple", CACHED))
    if lines and whole:
        ratio = claims.cell("lines_ratio", "here")
        verdict = (
            "it is slower"
            if (ratio.low or 0.0) > 1
            else "it is faster"
            if (ratio.high or math.inf) < 1
            else "neither is faster in every round"
        )
        said.append(
            Answer(
                "Is reading line by line in Python a bit slower?",
                f"Here {verdict}: line by line takes {told.ratio(ratio)} as long as all at once, {format_ns(best(lines).total * 1e9)}.{_of_memory(whole, lines)}",
            )
        )
    if calls:
        small, large = calls[_BLOCKS[0]], calls[_BLOCKS[1]]
        said.append(
            Answer(
                "Do system calls matter, one for every 4KB, or 64KB?",
                f"A cached file is read at {told.rate(1 / small.median)} by calls of 4 KiB and at {told.rate(1 / large.median)} by calls of 64 KiB. A call of 4 KiB takes {format_ns(small.median * 4096e9)} from Python.",
            )
        )
    said.append(
        Answer(
            "What of I/O over a network?",
            "It is another disk: name a directory on it with --dir. What a round trip costs, latlab measure --only 'network.*' shows.",
        )
    )
    return said


def _of_memory(whole: Sequence[Heard], lines: Sequence[Heard]) -> str:
    """What all at once takes, and line by line."""
    most, least = (max((run.peak_bytes or 0 for run in runs), default=0) for runs in (whole, lines))
    less = format_bytes(least) if least else "less than the interpreter that starts it"
    return f" All at once takes {format_bytes(most)} of memory, line by line {less}." if most else ""


BOTH: Final = "The article says that I/O is not the bottleneck, a course notebook that moving data is, and not calculation. Which of them is right?"


def _sorting_words(python: Sequence[tuple[int, Sequence[Heard]]]) -> str:
    few, many = python[0], python[-1]
    of_few, of_many = best(few[1]), best(many[1])
    said = f"With {format_count(few[0])} different words sorting takes {format_percent(of_few.share('sorting'))} of the time in Python, with {format_count(many[0])} of them {format_percent(of_many.share('sorting'))}."
    if all(best(heard).of("sorting") < best(heard).of("processing") for _, heard in python):
        said += " It never takes as long as processing here, also where most words come only once or twice: looking up a word that is not in any cache costs more than its turns in the sort."
    return said


def _of_both(light: Sequence[Heard], heavy: Sequence[Heard]) -> str:
    """Which of them this file bears out: by a program that does little with each byte, and one that does much."""
    if _verdict(heavy) == "is not" and _verdict(light) == "is":
        return "Each is, for its own kind of program."
    if _verdict(heavy) == _verdict(light) == "is not":
        return "For one program at a time the article is: I/O is the bottleneck of neither kind. But its share depends on how much is done with each byte."
    return "It depends on the program, and on how fast the disk was just now."


def reconciled(runs: Runs, ledgers: Ledgers, text: Text, rate: float | None) -> list[str]:
    """The article and the notebook, by this machine's figures."""
    said = []
    light, slow = (
        runs.get((NEWLINES.name, COLD)) or runs.get((NEWLINES.name, CACHED)),
        runs.get(("python_simple", CACHED)),
    )
    quick_name, quick = next(
        (
            (name, runs[name, CACHED])
            for name in ("c", "rust", "go_optimised", "python_optimised")
            if (name, CACHED) in runs
        ),
        ("", None),
    )
    heavy = runs.get(("python_simple", COLD)) or slow
    if light and heavy:
        state = "not in the page cache" if (NEWLINES.name, COLD) in runs else "in the page cache"
        said.append(
            f"{_of_both(light, heavy)} The same file, {state}, and the same language: counting its words, I/O is {format_percent(io_share(best(heavy)))} of the time; counting only its lines, it is {format_percent(io_share(best(light)))}."
        )
    if rate and slow and quick:
        one, other = processed(slow, text), processed(quick, text)
        if one and other:
            said.append(
                f"What decides is how much work each byte meets on its way. This disk hands over {told.rate(rate)} when nothing is cached; simple Python processes {told.rate(one)}, {TITLES[quick_name]} {told.rate(other)}. A disk or a network that is slower than a program is its bottleneck, and this disk becomes one when about {told.plain(rate / one)} CPUs process in simple Python at once, or {told.plain(rate / other)} in {TITLES[quick_name]}: work is divided among CPUs and machines, as the notebook's clusters do, and the way to the data is shared."
            )
    memory = _ledger_share(ledgers, "python_simple", *_IN_MEMORY)
    moves = _ledger_share(ledgers, "go_simple", *_IN_MEMORY)
    measured = [
        f"{format_percent(share)} in {title}"
        for title, share in (("simple Python", memory), ("simple Go", moves))
        if share is not None
    ]
    if measured:
        said.append(
            f"And “processing” is not calculation only: memory that is touched for the first time, allocated, copied and collected takes {' and '.join(measured)} of the wall time (latlab explain), before any waits for memory inside the program's own code, which that figure leaves out. Data is moved there too, between memory and the CPU, and the optimised programs gain by moving less of it."
        )
    return said


def series(sorting: Sorting) -> list[Series]:
    """Sorting by the number of different words, point by point."""
    said = []
    for name in ("python_simple", "go_optimised"):
        points = sorted(
            (distinct, best(heard)) for (each, distinct), heard in sorting.items() if each == name
        )
        if points:
            said += [
                Series(f"{name}_distinct", "count", tuple(float(distinct) for distinct, _ in points)),
                *(
                    Series(f"{name}_{stage}", "s", tuple(heard.of(stage) for _, heard in points))
                    for stage in STAGES
                ),
            ]
    return said


def pictures(size: str, runs: Runs, sorting: Sorting, disk: Mapping[str, Times]) -> list[Picture]:
    """Stages by program; the share of I/O; sorting; the disk."""
    made = []
    known = [arm for arm in ARMS if (arm.name, CACHED) in runs]
    if known:
        marks = [
            _spread(runs[arm.name, CACHED], "s", functools.partial(_of, stage)).mark(arm.title, stage)
            for arm in known
            for stage in STAGES
        ]
        made.append(
            Picture(
                "stages",
                "How long does each stage take?",
                "bars",
                "time",
                "s",
                tuple(marks),
                log=False,
                caption="The fastest run, the file in the page cache; the thin lines go from the smallest to the largest of all runs.",
            )
        )
        shares = [
            _spread(runs[name, state], "share", io_share).mark(
                TITLES[name], "cached" if state == CACHED else "not cached"
            )
            for name in (*(arm.name for arm in known), NEWLINES.name)
            for state in (CACHED, COLD)
            if (name, state) in runs
        ]
        made.append(
            Picture(
                "io_share",
                "What share of the time is I/O?",
                "bars",
                "share of reading and outputting",
                "share",
                tuple(shares),
                log=False,
                caption="The last program counts only the lines of the same file: next to no work on each byte.",
            )
        )
    if sorting:
        marks = []
        for name, title in (("python_simple", "Python"), ("go_optimised", "Go (optimised)")):
            for stage in ("processing", "sorting"):
                for (each, distinct), heard in sorted(sorting.items()):
                    if each == name:
                        shown = f"{title}: {stage}"
                        cell = _spread(heard, "s", functools.partial(_of, stage))
                        marks.append(cell.mark(shown, shown, float(distinct)))
        made.append(
            Picture(
                "sorting",
                "What does sorting cost as more words are different?",
                "lines",
                "time",
                "s",
                tuple(marks),
                x_axis="different words, logarithmic",
                x_unit="count",
                caption=f"Of {format_count(_SORTED[size][0])} words each time. Bands go from the fastest to the slowest run.",
            )
        )
    if disk:
        marks = []
        for name, (title, _, _) in _DISK_ROWS.items():
            if name in disk:
                marks.append(disk[name].rate(_DISK_MIB[size] << 20).mark(title, "here"))
            marks.append(Mark(title, PUBLISHED_DISK[name].value, "published"))
        made.append(
            Picture(
                "disk",
                "How fast is the disk?",
                "bars",
                "rate",
                "bytes_per_s",
                tuple(marks),
                caption="Medians; the thin lines go from the slowest to the fastest of the repeats.",
            )
        )
    return made
