"""The program beside this machine: its own sizes and rates next to measured limits, and what could be saved.

Two kinds of bound. `free`: a category took no time. `limit`: it ran at this machine's measured speed.
File I/O counts as a whole, the kernel's work for it as well as the waiting.

The ledger gives an instant to what the threads that run do, each a part of it. With one thread running
at a time a category's share is what it costs. With several, one thread may hold up the others, and what
it does then costs more than its part of the instant: `saving_most` has all thread-time of the category,
and no saving can exceed that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import msgspec

from latlab.explain.limits import Limits, Speed
from latlab.explain.model import USER_CODE, Explained, Row
from latlab.units import format_bytes, format_count, format_ns, format_rate

FILE_IO: Final = ("storage-wait", "file-io-cpu")
WORTH_JUDGING: Final = 0.03
"""Smaller shares are not looked at: of wall time without waits for a CPU, which other programs cause."""
_WAITS: Final = (
    "storage-wait",
    "network",
    "pipe",
    "locks",
    "run-queue-wait",
    "sleep",
    "waiting-for-children",
)
_MAPPED: Final = frozenset({"reading for page faults", "page fault"})
"""Parts of file I/O that a touched page of a mapping causes, no call."""
_NEITHER: Final = frozenset({"flushing", "names and metadata"})
"""Parts of file I/O that are no transfer."""
_TOLD: Final = {"reading": 1.0, "writing": 0.0}
"""How much of a part is reading, where its name says it."""
_TOUCHING: Final = (*USER_CODE, "user-cpu", "page-faults")
"""What touches pages of mappings."""
_TOUCHED: Final = 64 << 10
"""The block size at which a disk and memory are compared."""
_NEXT_TO_NOTHING: Final = 0.01
"""A direction with a smaller part of the bytes gets none of the waiting that may be either's."""
_KNOWN_TO: Final = 0.005
_SHORT_S: Final = 0.05
_SMALL_READ: Final = 16 << 10
"""A read at a random place is a small one: larger ones are compared with reading in order."""
_PAGE: Final = 4096
_HUGE_PAGE: Final = 2 << 20


class Bound(msgspec.Struct, frozen=True):
    """What could be saved, as wall time and as a share of it.

    Attributes:
        name: a category, or `file-io`: storage-wait and file-io-cpu together.
        kind: `free`: it took no time; `limit`: it ran at a measured limit of this machine.
        limit: which limit; empty for `free`.
        categories: what is taken as saved.
        wall_s: wall time now.
        low_s: wall time then, at least.
        high_s: at most.
        saving_low: share of wall time, lower end.
        saving_high: upper end.
        saving_most: for several threads: if this is all on the one path that the program waits for.
        why: how it is calculated, and from what.
    """

    name: str
    kind: Literal["free", "limit"]
    categories: tuple[str, ...]
    wall_s: float
    low_s: float
    high_s: float
    saving_low: float
    saving_high: float
    saving_most: float
    why: str
    limit: str = ""


class Limit(msgspec.Struct, frozen=True):
    """A measured limit at the program's own size."""

    name: str
    each_ns: tuple[float, float]
    source: str
    bytes_per_s: tuple[float, float] | None = None


class Judged(msgspec.Struct, frozen=True):
    """One thing that the program did, by the kernel's counters, beside what this machine can do.

    Attributes:
        name: `reading`, `writing`, `page-faults`, `waits`, `allocating`.
        count: how often; None where nothing counts it.
        seconds: wall time that the ledger gives it.
        limits: measured figures at `size_bytes`.
        says: a sentence.
        bytes: how many.
        size_bytes: mean of one; the counters know no more of sizes.
        each_ns: wall time of one, from and to: the ledger's interval.
        bytes_per_s: rate during that time, from and to.
    """

    name: str
    count: float | None
    seconds: float
    limits: tuple[Limit, ...]
    says: str
    bytes: float | None = None
    size_bytes: float | None = None
    each_ns: tuple[float, float | None] | None = None
    bytes_per_s: tuple[float, float | None] | None = None


