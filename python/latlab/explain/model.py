"""The ledger of a program's wall time, decoded. `crates/latlab-explain/src/model.rs` owns the names.

Fields that nothing here reads are left out: `--json` has them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal

import msgspec

from latlab.explain.resources import Calls, EndedWait, Files, Lock, Path, PathStep, Pauses

Level = Literal[1, 2, 3]
Method = Literal["counted", "sampled", "modelled"]

_MOSTLY: Final = 0.5
"""Share of wall time that was recorded, from which on a path is more than a part of one."""
USER_CODE: Final = ("compute", "memory-copy", "allocator", "garbage-collection")
"""What only samples of user code distinguish; without them there is `user-cpu`."""
WAITS: Final = (
    "storage-wait",
    "network",
    "pipe",
    "locks",
    "run-queue-wait",
    "sleep",
    "waiting-for-children",
)
"""In which a thread runs nothing."""


class Part(msgspec.Struct, frozen=True):
    """A part of a row: shares are of wall time."""

    name: str
    share: float
    seconds: float


class Function(msgspec.Struct, frozen=True):
    """A function that samples fell in; those of a category have no more than it has."""

    name: str
    object: str
    share: float
    low: float
    high: float


class Within(msgspec.Struct, frozen=True):
    """What a row may contain that cannot be distinguished there; the share is as far as counts tell."""

    name: str
    low: float
    high: float
    share: float = 0.0


class Row(msgspec.Struct, frozen=True):
    """One category: its share of wall time with the 95 % interval."""

    name: str
    share: float
    low: float
    high: float
    seconds: float
    method: Method
    parts: tuple[Part, ...] = ()
    functions: tuple[Function, ...] = ()
    within: tuple[Within, ...] = ()

    @property
    def counted(self) -> list[Within]:
        """What counts tell of what it contains, the largest first."""
        return sorted((each for each in self.within if each.share > 0), key=lambda each: -each.share)


class Program(msgspec.Struct, frozen=True):
    """What was run, and how it ended."""

    arguments: tuple[str, ...]
    pid: int
    exit_code: int | None = None
    signal: int | None = None
    left_running: int = 0


class Rung(msgspec.Struct, frozen=True):
    """One tracing level: whether it is there, and if not, why not."""

    level: Level
    name: str
    available: bool
    reason: str | None = None


class Closure(msgspec.Struct, frozen=True):
    """The check that every instant is in exactly one category."""

    sum: float
    holds: bool


class Bounds(msgspec.Struct, frozen=True):
    """Shares of wall time, at least and at most."""

    low: float = 0.0
    high: float = 1.0


class Observer(msgspec.Struct, frozen=True):
    """What watching cost."""

    share: float
    watcher_share: float
    recorded_share: float
    scans: int = msgspec.field(name="looks")
    samples: int
    lost: int
    allowed_share: float | None = None
    """Nothing: whatever it costs."""


class Cost(msgspec.Struct, frozen=True):
    """Nanoseconds of CPU time, or a share, as a range."""

    low: float
    mid: float
    high: float


class Calibration(msgspec.Struct, frozen=True):
    """What recording and the kernel's work take on this machine."""

    recording: bool | None
    """Whether threads could be recorded, and if so, whether in the kernel."""
    measured_s: int
    """When it was measured: seconds since 1970."""
    price: dict[str, float]
    costs: dict[str, Cost]


class ThreadWait(msgspec.Struct, frozen=True):
    """Time that threads waited, added up over threads."""

    name: str
    seconds: float


class Threads(msgspec.Struct, frozen=True):
    """Threads and processors."""

    most: int
    cpu_s: float
    parallelism: float
    waits: tuple[ThreadWait, ...] = ()


class Process(msgspec.Struct, frozen=True):
    """One process of the program: shares are of its own time."""

    pid: int
    parent: int
    name: str
    wall_s: float
    running: float
    waits: tuple[Part, ...] = ()


class Counters(msgspec.Struct, frozen=True):
    """The kernel's counts a run; `None` where they could not be read."""

    user_s: float
    system_s: float
    minor_faults: float
    major_faults: float
    voluntary_switches: float
    involuntary_switches: float
    read_chars: float | None = None
    read_calls: float | None = None
    written_chars: float | None = None
    write_calls: float | None = None
    device_read_bytes: float | None = None
    device_written_bytes: float | None = None


class Lane(msgspec.Struct, frozen=True):
    """What one thread did."""

    process: int
    thread: int
    spans: tuple[tuple[float, float, int, float], ...]
    """From when, for how long (seconds), a number into `thread_names`, and which share of it that was."""


class StageSpans(msgspec.Struct, frozen=True):
    """When a thread was in a stage. Process or thread 0: as a whole."""

    name: str
    process: int
    thread: int
    spans: tuple[tuple[float, float, int, float], ...]
    """From when, for how long, how often it ran, and for how long of it (seconds)."""


class Timeline(msgspec.Struct, frozen=True):
    """The timeline of one run, the first of those combined: times are seconds since it was started."""

    bin_s: float
    names: tuple[str, ...]
    bins: tuple[tuple[float, ...], ...]
    """Seconds of each category by bin; they sum to the ledger of that run."""
    thread_names: tuple[str, ...] = ()
    threads: tuple[Lane, ...] = ()
    threads_left_out: int = 0
    grain_s: float = 0.0
    stages: tuple[StageSpans, ...] = ()

    @property
    def end_s(self) -> float:
        """When the run was over."""
        return sum(map(sum, self.bins))


