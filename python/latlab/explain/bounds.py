"""What could be saved: if something took no time, or ran at a limit of this machine.

The ledger gives an instant to what the threads that run do, each a part of it. With one thread running
at a time a category's share is what it costs. With several, one thread may hold up the others, and what
it does then costs more than its part of the instant: `saving_most` has all thread-time of the category,
and no saving can exceed that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from latlab.explain.answer import together
from latlab.explain.file_io import FILE_IO, moved
from latlab.explain.limits import Limits, Speed
from latlab.explain.model import USER_CODE, WAITS, Explained
from latlab.units import format_bytes, format_count, format_ns, format_rate, format_span

_TOUCHING: Final = (*USER_CODE, "user-cpu", "page-faults")
"""What touches pages of mappings."""
_TOUCHED: Final = 64 << 10
"""The block size at which a disk and memory are compared."""
KNOWN_TO: Final = 0.005
"""A smaller share of wall time is nothing."""
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


def undisturbed(explained: Explained) -> float:
    """Share of wall time in which it did not wait for a CPU."""
    return max(1.0 - explained.share("run-queue-wait"), 1e-6)


def bounds(explained: Explained, limits: Limits, beside_s: float) -> tuple[Bound, ...]:
    """All of them: each category at no cost, the largest first, then those at limits."""
    return (
        *_free_bounds(explained),
        *_reading_bounds(explained, limits, beside_s),
        *_fault_bounds(explained, limits),
    )


def _free_bounds(explained: Explained) -> list[Bound]:
    """Each category at no cost, the largest first; file I/O as a whole, too."""
    io = {row.name for row in explained.known(*FILE_IO) if row.high > 0}
    kernel, user = explained.row("kernel-cpu"), explained.row("user-cpu")
    names = [row.name for row in explained.categories if row.name != "unexplained" and row.high > 0]
    names += [each.name for each in kernel.counted] if kernel else []
    wholes = [FILE_IO] if len(io) == len(FILE_IO) else []
    found = [_free_bound(explained, each) for each in (*wholes, *((name,) for name in dict.fromkeys(names)))]
    why = "this level cannot sample the program's code: between none and all of it"
    for each in user.within if user else ():
        most = _most(explained, "user-cpu", each.high)
        found.append(_bound(explained, (each.name,), (each.low, each.high), most, why))
    return sorted(found, key=lambda bound: -bound.saving_high)


def _free_bound(explained: Explained, categories: tuple[str, ...]) -> Bound:
    """What is saved if these categories took no time at all."""
    low, high, most = saving(explained, categories)
    why = "share of wall time, with its interval"
    if categories == FILE_IO:
        why += "; the kernel's work for files as well as waiting for them"
    if most > high + KNOWN_TO:
        why += (
            "; threads that run at the same time share the wall time: more can be saved only where "
            "the others wait for this"
        )
    return _bound(explained, categories, (low, high), most, why)


def saving(explained: Explained, categories: tuple[str, ...]) -> tuple[float, float, float]:
    """Share of wall time of these categories: lower end, upper end, and with all their thread-time."""
    rows = explained.known(*categories)
    whole = together("", rows)
    beyond = sum(_most(explained, row.name, row.high) - row.high for row in rows)
    return whole.low, whole.high, min(whole.high + beyond, 1.0)


def _most(explained: Explained, name: str, high: float) -> float:
    """Thread-time of a category over wall time, at most.

    On the CPU, with n threads running at most and p on average: n of them can run together only for so long
    that the average comes out. Waiting: the threads' waits added up, those behind running threads with them.
    """
    threads = explained.threads
    if threads.most <= 1:
        return high
    waits = sum(wait.seconds for wait in threads.waits if wait.name == name)
    if name in WAITS and explained.wall_s > 0:
        return min(max(high, waits / explained.wall_s), 1.0)
    idle = explained.share(*WAITS)
    beyond = max(threads.parallelism - 1.0, 0.0) * max(1.0 - idle, 0.0)
    return min(high + min((threads.most - 1) * high, beyond), 1.0)


def _reading_bounds(explained: Explained, limits: Limits, beside_s: float) -> list[Bound]:
    counters = explained.counters
    read_s = moved(explained).reading
    size, count, total = mean(counters.read_chars, counters.read_calls)
    memory = limits.at("read-memory", size) if count else None
    if memory is None or (read_s <= 0 and not counters.device_read_bytes):
        return []
    floor = (count * memory.low / 1e9, count * memory.high / 1e9)
    why = (
        f"all {format_bytes(total)} from memory, {format_bytes(size)} at a time, at {rates(memory)}:"
        f" {limits.source('read-memory')}"
    )
    found = [_from_memory(explained, floor, beside_s, why)]
    disk = limits.at("read-disk", size)
    cold = min(counters.device_read_bytes or 0.0, total)
    if disk is None or cold <= 0 or read_s <= 0:
        return found
    share = cold / total
    low, high = (
        count * (share * cold_ns + (1 - share) * warm_ns) / 1e9
        for cold_ns, warm_ns in ((disk.low, memory.low), (disk.high, memory.high))
    )
    why = (
        f"{format_bytes(cold)} from the disk in order at {rates(disk)}, the rest from memory:"
        f" {limits.source('read-disk')}"
    )
    return [*found, _at_limit(explained, FILE_IO, "read-disk", read_s, (low, high), why)]


def _from_memory(explained: Explained, floor: tuple[float, float], beside_s: float, why: str) -> Bound:
    """If all that was read had been in memory.

    Waiting for the disk is gone, and so is what the kernel does to read a page of a mapping. The calls take
    what they take at the limit, and at most what they take now. What a disk costs outside of file I/O may be
    gone too, and so is what watching cost, which is in the ledger's rows.
    """
    wall = max(explained.wall_s, 1e-12)
    low = high = 0.0
    for row in explained.known(*FILE_IO):
        of_row = moved(explained, row)
        narrow, wide = (row.low / row.share, row.high / row.share) if row.share > 0 else (1.0, 1.0)
        fast, slow = floor if row.name == "file-io-cpu" else (0.0, 0.0)
        low += max(of_row.reading * narrow - slow, 0.0) + of_row.mapped * narrow
        high += max(of_row.reading * wide - fast, 0.0) + of_row.mapped * wide
    if beside_s > 0:
        why += "; other costs of reading from a disk (interrupts, first touches): none to all of them"
    high += beside_s + explained.observer.share * explained.threads.cpu_s
    _, known, all_threads = saving(explained, FILE_IO)
    beyond = all_threads - known if all_threads - known > KNOWN_TO else 0.0
    most = undisturbed(explained)
    ends = min(low / wall, most), min(high / wall, most)
    return _bound(explained, FILE_IO, ends, min(high / wall + beyond, most), why, "read-memory")


def beside_reading(explained: Explained, limits: Limits) -> float:
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
    seconds, count = explained.seconds("page-faults"), explained.counters.minor_faults
    if seconds <= 0 or not count:
        return []
    found = []
    for name, pages, of, after in (
        ("fault", count, f"{format_count(count)} faults", ""),
        (
            "fault-huge",
            count * _PAGE / _HUGE_PAGE,
            "the same memory in pages of 2 MiB",
            ", if all of it could be",
        ),
    ):
        each = limits.at(name)
        if each is not None:
            why = f"{of} at {times(each)} each{after}: {limits.source(name)}"
            floor = (pages * each.low / 1e9, pages * each.high / 1e9)
            found.append(_at_limit(explained, ("page-faults",), name, seconds, floor, why))
    return found


def _at_limit(
    explained: Explained,
    categories: tuple[str, ...],
    limit: str,
    seconds: float,
    floor: tuple[float, float],
    why: str,
) -> Bound:
    """`seconds` of these categories replaced by what they take at the limit; never slower than now."""
    wall = max(explained.wall_s, 1e-12)
    low, high, most = saving(explained, categories)
    share = explained.share(*categories)
    now = seconds / wall
    # The part that is replaced is known as well as the categories that it is of.
    narrow, wide = (low / share, high / share) if share > 0 else (1.0, 1.0)
    ends = max(now * narrow - floor[1] / wall, 0.0), max(now * wide - floor[0] / wall, 0.0)
    beyond = most - floor[0] / wall if most > high + KNOWN_TO else 0.0
    return _bound(explained, categories, ends, max(ends[1], beyond), why, limit)


def _bound(
    explained: Explained,
    categories: tuple[str, ...],
    ends: tuple[float, float],
    most: float,
    why: str,
    limit: str = "",
) -> Bound:
    """From the ends of the share that is saved, and the most that may be."""
    wall, (low, high) = explained.wall_s, ends
    return Bound(
        name="file-io" if categories == FILE_IO else categories[0],
        kind="limit" if limit else "free",
        categories=categories,
        wall_s=wall,
        low_s=wall * (1 - high),
        high_s=wall * (1 - low),
        saving_low=low,
        saving_high=high,
        saving_most=most,
        why=why,
        limit=limit,
    )


def mean(total: float | None, calls: float | None) -> tuple[float, float, float]:
    """Mean size, count and sum; zeros where nothing was counted."""
    if not total or not calls:
        return 0.0, 0.0, 0.0
    return total / calls, calls, total


def rates(speed: Speed) -> str:
    """`2.00–4.00 GB/s`."""
    return span(*speed.rates, format_rate)


def times(speed: Speed) -> str:
    """`900 ns to 1.50 µs`."""
    return span(speed.low, speed.high, format_ns)


def span(low: float, high: float, form: Callable[[float], str]) -> str:
    """Both ends, or one figure where they print alike."""
    one = form(low)
    return one if one == form(high) else format_span(low, high, form).replace(" – ", " to ")
