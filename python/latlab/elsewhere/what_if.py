"""What a program would take here with its input in memory, with another block size, or with another disk."""

from __future__ import annotations

from typing import Final

from latlab.explain.bounds import mean
from latlab.explain.file_io import moved
from latlab.explain.judge import judge
from latlab.explain.limits import Limits, Speed
from latlab.explain.model import Explained
from latlab.predict.answer import Refused
from latlab.predict.model import Range

LIMITS: Final = ("read-memory", "read-disk")
PROBES: Final = ("storage.read.sequential",)
"""Whose figures these limits are."""
_MEASURE: Final = "latlab measure --only storage.read.sequential"
_FROM_DISK: Final = "run it once with its files out of the page cache"


def cached(explained: Explained, limits: Limits) -> Range | Refused:
    """If all that it reads had been in memory: explain's bound of that name."""
    if limits.at("read-memory") is None:
        return _no_limit("read-memory")
    bound = judge(explained, limits).limit("read-memory")
    if bound is None:
        return Refused("it read nothing that could have been cached", _FROM_DISK)
    return Range((bound.low_s + bound.high_s) / 2, bound.low_s, bound.high_s)


def block(explained: Explained, limits: Limits, size: int) -> Range | Refused:
    """If it read in calls of so many bytes: its time in reads, scaled by this machine's curves."""
    counters = explained.counters
    now, count, total = mean(counters.read_chars, counters.read_calls)
    reading = moved(explained).reading
    if not count or reading <= 0:
        return Refused("it reads nothing with system calls, so there is no block size", _FROM_DISK)
    cold = min((counters.device_read_bytes or 0.0) / total, 1.0)
    names = [name for name, share in (("read-disk", cold), ("read-memory", 1 - cold)) if share > 0]
    missing = next((name for name in names if limits.at(name) is None), None)
    if missing is not None:
        return _no_limit(missing)

    def byte_ns(at: float) -> Speed:
        own = [(limits.at(name, at), cold if name == "read-disk" else 1 - cold) for name in names]
        ends = (
            sum(getattr(speed, end) * share for speed, share in own if speed is not None) / at
            for end in ("low", "mid", "high")
        )
        return Speed(at, *ends)

    before, after = byte_ns(now), byte_ns(float(size))
    rest = explained.wall_s - reading
    # Blocks of one machine vary together: the range is that of the new size alone.
    low, mid, high = (rest + reading * each / before.mid for each in (after.low, after.mid, after.high))
    return Range(mid, low, high)


def disk(explained: Explained, limits: Limits, rate: float) -> Range | Refused:
    """If its disk read so many bytes a second.

    From all of the disk's time beside what else it does, to none; most likely is that as much of it stays
    hidden behind other work as is here.
    """
    device = explained.counters.device_read_bytes or 0.0
    io = moved(explained, *explained.rows(["storage-wait"]))
    waited = io.reading + io.mapped
    if device <= 0 or waited <= 0:
        return Refused("it did not wait for a disk to read", _FROM_DISK)
    rest, then = max(explained.wall_s - waited, 0.0), device / rate
    low, high = max(rest, then), rest + then
    size, _, _ = mean(explained.counters.read_chars, explained.counters.read_calls)
    speed = limits.at("read-disk", size or 1 << 17)
    if speed is None:
        return Range(None, low, high, bounds=True)
    here = device / speed.size_bytes * speed.mid / 1e9
    hidden = max(here - waited, 0.0)
    return Range(min(max(rest + max(then - hidden, 0.0), low), high), low, high, bounds=True)


def _no_limit(name: str) -> Refused:
    what = {"read-memory": "reading from memory", "read-disk": "reading from this disk"}[name]
    return Refused(f"no run of this machine has figures of {what}", _MEASURE)