class Stage(msgspec.Struct, frozen=True):
    """A stage that the program marks: figures of one run, the mean where there were several."""

    name: str
    """Empty: outside all stages."""
    share: float
    """Of wall time, as the innermost stage; all stages sum to 1, and `categories` to this."""
    seconds: float
    categories: tuple[Part, ...]
    count: float
    thread_s: float
    """In it and in stages within it, summed over threads."""
    bytes: float | None = None

    @property
    def rate(self) -> float | None:
        """Bytes a second of its threads' time; `None` where it marks no bytes."""
        return self.bytes / self.thread_s if self.bytes and self.thread_s > 0 else None


class Stack(msgspec.Struct, frozen=True):
    """A stack that was sampled, outermost function first."""

    name: str
    frames: tuple[str, ...]
    share: float


class Counts(msgspec.Struct, frozen=True):
    """What of a function or a line counts as a category, of wall time."""

    name: str
    share: float


class Symbol(msgspec.Struct, frozen=True):
    """A function, by the samples that fell in it; in brackets: several as one row."""

    name: str
    object: str
    share: float
    low: float
    high: float
    cpu_share: float
    category: str | None = None
    categories: tuple[Counts, ...] = ()
    """Where it counts as several: its share by category, the largest first."""


class SourceLine(msgspec.Struct, frozen=True):
    """A source line, by the samples that fell in its code; without a file: what has no line."""

    function: str
    object: str
    share: float
    low: float
    high: float
    cpu_share: float
    file: str | None = None
    line: int | None = None
    category: str | None = None
    categories: tuple[Counts, ...] = ()


class PythonPlace(msgspec.Struct, frozen=True):
    """A function or a line of Python code: its own share of wall time, and that with what it calls."""

    name: str
    share: float
    low: float
    high: float
    within: float
    busy_share: float
    file: str | None = None
    line: int | None = None


class PythonStack(msgspec.Struct, frozen=True):
    """A stack of Python functions, outermost first."""

    frames: tuple[str, ...]
    share: float
    running: float


class PythonCode(msgspec.Struct, frozen=True):
    """Where a Python program was in its own code, by reading the interpreter's frames now and then."""

    versions: tuple[str, ...]
    reads: int
    torn: int
    nameless_share: float
    functions: tuple[PythonPlace, ...]
    lines: tuple[PythonPlace, ...]
    stacks: tuple[PythonStack, ...] = ()
    refused: str | None = None


class Explained(msgspec.Struct, frozen=True):
    """Where the wall time of a program went."""

    rules_version: int
    program: Program
    runs: int
    wall_s: float
    level: Level
    levels: tuple[Rung, ...]
    categories: tuple[Row, ...]
    closure: Closure
    observer: Observer
    threads: Threads
    processes: tuple[Process, ...]
    counters: Counters
    timeline: Timeline
    computing: Bounds = Bounds()
    """All user code, with what the kernel does for its allocator: more is known of it than of its rows."""
    calibration: Calibration | None = None
    """By which the counts of kernel work became time."""
    calibration_kept: bool = False
    """It was measured before this program."""
    files: Files = Files()
    locks: tuple[Lock, ...] = ()
    """Of the same run, longest first."""
    pauses: tuple[Pauses, ...] = ()
    """Of the same run, those that took longest first."""
    calls: Calls | None = None
    """Of the same run, where each call was recorded."""
    path: Path | None = None
    """Of the same run."""
    raise_: str | None = msgspec.field(default=None, name="raise")
    nameless_share: float | None = None
    stacks: tuple[Stack, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    """The twenty heaviest functions, and the rest as one row: they sum to the time on a CPU."""
    lines: tuple[SourceLine, ...] = ()
    about_symbols: str = ""
    about_lines: str = ""
    about_path: str = ""
    """How `path` came about, or why there is none."""
    python: PythonCode | None = None
    stages: tuple[Stage, ...] = ()
    notes: tuple[str, ...] = ()
    best_of_s: tuple[float, ...] = ()
    """Wall times of the runs of which this is the fastest; empty where that was not asked for."""

    def row(self, name: str) -> Row | None:
        """The category of this name; `None` where this level cannot know it."""
        return next((row for row in self.categories if row.name == name), None)

    def rows(self, names: Collection[str]) -> list[Row]:
        """The categories of these names."""
        return [row for row in self.categories if row.name in names]

    def known(self, *names: str) -> list[Row]:
        """Rows of these categories, and what counts give them of the kernel's work that is left whole."""
        kernel = self.row("kernel-cpu")
        within = kernel.within if kernel else ()
        return self.rows(names) + [
            Row(each.name, each.share, each.low, each.high, each.share * self.wall_s, "modelled")
            for each in within
            if each.name in names
        ]

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """The critical path, where most of it was recorded and not all of it is one process's."""
        path = self._known_path
        several = len({(step.process, step.name) for step in path.steps}) > 1
        return path.steps if several else ()

    @property
    def ended_waits(self) -> tuple[EndedWait, ...]:
        """Waits by who ended them, where most was recorded and threads of the program ended some."""
        path = self._known_path
        return path.ended if any(wait.by_name is not None for wait in path.ended) else ()

    @property
    def _known_path(self) -> Path:
        if self.path is None or self.path.recorded_share < _MOSTLY:
            return Path(0.0)
        return self.path

    def share(self, *names: str) -> float:
        """Share of wall time of these categories together, as far as it is known."""
        return sum(row.share for row in self.known(*names))

    def seconds(self, *names: str) -> float:
        """The same as wall time."""
        return sum(row.seconds for row in self.known(*names))