class Judgement(msgspec.Struct, frozen=True):
    """All of it."""

    bounds: tuple[Bound, ...] = ()
    judged: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()
    beside_reading: float = 0.0
    """Share of wall time, at most, that reading from a disk costs outside of file I/O."""

    def free(self, *categories: str) -> Bound | None:
        """The bound of exactly these categories at no cost."""
        return next(
            (bound for bound in self.bounds if bound.kind == "free" and bound.categories == categories), None
        )

    def limit(self, limit: str) -> Bound | None:
        """The bound at one of the limits."""
        return next((bound for bound in self.bounds if bound.limit == limit), None)


def undisturbed(explained: Explained) -> float:
    """Share of wall time in which it did not wait for a CPU."""
    return max(1.0 - explained.share("run-queue-wait"), 1e-6)


def weight(explained: Explained, *names: str) -> float:
    """Share of that time which these categories take."""
    return explained.share(*names) / undisturbed(explained)


def wanted(explained: Explained) -> list[str]:
    """Names of the limits that there is something to judge by."""
    counters = explained.counters
    names: list[str] = []
    if weight(explained, *FILE_IO) >= WORTH_JUDGING:
        moved = _io_seconds(explained)
        if counters.read_chars and moved.reading + moved.mapped > 0:
            names += ["read-memory", "read-disk"]
            if _mean(counters.read_chars, counters.read_calls)[0] <= _SMALL_READ:
                names.append("read-random")
        if counters.written_chars and moved.writing > 0:
            names.append("write-memory")
    if weight(explained, "page-faults") >= WORTH_JUDGING and counters.minor_faults:
        names += ["fault", "fault-huge"]
    if weight(explained, "pipe", "locks") >= WORTH_JUDGING and counters.voluntary_switches:
        names.append("switch")
    if weight(explained, "allocator") >= WORTH_JUDGING:
        names.append("malloc")
    return names


def worth_measuring_for(explained: Explained) -> bool:
    """Whether anybody waits some seconds for limits: not after a short program, nor one that failed."""
    program = explained.program
    return explained.wall_s >= _SHORT_S and program.signal is None and not program.exit_code


def judge(explained: Explained, limits: Limits) -> Judgement:
    """The program beside this machine."""
    judged = [
        *_reading(explained, limits),
        *_writing(explained, limits),
        *_faults(explained, limits),
        *_waits(explained, limits),
        *_allocating(explained, limits),
    ]
    beside_s = _beside_reading(explained, limits)
    bounds = [
        *free_bounds(explained),
        *_reading_bounds(explained, limits, beside_s),
        *_fault_bounds(explained, limits),
    ]
    beside = beside_s / max(explained.wall_s, 1e-12)
    # What cannot be kept is said once.
    notes = tuple(note for note in limits.notes if note not in explained.notes)
    return Judgement(tuple(bounds), tuple(judged), notes, beside)


# ---- if it were free


def free_bounds(explained: Explained) -> list[Bound]:
    """Each category at no cost, the largest first; file I/O as a whole, too."""
    bounds = []
    io = {row.name for row in explained.known(*FILE_IO) if row.high > 0}
    if len(io) == len(FILE_IO):
        bounds.append(free_bound(explained, FILE_IO, "file-io"))
    kernel = explained.row("kernel-cpu")
    counted = [each.name for each in kernel.counted] if kernel else []
    rows = [row.name for row in explained.categories if row.name != "unexplained" and row.high > 0]
    bounds += [free_bound(explained, (name,), name) for name in dict.fromkeys([*rows, *counted])]
    user = explained.row("user-cpu")
    for within in user.within if user else ():
        bounds.append(
            _bound(
                explained,
                name=within.name,
                categories=(within.name,),
                saving=(within.low, within.high),
                most=_most(explained, "user-cpu", within.high),
                why="this level cannot look into the program's own code: between none and all of it",
            )
        )
    return sorted(bounds, key=lambda bound: -bound.saving_high)


def free_bound(explained: Explained, categories: tuple[str, ...], name: str) -> Bound:
    """What is saved if these categories took no time at all."""
    low, high, most = saving(explained, categories)
    why = "share of wall time in the ledger, with its interval"
    if name == "file-io":
        why += "; the kernel's work for files as well as waiting for them"
    if most > high + _KNOWN_TO:
        why += (
            "; a thread counts as its part of those that run, which is wall time already: more can be saved"
            " only where this is on the path that the others wait for"
        )
    return _bound(explained, name=name, categories=categories, saving=(low, high), most=most, why=why)


