"""Where words are counted: the text, the programs that count them, and their runs, each of which is checked."""

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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from latlab.lessons.bench import PLAIN, Bench, Cannot, reason_of
from latlab.lessons.cache import NOT_KEPT, brought_in, why_not_cold
from latlab.lessons.compiled import built
from latlab.lessons.experiments.io_bottleneck.figures import STAGES, Heard, Ledger
from latlab.lessons.folder import own_folder
from latlab.lessons.memory import enough_memory
from latlab.lessons.processes import last_words, run_whole
from latlab.lessons.programs import words_text
from latlab.text import clean
from latlab.units import format_bytes, format_count

CACHED, COLD = "cached", "cold"
#: With longer ones a round takes more than some seconds: each program is told.
_LONG_TEXT: Final = 100_000_000
_MOST_FILE: Final = 1 << 36
#: Of more different words only the ends are looked at.
_ALL_SORTED: Final = 50_000
SORTERS: Final[tuple[str, ...]] = ("python_simple", "go_optimised")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is counted.

    Attributes:
        copies: Of a text.
        copy_bytes: Of one copy.
        rounds: How often each program runs, at most.
        sorted_words: All words of the texts that are sorted.
        distinct: Out of how many different ones they are drawn.
        disk_bytes: Of the file by which the disk is timed.
        longest_s: After so long a program is ended.
        counting_s: Rounds are left out where they would take longer: a slow machine comes to its end too.
        sorting_s: The same of sorting.
        disk_s: The same of the disk.
        native_s: Of the Rust probe.
        native_bytes: The most that it may write.
    """

    copies: int
    copy_bytes: int
    rounds: int
    sorted_words: int
    distinct: tuple[int, ...]
    disk_bytes: int
    longest_s: float
    counting_s: float
    sorting_s: float
    disk_s: float
    native_s: float
    #: With what the quick profile may write there would be nothing left for writes that are not flushed.
    native_bytes: int = 1 << 30


PLANS: Final = {
    "small": Plan(1, 400_000, 2, 20_000, (100, 20_000), 8 << 20, 60.0, 20.0, 5.0, 5.0, 1.5, 1 << 29),
    "default": Plan(
        copies=3,
        copy_bytes=words_text.BYTES,
        rounds=3,
        sorted_words=400_000,
        distinct=(1_000, 10_000, 100_000, 400_000),
        disk_bytes=256 << 20,
        longest_s=120.0,
        counting_s=20.0,
        sorting_s=8.0,
        disk_s=8.0,
        native_s=8.0,
    ),
    "original": Plan(
        copies=100,
        copy_bytes=words_text.BYTES,
        rounds=3,
        sorted_words=1_000_000,
        distinct=(1_000, 10_000, 100_000, 1_000_000),
        disk_bytes=4096 << 20,
        longest_s=1800.0,
        counting_s=math.inf,
        sorting_s=60.0,
        disk_s=120.0,
        native_s=30.0,
    ),
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One program.

    Attributes:
        title: For people.
        language: Of it.
        way: A way of `words.py`, or the file that is built.
        memory: The most memory that it takes, for each byte of the text.
    """

    title: str
    language: str
    way: str
    memory: float = 0.5


#: What counts words.
ARMS: Final = {
    "python_simple": Arm("Python", "python", "simple", 20.0),
    "go_simple": Arm("Go (simple)", "go", "words_simple.go", 10.0),
    "go_optimised": Arm("Go (optimised)", "go", "words_optimised.go"),
    "python_lines": Arm("Python (line by line)", "python", "by-line"),
    "python_optimised": Arm("Python (optimised)", "python", "optimised"),
    "rust": Arm("Rust", "rust", "words.rs"),
    "c": Arm("C", "c", "words.c"),
}
#: What only counts lines.
OF_LINES: Final = {
    "only_read": Arm("Python (only reading the lines)", "python", "only-read"),
    "newlines": Arm("Python (only counting the lines)", "python", "newlines"),
}
ALL: Final = ARMS | OF_LINES
#: Reading line by line is told apart by a second program, which cannot be done where the disk is waited for.
TAKES_TURNS: Final = ("python_lines", "only_read")
ORIGINAL: Final = ("python_simple", "go_simple", "go_optimised")
OTHERS: Final = ("python_lines", "python_optimised", "rust", "c")

Commands = Mapping[str, Sequence[str]]
Runs = dict[tuple[str, str], tuple[Heard, ...]]
Sorting = dict[tuple[str, int], tuple[Heard, ...]]


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


