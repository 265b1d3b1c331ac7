"""What a program used and waited for by name, decoded: files, locks, pauses, calls, the critical path."""

from __future__ import annotations

import msgspec


class Moved(msgspec.Struct, frozen=True):
    """Bytes read or written."""

    bytes: float
    inferred: float
    """Of them: no position moved, and no other descriptor was seen waited in."""
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
    read: Moved | None = None
    written: Moved | None = None
    round_trip_s: float | None = None
    """Of a TCP connection."""
    sent_again: int | None = None
    """Segments of a TCP connection."""


class Files(msgspec.Struct, frozen=True):
    """What the same run read and wrote, as far as it was found open."""

    rows: tuple[File, ...] = ()
    scans: int = msgspec.field(default=0, name="looks")
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
    scans: int = msgspec.field(name="looks")
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
        return "no thread of the program" if self.by_name is None else _called(self.by_name, self.by_process)


def _called(name: str, process: int | None) -> str:
    return name if process is None else f"{name} ({process})"


class Path(msgspec.Struct, frozen=True):
    """What the end of a program hung on; the longest steps and waits first."""

    recorded_share: float
    steps: tuple[PathStep, ...] = ()
    """They sum to the time that was recorded; empty where the end was not."""
    ended: tuple[EndedWait, ...] = ()
