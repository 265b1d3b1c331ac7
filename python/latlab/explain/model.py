"""The ledger of a program's wall time, decoded. `crates/latlab-explain/src/model.rs` owns the names."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

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
    looks: int
    samples: int
    switches: int
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
    max_resident_bytes: int
    run_queue_s: float | None = None
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


class Moved(msgspec.Struct, frozen=True):
    """Bytes read or written."""

    bytes: float
    inferred: float
    """Of them: no position moved, and no other descriptor was seen waited in."""
    block_known: float
    busy_s: float
    block_bytes: float | None = None

    @property
    def rate(self) -> float | None:
        """Bytes a second while they moved; `None` where only one scan saw them."""
        return self.bytes / self.busy_s if self.busy_s > 0 else None


class File(msgspec.Struct, frozen=True):
    """One file, pipe or socket of one process."""

    name: str
    kind: str
    process: int
    process_name: str
    descriptors: tuple[int, ...]
    opened: int
    seeks: int
    from_s: float
    to_s: float
    read: Moved | None = None
    written: Moved | None = None
    round_trip_s: float | None = None
    """Of a TCP connection."""
    sent_again: int | None = None
    """Segments of a TCP connection."""


class Files(msgspec.Struct, frozen=True):
    """What the same run read and wrote, as far as it was found open."""

    rows: tuple[File, ...] = ()
    looks: int = 0
    left_out: int = 0
    read_share: float | None = None
    """Of the bytes that the kernel counted."""
    written_share: float | None = None
    counted_read_bytes: float | None = None
    counted_written_bytes: float | None = None
    refused: bool = False
    every_s: float | None = None
    """From one scan of all processes to the next, the mean."""
    by_position: bool = False
    """The kernel did not say which descriptors share a position: those that stood together count as one."""


class Holder(msgspec.Struct, frozen=True):
    """A thread that had a lock while others waited for it."""

    thread: int
    name: str
    share: float
    """Of the time waited."""


class Lock(msgspec.Struct, frozen=True):
    """A lock at which threads were met waiting; each scan counts for the time since the one before."""

    object: str
    """The file that its variable is in, without its folder; `[heap]`, `[stack]`, `memory`."""
    address: str
    process: int
    waited_s: float
    """Of all threads together."""
    threads: int
    looks: int
    name: str | None = None
    """The variable, where its file names one."""
    holders: tuple[Holder, ...] = ()

    @property
    def called(self) -> str:
        """`counter_lock of server`, or where it lies and its address."""
        return f"{self.name} of {self.object}" if self.name else f"{self.address} in {self.object}"


class Pauses(msgspec.Struct, frozen=True):
    """How often and how long a runtime stopped its program, by its own counters or functions."""

    process: int
    kind: str
    times: int
    seconds: float
    longest_s: float | None = None
    """The longest of those that a scan found to be over."""
    runtime: str = "Java"
    """Or Go, or V8."""
    is_least: bool = False
    """Some are not counted: the first ones, or those after the last scan of a process that has ended."""

    @property
    def called(self) -> str:
        """`Go: garbage collection pauses`."""
        return f"{self.runtime}: {self.kind}"


class CallError(msgspec.Struct, frozen=True):
    """An error that calls of one kind returned, as `ENOENT`, and how often."""

    name: str
    times: int


class CallSum(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one kind, or on one file, by the records of each."""

    times: int
    """How many came back."""
    seconds: float
    """From call to return, waiting included, of all threads together."""
    longest_s: float
    errors: tuple[CallError, ...] = ()
    """Most frequent first."""


class Call(CallSum, frozen=True, kw_only=True):
    """All calls of one kind."""

    name: str


class CallsOn(CallSum, frozen=True, kw_only=True):
    """All calls on one file, pipe, socket or device of one process."""

    process: int
    process_name: str
    read_bytes: int
    """What calls returned that read."""
    written_bytes: int
    name: str | None = None
    """`None`: no name is known, as of what was closed before it was asked for."""
    kind: str | None = None


class Calls(msgspec.Struct, frozen=True):
    """What a program asked of the kernel, those calls first that took longest."""

    of: tuple[Call, ...]
    lost: int
    """Records that there was no room for: as many more calls may have begun or come back."""
    on: tuple[CallsOn, ...] = ()
    """The same by file; calls without a descriptor are in none."""
    left_out: int = 0
    """Files of processes that are not among them."""
    has_narrow: bool = False
    """Programs of 32 bits ran; their calls are in no row."""
    restarts: int = 0
    """How often recording ended and began again: calls of the moments between are in no row."""


class PathStep(msgspec.Struct, frozen=True):
    """Who did what on the critical path."""

    name: str
    """Of the thread; `others` for the rest."""
    share: float
    """Of the time that was recorded."""
    seconds: float
    process: int | None = None
    """`None`: several of one name, or the rest."""
    doing: str | None = None
    """A category that it waited in, or `on-cpu`; `None` for the rest."""

    @property
    def called(self) -> str:
        """`sort (4711)`."""
        return _called(self.name, self.process)


class EndedWait(msgspec.Struct, frozen=True):
    """Waits of threads, by who ended them."""

    name: str
    category: str
    seconds: float
    """Of all such threads together."""
    count: int
    process: int | None = None
    by_process: int | None = None
    by_name: str | None = None
    """`None`: no thread of the program."""

    @property
    def called(self) -> str:
        """Who waited: `sort (4711)`."""
        return _called(self.name, self.process)

    @property
    def ended_by(self) -> str:
        """`tr (4710)`."""
        return "nobody of the program" if self.by_name is None else _called(self.by_name, self.by_process)


def _called(name: str, process: int | None) -> str:
    return name if process is None else f"{name} ({process})"


class Path(msgspec.Struct, frozen=True):
    """What the end of a program hung on; the longest steps and waits first."""

    recorded_share: float
    steps: tuple[PathStep, ...] = ()
    """They sum to the time that was recorded; empty where the end was not."""
    ended: tuple[EndedWait, ...] = ()


class Times(msgspec.Struct, frozen=True):
    """A distribution of times, encoded as in run files."""

    encoding: str
    unit: str
    data: str


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
    own_thread_s: float
    range_ns: tuple[float, float]
    bytes: float | None = None
    histogram: Times | None = None
    cut: float = 0.0


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

    version: int
    rules_version: int
    program: Program
    runs: int
    wall_s: float
    wall_range_s: tuple[float, float]
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

    def known(self, *names: str) -> list[Row]:
        """Rows of these categories, and what counts give them of the kernel's work that is left whole."""
        kernel = self.row("kernel-cpu")
        within = kernel.within if kernel else ()
        rows = [row for row in self.categories if row.name in names]
        return rows + [
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