def saving(explained: Explained, categories: tuple[str, ...]) -> tuple[float, float, float]:
    """Share of wall time of these categories: lower end, upper end, and with all their thread-time."""
    rows = explained.known(*categories)
    share = sum(row.share for row in rows)
    low = max(share - sum((row.share - row.low) ** 2 for row in rows) ** 0.5, 0.0)
    high = min(share + sum((row.high - row.share) ** 2 for row in rows) ** 0.5, 1.0)
    beyond = sum(_most(explained, row.name, row.high) - row.high for row in rows)
    return low, high, min(high + beyond, 1.0)


def _most(explained: Explained, name: str, high: float) -> float:
    """Thread-time of a category over wall time, at most.

    On the CPU, with n threads running at most and p on average: n of them can run together only for so long
    that the average comes out. Waiting: the threads' waits added up, those behind running threads with them.
    """
    threads = explained.threads
    if threads.most <= 1:
        return high
    waits = sum(wait.seconds for wait in threads.waits if wait.name == name)
    if name in _WAITS and explained.wall_s > 0:
        return min(max(high, waits / explained.wall_s), 1.0)
    idle = explained.share(*_WAITS)
    beyond = max(threads.parallelism - 1.0, 0.0) * max(1.0 - idle, 0.0)
    return min(high + min((threads.most - 1) * high, beyond), 1.0)


# ---- at the limits


def _reading_bounds(explained: Explained, limits: Limits, beside_s: float) -> list[Bound]:
    counters = explained.counters
    read_s = _io_seconds(explained).reading
    size, count, total = _mean(counters.read_chars, counters.read_calls)
    memory = limits.at("read-memory", size) if count else None
    if memory is None or (read_s <= 0 and not counters.device_read_bytes):
        return []
    floor = (count * memory.low / 1e9, count * memory.high / 1e9)
    why = (
        f"all {format_bytes(total)} from memory, {format_bytes(size)} at a time, at {_rates(memory)}:"
        f" {limits.source('read-memory')}"
    )
    bounds = [_from_memory(explained, floor, beside_s, why)]
    disk = limits.at("read-disk", size)
    cold = min(counters.device_read_bytes or 0.0, total)
    if disk is None or cold <= 0 or read_s <= 0:
        return bounds
    share = cold / total
    low, high = (
        count * (share * cold_ns + (1 - share) * warm_ns) / 1e9
        for cold_ns, warm_ns in ((disk.low, memory.low), (disk.high, memory.high))
    )
    why = f"{format_bytes(cold)} from the disk in order at {_rates(disk)}, the rest from memory:"
    source = limits.source("read-disk")
    return [*bounds, _at_limit(explained, "file-io", "read-disk", read_s, (low, high), f"{why} {source}")]


def _from_memory(explained: Explained, floor: tuple[float, float], beside_s: float, why: str) -> Bound:
    """If all that was read had been in memory.

    Waiting for the disk is gone, and so is what the kernel does to read a page of a mapping. The calls take
    what they take at the limit, and at most what they take now. What a disk costs outside of file I/O may be
    gone too, and so is what watching cost, which is in the ledger's rows.
    """
    wall = max(explained.wall_s, 1e-12)
    low = high = 0.0
    for row in explained.known(*FILE_IO):
        moved = _moved(explained, [row])
        narrow, wide = (row.low / row.share, row.high / row.share) if row.share > 0 else (1.0, 1.0)
        fast, slow = floor if row.name == "file-io-cpu" else (0.0, 0.0)
        low += max(moved.reading * narrow - slow, 0.0) + moved.mapped * narrow
        high += max(moved.reading * wide - fast, 0.0) + moved.mapped * wide
    if beside_s > 0:
        why += "; what reading from a disk costs elsewhere (interrupts, first touches) between none and all"
    high += beside_s + explained.observer.share * explained.threads.cpu_s
    of_all = saving(explained, FILE_IO)
    beyond, most = of_all[2] - of_all[1], undisturbed(explained)
    return _bound(
        explained,
        name="file-io",
        categories=FILE_IO,
        saving=(min(low / wall, most), min(high / wall, most)),
        most=min(high / wall + (beyond if beyond > _KNOWN_TO else 0.0), most),
        why=why,
        limit="read-memory",
    )


