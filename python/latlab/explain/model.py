"""The ledger of a program's wall time, decoded. `crates/latlab-ledger/src/model.rs` owns the names."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Level = Literal[1, 2, 3]
Method = Literal["counted", "sampled", "modelled"]

USER_CODE: Final = ("compute", "memory-copy", "allocator", "garbage-collection")
"""What only samples of user code tell apart; without them there is `user-cpu`."""


class Part(msgspec.Struct, frozen=True):
    """A part of a row: shares are of wall time."""

    name: str
    share: float
    seconds: float


class Function(msgspec.Struct, frozen=True):
    """A function that samples fell in."""

    name: str
    object: str
    share: float


class Within(msgspec.Struct, frozen=True):
    """What a row may contain that cannot be told apart there."""

    name: str
    low: float
    high: float


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


class Bound(msgspec.Struct, frozen=True, rename={"condition": "if"}):
    """What could be saved at most."""

    name: str
    condition: str
    wall_s_at_least: float
    saved_at_most: float


class Program(msgspec.Struct, frozen=True):
    """What was run, and how it ended."""

    arguments: tuple[str, ...]
    pid: int
    exit_code: int | None = None
    signal: int | None = None
    left_running: int = 0


class Rung(msgspec.Struct, frozen=True):
    """One level of sight: whether it is there, and if not, why not."""

    level: Level
    name: str
    available: bool
    reason: str | None = None


class Closure(msgspec.Struct, frozen=True):
    """The check that every instant was given away once."""

    sum: float
    holds: bool


class Observer(msgspec.Struct, frozen=True):
    """What watching cost."""

    share: float
    watcher_share: float
    recorded_share: float
    looks: int
    samples: int
    switches: int
    lost: int


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


class Timeline(msgspec.Struct, frozen=True):
    """Seconds of each category, by bin of the first run."""

    bin_s: float
    names: tuple[str, ...]
    bins: tuple[tuple[float, ...], ...]


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
    bounds: tuple[Bound, ...]
    closure: Closure
    observer: Observer
    threads: Threads
    processes: tuple[Process, ...]
    counters: Counters
    timeline: Timeline
    raise_: str | None = msgspec.field(default=None, name="raise")
    nameless_share: float | None = None
    stacks: tuple[Stack, ...] = ()
    stages: tuple[Stage, ...] = ()
    notes: tuple[str, ...] = ()

    def row(self, name: str) -> Row | None:
        """The category of this name; `None` where this level cannot know it."""
        return next((row for row in self.categories if row.name == name), None)

    def share(self, *names: str) -> float:
        """Share of wall time of these categories together."""
        return sum(row.share for row in self.categories if row.name in names)