class Workshop:
    """A folder with the text and the programs, on the disk that is measured where that can be written."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.plan = PLANS[bench.size]
        self._held = contextlib.ExitStack()
        try:
            bench.room(2 * self._size)
            self.folder, self.off_disk = bench.folder, ""
        except (OSError, Cannot) as error:
            why = reason_of(error) if isinstance(error, OSError) else str(error)
            self.folder = self._held.enter_context(own_folder(Path(tempfile.gettempdir())))
            self.off_disk = f"the text is in the temporary directory: {why}"
        self.numbers = itertools.count()

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.close()

    @property
    def _size(self) -> int:
        file = self.bench.file
        return self.plan.copies * self.plan.copy_bytes if file is None else file.stat().st_size

    @property
    def announced(self) -> str:
        """What is going to be counted."""
        size, copies = format_bytes(self._size, decimal=True), self.plan.copies
        if self.bench.file is not None:
            return f"your file, {size}"
        return f"{size}, {copies} {'copy' if copies == 1 else 'copies'} of a text made here"

    # ------------------------------------------------------------------------------------------------ the text

    def make_text(self) -> Text:
        """Writes the text, until it is on the disk."""
        path, copies = self.folder / "text", self.plan.copies
        if self.bench.file is not None:
            return self._own_text(self.bench.file, path)
        self._room(self._size)
        copy, tally = words_text.one_copy(self.plan.copy_bytes)
        words_text.write_copies(path, copy, copies)
        counts = {word.encode(): count * copies for word, count in tally.items()}
        return self._text(path, counts, copy.count(b"\n") * copies)

    def _own_text(self, source: Path, path: Path) -> Text:
        """A copy of the user's file in ASCII, on whose words all languages agree."""
        size = source.stat().st_size
        if size > _MOST_FILE:
            raise Cannot(f"the file has {format_bytes(size)}: the limit is {format_bytes(_MOST_FILE)}")
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
            raise Cannot("the file has no words")
        note = "Your own file, copied to the disk that is measured."
        if replaced:
            note += f" In the copy, {format_count(replaced)} non-ASCII bytes are replaced by the letter x: the languages disagree on what a word is there."
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
            name: [sys.executable, str(here / "words.py"), arm.way]
            for name, arm in ALL.items()
            if arm.language == "python"
        }
        compiled = {name: arm for name, arm in ARMS.items() if arm.language != "python"}
        if self.bench.plain:
            for arm in compiled.values():
                self.bench.lacks(arm.title, PLAIN)
            return commands
        self.bench.tell("building the programs")
        with ThreadPoolExecutor(len(compiled)) as pool:
            building = {
                name: pool.submit(built, arm.language, here / arm.way, self.folder / name)
                for name, arm in compiled.items()
            }
        for name, future in building.items():
            program = self.bench.attempt(ARMS[name].title, future.result, reported=False)
            if program is not None:
                commands[name] = [str(program)]
        return commands

    def count(self, programs: Commands, text: Text) -> Runs:
        """Each program a few times, from the page cache and past it; the order turns round each time."""
        if text.cold_why:
            self.bench.lacks("reading past the cache", text.cold_why)
            for arm in ALL.values():
                self.bench.keep_why(f"{arm.title}, {COLD}", text.cold_why)
        states = (CACHED,) if text.cold_why else (CACHED, COLD)
        self.bench.tell("counting words")
        found = self.bench.rounds(
            {
                (name, state): (
                    f"{arm.title}, {state}",
                    functools.partial(self.once, arm, programs[name], text, state),
                )
                for name, arm in ALL.items()
                for state in states
                if name in programs and not (state == COLD and name in TAKES_TURNS)
            },
            self.plan.rounds,
            self.plan.counting_s,
            reported=text.size >= _LONG_TEXT,
        )
        return {each: tuple(heard) for each, heard in found.items()}

    def once(self, arm: Arm, command: Sequence[str], text: Text, state: str) -> Heard:
        """One run: its stages, and whether its counts are right.

        Raises:
            Cannot: they are not, or there is not enough memory.
        """
        enough_memory(int(arm.memory * text.size))
        prepare(text.path, state)
        kind = "plain" if self.bench.plain else "marks"
        answer = self.folder / f"answer-{next(self.numbers)}"
        listening = Path(words_text.__file__).parent.parent / "listening.py"
        output, errors = self._started(
            # latlab is on the path that it is given: no `site` is needed.
            [sys.executable, "-S", str(listening), kind, str(answer), *command],
            text.path,
            self.plan.longest_s,
        )
        found = json.loads(answer.read_text(encoding="utf-8"))
        answer.unlink()
        if found["code"]:
            raise Cannot(f"the program ended with {found['code']}: {_said(errors)}")
        if found.get("missed"):
            raise Cannot(f"{found['missed']} marks of its stages were lost: the machine is too busy")
        stages = found["stages"] if kind == "marks" else _spoken(errors)
        if not any(stages.get(stage) for stage in STAGES):
            raise Cannot("no stage of it was recorded")
        check_output(arm, output, text)
        return Heard(
            found["seconds"], {stage: stages.get(stage, 0.0) for stage in STAGES}, found["peak_bytes"]
        )

    def _started(self, command: Sequence[str], source: Path, longest: float) -> tuple[bytes, bytes]:
        """Runs a command on the file, and returns what it wrote; ends it, and what it started, when it takes too long."""
        out, err = self.folder / "output", self.folder / "errors"
        with source.open("rb") as stdin, out.open("wb") as stdout, err.open("wb") as stderr:
            code = run_whole(command, longest, stdin=stdin, stdout=stdout, stderr=stderr)
        errors = err.read_bytes()
        if code:
            raise Cannot(f"the program ended with {code}: {_said(errors)}")
        return out.read_bytes(), errors

    def sort(self, programs: Commands) -> Sorting:
        """Texts of as many words out of ever more different ones."""
        size, texts = self.plan.sorted_words, []
        self._room(16 * size)
        for distinct in self.plan.distinct:
            made, tally = words_text.of_many_words(size, distinct)
            path = self.folder / f"many-{distinct}"
            words_text.write_copies(path, made, 1)
            counts = {word.encode(): count for word, count in tally.items()}
            texts.append(self._text(path, counts, made.count(b"\n")))
        found = self.bench.rounds(
            {
                (name, text.distinct): (
                    f"{ARMS[name].title}, {of_sorting(text.distinct)}",
                    functools.partial(self.once, ARMS[name], programs[name], text, CACHED),
                )
                for text in texts
                for name in SORTERS
                if name in programs
            },
            self.plan.rounds,
            self.plan.sorting_s,
        )
        return {each: tuple(heard) for each, heard in found.items()}

    def explain(self, programs: Commands, text: Text) -> dict[str, Ledger]:
        """Where the wall time of each program goes, by `latlab explain`."""
        names = ORIGINAL[-1:] if self.bench.size == "small" else (*ORIGINAL, *OTHERS[1:])
        state = CACHED if text.cold_why else COLD
        found = {}
        for name in names:
            if name in programs:
                work = functools.partial(self._explained, ARMS[name], programs[name], text, state)
                ledger = self.bench.attempt(f"latlab explain: {ARMS[name].title}", work)
                if ledger is not None:
                    found[name] = Ledger(state, ledger)
        return found

    def _explained(self, arm: Arm, command: Sequence[str], text: Text, state: str) -> dict[str, Any]:
        prepare(text.path, state)
        answer = self.folder / "ledger.json"
        words = ["-m", "latlab", "explain", "--no-limits", "--runs", "1", "--json", str(answer), "--"]
        output, _ = self._started([sys.executable, *words, *command], text.path, self.plan.longest_s + 30)
        check_output(arm, output, text)
        ledger: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        if not ledger["stages"] or not ledger["closure"]["holds"]:
            raise Cannot("the result has no stages, or its categories do not sum to 100 %")
        return ledger