def _beside_reading(explained: Explained, limits: Limits) -> float:
    """Seconds, at most, that reading from a disk costs outside of file I/O.

    Interrupts of the disk come on top of whatever runs. Pages that a disk has filled are touched by the
    program itself where it maps them: under a hypervisor the first touch of each can cost microseconds in
    whatever code touches it, and no kernel sees that. It is in the difference between this disk and memory.
    """
    cold = explained.counters.device_read_bytes
    if not cold:
        return 0.0
    interrupts = sum(row.high for row in explained.known("interrupts-for-others")) * explained.wall_s
    mapped = max(cold - (explained.counters.read_chars or 0.0), 0.0)
    if not mapped:
        return interrupts
    touching = sum(row.high for row in explained.known(*_TOUCHING)) * explained.wall_s
    disk, memory = (limits.at(name, _TOUCHED) for name in ("read-disk", "read-memory"))
    if disk is None or memory is None:
        return interrupts + touching * mapped / cold
    return interrupts + min(touching, mapped / _TOUCHED * max(disk.high - memory.low, 0.0) / 1e9)


def _fault_bounds(explained: Explained, limits: Limits) -> list[Bound]:
    seconds, count = _seconds(explained, "page-faults"), explained.counters.minor_faults
    if seconds <= 0 or not count:
        return []
    bounds = []
    for name, n, what in (
        ("fault", count, f"{format_count(count)} faults at {{}} each"),
        (
            "fault-huge",
            count * _PAGE / _HUGE_PAGE,
            "the same memory in pages of 2 MiB at {} each, if all of it could be",
        ),
    ):
        each = limits.at(name)
        if each is not None:
            why = f"{what.format(_times(each))}: {limits.source(name)}"
            floor = (n * each.low / 1e9, n * each.high / 1e9)
            bounds.append(_at_limit(explained, "page-faults", name, seconds, floor, why))
    return bounds


def _at_limit(
    explained: Explained,
    name: str,
    limit: str,
    seconds: float,
    floor: tuple[float, float],
    why: str,
) -> Bound:
    """`seconds` of a category replaced by what they take at the limit; never slower than now."""
    categories = FILE_IO if name == "file-io" else (name,)
    wall = max(explained.wall_s, 1e-12)
    low, high, most = saving(explained, categories)
    share = explained.share(*categories)
    now = seconds / wall
    # The part that is replaced is known as well as the categories that it is of.
    narrow, wide = (low / share, high / share) if share > 0 else (1.0, 1.0)
    saved_high = max(now * wide - floor[0] / wall, 0.0)
    saved_low = max(now * narrow - floor[1] / wall, 0.0)
    return _bound(
        explained,
        name=name,
        categories=categories,
        saving=(saved_low, saved_high),
        most=max(saved_high, most - floor[0] / wall if most > high + _KNOWN_TO else 0.0),
        why=why,
        limit=limit,
    )


def _bound(
    explained: Explained,
    *,
    name: str,
    categories: tuple[str, ...],
    saving: tuple[float, float],
    most: float,
    why: str,
    limit: str = "",
) -> Bound:
    wall = explained.wall_s
    return Bound(
        name=name,
        kind="limit" if limit else "free",
        limit=limit,
        categories=categories,
        wall_s=wall,
        low_s=wall * (1 - saving[1]),
        high_s=wall * (1 - saving[0]),
        saving_low=saving[0],
        saving_high=saving[1],
        saving_most=most,
        why=why,
    )


# ---- what the program did


def _reading(explained: Explained, limits: Limits) -> list[Judged]:
    counters = explained.counters
    moved = _io_seconds(explained)
    size, count, total = _mean(counters.read_chars, counters.read_calls)
    if not count or not _worth(explained, moved.reading):
        return []
    names = ["read-memory"]
    cold = counters.device_read_bytes or 0.0
    if cold > 0.01 * total:
        names.append("read-disk")
        if size <= _SMALL_READ:
            names.append("read-random")
    also = f"; {format_bytes(min(cold, total))} came from a disk" if cold else ""
    pipes = ""
    if explained.share("pipe") > 0.01:  # noqa: PLR2004 - then a visible part of the calls were not of files
        pipes = " Reads of pipes are among them: the kernel counts them together."
    return [_moving(explained, limits, names, "reading", moved, (also, pipes))]


def _writing(explained: Explained, limits: Limits) -> list[Judged]:
    counters = explained.counters
    moved = _io_seconds(explained)
    _, count, _ = _mean(counters.written_chars, counters.write_calls)
    if not count or not _worth(explained, moved.writing):
        return []
    return [_moving(explained, limits, ["write-memory"], "writing", moved)]


