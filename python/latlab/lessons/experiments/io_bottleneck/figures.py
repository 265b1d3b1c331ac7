"""Figures of the programs that count words: their stages, and the ledgers of `latlab explain`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from latlab.lessons.bench import nothing
from latlab.lessons.figures import Cell, Published, Unit

STAGES: Final = ("reading", "processing", "sorting", "outputting")
#: What grows with the number of different words. More copies of a text take no longer there.
OF_DIFFERENT_WORDS: Final = ("sorting", "outputting")
#: Half of the time: what takes more is the bottleneck.
HALF: Final = 0.5
#: With fewer samples in a stage of a program nothing is said of what it is made of.
_FEWEST_SAMPLES: Final = 30
#: What is I/O, and what is moving within memory.
IO: Final = ("file-io-cpu", "storage-wait")
MEMORY: Final = ("page-faults", "memory-copy", "allocator", "garbage-collection")
#: What is only the kernel's work.
_IN_THE_KERNEL: Final = frozenset({"file-io-cpu", "page-faults"})
#: What a program does while it reads; that other programs had its CPU is no part of it.
OF_READING: Final = (
    *IO,
    *MEMORY,
    "compute",
    "user-cpu",
    "on-cpu-or-ready",
    "kernel-cpu",
    "locks",
    "sleep",
    "unexplained",
)
#: What a stage is divided into: its title, and the categories of `latlab explain`.
LEDGER: Final = {
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

    def share(self, *stages: str) -> float:
        """Of the total."""
        return sum(map(self.of, stages)) / self.total

    def of(self, stage: str) -> float:
        """One stage; `total` and `process` are all of them and the whole process."""
        if stage in {"total", "process"}:
            return self.total if stage == "total" else self.seconds
        return self.stages.get(stage, 0.0)

    def of_copies(self, growth: float) -> Heard:
        """Calculated: the stages where copies make the text `growth` times as long; the process is not."""
        stages = {
            stage: seconds if stage in OF_DIFFERENT_WORDS else seconds * growth
            for stage, seconds in self.stages.items()
        }
        return replace(self, seconds=math.nan, stages=stages)


@dataclass(frozen=True, slots=True)
class Ran:
    """The runs of a program: figures of the fastest, with the smallest and the largest of all.

    Attributes:
        runs: None where it could not be run.
        why: The reason then.
    """

    runs: tuple[Heard, ...] = ()
    why: str = ""

    def __bool__(self) -> bool:
        return bool(self.runs)

    def of(self, stage: str) -> float:
        """Seconds of the fastest, by its stages together; not a number where there is none."""
        return self._fastest.of(stage) if self.runs else math.nan

    def seconds(self, stage: str, published: Published | None = None, note: str = "") -> Cell:
        """Of a stage."""
        return self._cell("s", lambda run: run.of(stage), published, note)

    def reckoned(self, stage: str, growth: float, published: Published | None = None) -> Cell:
        """Of a stage, where copies make the text `growth` times as long."""
        return self._cell(
            "s", lambda run: run.of_copies(growth).of(stage), published, "calculated, not measured"
        )

    def share(self, *stages: str, published: Published | None = None) -> Cell:
        """Of the total."""
        return self._cell("share", lambda run: run.share(*stages), published)

    def share_of_copies(self, growth: float, *stages: str) -> float:
        """Calculated from the fastest run, where copies make the text `growth` times as long."""
        return self._fastest.of_copies(growth).share(*stages) if self.runs else math.nan

    @property
    def io(self) -> Cell:
        """The share of reading and outputting."""
        return self.share("reading", "outputting")

    def rate(self, size: int) -> Cell:
        """A text of so many bytes over the time of the processing alone."""
        return self._cell("bytes_per_s", lambda run: size / run.of("processing"))

    def over(self, other: Ran, published: Published | None = None) -> Cell:
        """How many times as long as the other: of the fastest; the spread is that of the pairs."""
        if not self.runs or not other.runs:
            return nothing("ratio", other.why if self.runs else self.why, published)
        value = self.of("total") / other.of("total")
        pairs = [mine.total / theirs.total for mine, theirs in zip(self.runs, other.runs, strict=False)]
        return Cell.within("ratio", value, pairs, len(pairs), published, "of the totals above")

    @property
    def memory(self) -> int:
        """The most bytes that a run took; 0 where that is less than the interpreter that starts it."""
        return max((run.peak_bytes or 0 for run in self.runs), default=0)

    @property
    def peak(self) -> Cell:
        """The same as a figure."""
        peaks = [float(run.peak_bytes) for run in self.runs if run.peak_bytes is not None]
        if not peaks:
            unseen = "less than the interpreter that starts it: not distinguishable"
            return nothing("bytes", unseen if self.runs else self.why)
        return Cell("bytes", max(peaks), min(peaks), max(peaks), len(peaks))

    @property
    def largest(self) -> str:
        """The stage that takes longest."""
        return max(STAGES, key=self.of)

    @property
    def sorts_less(self) -> bool:
        """Whether sorting takes less than processing."""
        return self.of("sorting") < self.of("processing")

    @property
    def verdict(self) -> str:
        """Whether I/O `is`, `is not`, or `may be` the bottleneck, given run-to-run variation."""
        return "is" if self.io.above(HALF) else "is not" if self.io.below(HALF) else "may be"

    @property
    def _fastest(self) -> Heard:
        return min(self.runs, key=lambda run: run.total)

    def _cell(
        self, unit: Unit, value: Callable[[Heard], float], published: Published | None = None, note: str = ""
    ) -> Cell:
        if not self.runs:
            return nothing(unit, self.why, published)
        values = [value(run) for run in self.runs]
        return Cell.within(unit, value(self._fastest), values, len(values), published, note)


def verdicts(ran: Mapping[str, Ran], names: Iterable[str]) -> Iterator[tuple[str, list[str], float, float]]:
    """Of each verdict: for which of these programs, and the smallest and the largest share of I/O."""
    found: dict[str, dict[str, float]] = {}
    for name in names:
        found.setdefault(ran[name].verdict, {})[name] = ran[name].io.number or 0.0
    for verdict, shares in found.items():
        yield verdict, list(shares), min(shares.values()), max(shares.values())


def shares_of(
    ran: Mapping[str, Ran], names: Iterable[str], stages: Iterable[str], growth: float = 1.0
) -> tuple[float, float]:
    """The smallest and the largest share of the stages, of these programs; see `Heard.of_copies`."""
    shares = [ran[name].share_of_copies(growth, *stages) for name in names]
    return min(shares), max(shares)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where the wall time of one run of a program went.

    Attributes:
        state: Of the file that it read.
        found: What `latlab explain --json` wrote.
    """

    state: str
    found: Mapping[str, Any]

    @property
    def level(self) -> int:
        """Of `latlab explain`."""
        return int(self.found["level"])

    @property
    def samples(self) -> int:
        """All of them."""
        return int(self.found["observer"]["samples"])

    @property
    def queue(self) -> float:
        """The share of waiting for a CPU."""
        return self.share("run-queue-wait")

    @property
    def _undivided(self) -> dict[str, Any]:
        """What counts say of the kernel's work by category, if the ledger leaves that whole; else nothing."""
        rows = {row["name"]: row for row in self.found["categories"]}
        kernel = rows.get("kernel-cpu", {})
        return {} if "file-io-cpu" in rows else {each["name"]: each for each in kernel.get("within", ())}

    def share(self, *kinds: str, stage: str | None = None) -> float:
        """Of the program's wall time; not a number where the ledger cannot tell."""
        unseen = self.level == 3 and not set(kinds).isdisjoint(MEMORY)
        if unseen or _IN_THE_KERNEL.intersection(kinds) & self._undivided.keys():
            return math.nan
        categories = self.found["categories"]
        if stage is not None:
            stages = {each["name"]: each["categories"] for each in self.found["stages"]}
            categories = stages.get(stage, [])
            if any(row["name"] == "on-cpu-or-ready" and row["share"] > 0.01 for row in categories):
                return math.nan
        return float(sum(row["share"] for row in categories if row["name"] in kinds))

    def seen(self, stage: str) -> bool:
        """Whether enough samples of program and kernel fell into it; else the whole program's were divided."""
        share = {each["name"]: each["share"] for each in self.found["stages"]}.get(stage, 0.0)
        return self.level == 1 and share * self.samples >= _FEWEST_SAMPLES

    def part(self, category: str) -> Cell:
        """A category's share of the whole program, with its interval."""
        rows = self._undivided | {row["name"]: row for row in self.found["categories"]}
        row = rows.get(category, {"share": 0.0, "low": 0.0, "high": 0.0})
        why = f"one run at level {self.level}, 95 % interval, file {self.state}"
        return Cell.within("share", row["share"], (row["low"], row["high"]), max(self.samples, 1), why=why)

    def rows(self) -> Iterator[tuple[str, str, dict[str, Cell]]]:
        """Of the whole and of each stage: name, title, and its cells by the columns of `LEDGER`."""
        yield "all", "all", self._divided(1.0, self.found["categories"])
        for stage in self.found["stages"]:
            name = stage["name"]
            cells = self._divided(stage["share"], stage["categories"])
            yield name or "outside", name or "outside its stages", cells

    def _divided(self, share: float, categories: list[dict[str, Any]]) -> dict[str, Cell]:
        why = f"of one run under latlab explain at level {self.level}, {self.samples} samples, file {self.state}"
        own = {each["name"]: each["share"] for each in categories}
        cells = {"share": Cell("share", share, why=why)}
        for column, (_, kinds) in LEDGER.items():
            if _IN_THE_KERNEL.intersection(kinds) & self._undivided.keys():
                whole = "the kernel's work is not divided: it counts as not explained"
                cells[column] = nothing("share", whole)
            elif kinds:
                cells[column] = Cell("share", sum(own.get(kind, 0.0) for kind in kinds), why=why)
        known = sum(cell.number or 0.0 for column, cell in cells.items() if column != "share")
        # What is left of the sums' own rounding is no share.
        return cells | {"rest": Cell("share", max(round(share - known, 6), 0.0), why=why)}