_NOT_ASCII: Final = bytes(range(128, 256))
#: White space is a blank or the end of a line: some languages have more kinds of it than others.
_TO_ASCII: Final = bytes(
    ord("x") if each >= 128 else each if each in b"\n" or not (9 <= each <= 13 or 28 <= each <= 31) else 32
    for each in range(256)
)


def _pieces(file: IO[bytes]) -> Iterable[bytes]:
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


def of_sorting(distinct: int) -> str:
    """What a program does with a text of so many different words."""
    return f"sorting {distinct:,} different words"


def _spoken(errors: bytes) -> dict[str, float]:
    """The stages that a Python program tells itself."""
    pairs = (line.split() for line in errors.decode().splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in STAGES}


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
    if arm in OF_LINES.values():
        if lines != [b"lines %d" % text.lines]:
            reported = clean(output[:60].decode("utf-8", "replace"))
            raise Cannot(f"its counts are wrong: {reported!r} for {text.lines:,} lines")
        return
    if checksum(lines) != text.check:
        raise Cannot(
            f"its counts are wrong: {len(lines):,} different words of {text.distinct:,}, or different counts"
        )
    shown = lines if len(lines) <= _ALL_SORTED else lines[:1000] + lines[-1000:]
    counts = [int(line.rpartition(b" ")[2]) for line in shown]
    if counts != sorted(counts, reverse=True):
        raise Cannot("its output is wrong: the most frequent words do not come first")


def prepare(path: Path, state: str) -> None:
    """Puts the file into the page cache, or out of it; and looks whether it is there.

    Raises:
        Cannot: the cache does not do as asked.
    """
    why = why_not_cold(path) if state == COLD else "" if brought_in(path) else NOT_KEPT
    if why:
        raise Cannot(why)