def _worth(explained: Explained, seconds: float) -> bool:
    return seconds >= WORTH_JUDGING * undisturbed(explained) * explained.wall_s


def _moving(
    explained: Explained,
    limits: Limits,
    names: list[str],
    name: Literal["reading", "writing"],
    moved: _Moved,
    more: tuple[str, str] = ("", ""),
) -> Judged:
    """All calls of one kind; `more` is said after their rate, and at the end."""
    counters = explained.counters
    verb, seconds, size, count, total = (
        ("read", moved.reading, *_mean(counters.read_chars, counters.read_calls))
        if name == "reading"
        else ("wrote", moved.writing, *_mean(counters.written_chars, counters.write_calls))
    )
    calls = "1 call" if count == 1 else f"{format_count(count)} calls, {format_bytes(size)} each on average"
    apart = (
        "" if moved.told_apart else ", if a byte costs the same both ways (the two were not distinguished)"
    )
    least, most = _known(explained, FILE_IO, seconds)
    rate = (total / most, total / least if least > 0 else None)
    says = (
        f"It {verb} {format_bytes(total)} in {calls}, at {_range(rate, format_rate)} while it was"
        f" {name}{apart}{more[0]}."
        f" {_compared(limits, names, size)}"
    )
    return Judged(
        name=name,
        count=count,
        seconds=seconds,
        limits=_limits(limits, names, size),
        says=says.rstrip() + more[1],
        bytes=total,
        size_bytes=size,
        each_ns=(1e9 * least / count, 1e9 * most / count),
        bytes_per_s=rate,
    )


def _faults(explained: Explained, limits: Limits) -> list[Judged]:
    seconds, count = _seconds(explained, "page-faults"), explained.counters.minor_faults
    if not count or weight(explained, "page-faults") < WORTH_JUDGING:
        return []
    least, most = _known(explained, ("page-faults",), seconds)
    each = (1e9 * least / count, 1e9 * most / count)
    says = f"It had {format_count(count)} page faults, {_range(each, format_ns)} each."
    speed = limits.at("fault")
    if speed is not None:
        says += f" This machine takes {_times(speed)} for one on new memory ({limits.source('fault')})."
    return [
        Judged(
            name="page-faults",
            count=count,
            seconds=seconds,
            limits=_limits(limits, ["fault", "fault-huge"], 0),
            says=says,
            each_ns=each,
        )
    ]


def _known(explained: Explained, categories: tuple[str, ...], seconds: float) -> tuple[float, float]:
    """Seconds of a part of these categories, from and to: known as well as they are."""
    low, high, _ = saving(explained, categories)
    share = explained.share(*categories)
    return (seconds * low / share, seconds * high / share) if share > 0 else (seconds, seconds)


def _range(ends: tuple[float, float | None], form: Callable[[float], str]) -> str:
    low, high = ends
    if high is None:
        return f"at least {form(low)}"
    return _span(low, high, form) if low > 0 else f"at most {form(high)}"


def _waits(explained: Explained, limits: Limits) -> list[Judged]:
    count = explained.counters.voluntary_switches
    if weight(explained, "pipe", "locks") < WORTH_JUDGING or not count:
        return []
    seconds = _seconds(explained, "pipe", "locks")
    says = f"Its threads blocked {format_count(count)} times."
    speed = limits.at("switch")
    if speed is not None:
        half = Speed(0, speed.low / 2, speed.mid / 2, speed.high / 2)
        says += f" A switch takes {_times(half)} here on one CPU ({limits.source('switch')})."
    return [Judged("waits", count, seconds, _limits(limits, ["switch"], 0), says)]


def _allocating(explained: Explained, limits: Limits) -> list[Judged]:
    seconds = _seconds(explained, "allocator")
    if weight(explained, "allocator") < WORTH_JUDGING:
        return []
    says = "Its allocations are not counted: that would slow it down."
    speed = limits.at("malloc")
    if speed is not None:
        least, longest = _known(explained, ("allocator",), seconds)
        fewest, most = 1e9 * least / speed.high, 1e9 * longest / speed.low
        says = (
            f"It allocated as long as {format_count(fewest)} to {format_count(most)} pairs of malloc and free"
            f" of at most 256 bytes take here, {_times(speed)} each ({limits.source('malloc')})."
        )
    return [Judged("allocating", None, seconds, _limits(limits, ["malloc"], 0), says)]


_SHOWN: Final = {
    "read-memory": "from memory",
    "read-disk": "from this disk in order",
    "read-random": "from this disk at random places",
    "write-memory": "into memory",
}


def _compared(limits: Limits, names: list[str], size: float) -> str:
    """What the machine does at this size; each source is named once."""
    known = [(name, speed) for name in names if (speed := limits.at(name, size)) is not None]
    if not known:
        return ""
    by_source: dict[str, list[str]] = {}
    for name, speed in known:
        shown = speed
        text = f"{_rates(shown)} {_SHOWN[name]}"
        if name == "read-random":
            text = f"{_times(limits.curves[name].at())} a read {_SHOWN[name]}"
        by_source.setdefault(limits.source(name), []).append(text)
    said = "; ".join(f"{', '.join(texts)} ({source})" for source, texts in by_source.items())
    return f"At that size this machine gives {said}."


def _limits(limits: Limits, names: list[str], size: float) -> tuple[Limit, ...]:
    found = []
    for name in names:
        speed = limits.at(name, size)
        if speed is not None:
            rates = speed.rates if speed.size_bytes else None
            found.append(Limit(name, (speed.low, speed.high), limits.source(name), rates))
    return tuple(found)


class _Moved(NamedTuple):
    """Wall time of file I/O in read calls, in write calls and for pages of mappings, in seconds.

    `told_apart`: most of the calls' was seen to be one or the other; else the bytes decide.
    """

    reading: float
    writing: float
    mapped: float
    told_apart: bool


def _io_seconds(explained: Explained) -> _Moved:
    """Names and flushes are neither."""
    return _moved(explained, explained.known(*FILE_IO))


def _seconds(explained: Explained, *names: str) -> float:
    return sum(row.seconds for row in explained.known(*names))


def _moved(explained: Explained, rows: list[Row]) -> _Moved:
    counters = explained.counters
    read, written = counters.read_chars or 0.0, counters.written_chars or 0.0
    of_bytes = read / (read + written) if read + written > 0 else 1.0
    one_way = not _NEXT_TO_NOTHING < of_bytes < 1 - _NEXT_TO_NOTHING
    cold, dirty = counters.device_read_bytes or 0.0, counters.device_written_bytes or 0.0
    # What moved between memory and a disk without calls was mapped, or names of files.
    of_calls = 0.0 if read + written < _NEXT_TO_NOTHING * (cold + dirty) else 1.0
    # What waits for a disk is a read, unless next to nothing came from there.
    of_waiting = 1.0 if cold > _NEXT_TO_NOTHING * written or dirty <= 0 else 0.0
    reading = writing = mapped = guessed = 0.0
    for row in rows:
        unknown = of_bytes if row.name == "file-io-cpu" else of_waiting
        for name, seconds in _parts(row):
            if name in _MAPPED:
                mapped += seconds
            elif name not in _NEITHER:
                told = _TOLD.get(name)
                share = unknown if told is None else told
                moved = seconds * of_calls if told is None else seconds
                guessed += moved if told is None else 0.0
                reading += moved * share
                writing += moved * (1 - share)
    return _Moved(reading, writing, mapped, one_way or guessed <= (reading + writing) / 2)


def _parts(row: Row) -> list[tuple[str, float]]:
    parts = [(part.name, part.seconds) for part in row.parts]
    rest = row.seconds - sum(seconds for _, seconds in parts)
    return [*parts, ("", rest)] if rest > 0 else parts


def _mean(total: float | None, calls: float | None) -> tuple[float, float, float]:
    """Mean size, count and sum; zeros where nothing was counted."""
    if not total or not calls:
        return 0.0, 0.0, 0.0
    return total / calls, calls, total


def _rates(speed: Speed) -> str:
    slow, fast = speed.rates
    return _span(slow, fast, format_rate)


def _times(speed: Speed) -> str:
    return _span(speed.low, speed.high, format_ns)


def _span(low: float, high: float, form: Callable[[float], str]) -> str:
    one, other = form(low), form(high)
    if one == other:
        return one
    number, _, unit = one.partition(" ")
    return f"{number}–{other}" if other.endswith(f" {unit}") else f"{one} to {other}"
