"""What the largest share is most of all, by name: a function, a process, a file, or the other end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

from latlab.explain.answer import GROUPS
from latlab.explain.model import Explained, File
from latlab.text import clean
from latlab.units import format_bytes

_STANDS_OUT: Final = 0.1
"""Share of wall time from which on a function is worth a name in the first sentence."""
_LONGEST: Final = 60
_HALF: Final = 0.5
_QUARTER: Final = 0.25
_LONG: Final = 64
_SEVERAL: Final = 2


def most_of(explained: Explained, group: str) -> str:
    """Completes "it is bound by …"; empty where nothing stands out.

    `group` is one of `GROUPS`. Shares of functions are of wall time.
    """
    if group in {"computing", "memory-management"}:
        return _function(explained, group) or _process(explained)
    if group == "storage":
        return _bytes_of_files(explained)
    if group == "kernel":
        return _counted(explained)
    if group == "network":
        return _bytes(_by_end(explained))
    return _lock(explained) if group == "locks" else ""


_OF_THE_KERNEL: Final = {
    "file-io-cpu": "on files",
    "page-faults": "page faults",
    "start-and-exit": "starting and ending programs",
    "network": "for the network",
    "pipe": "for pipes",
}


def _counted(explained: Explained) -> str:
    """What more than half of the kernel's work was for, if counts say that."""
    row = explained.row("kernel-cpu")
    of = max(row.within, key=lambda each: each.low, default=None) if row else None
    if row is None or of is None or of.low <= row.high / 2 or of.name not in _OF_THE_KERNEL:
        return ""
    named = _bytes_of_files(explained) if of.name == "file-io-cpu" else ""
    return f"; most of that {_OF_THE_KERNEL[of.name]}{named}"


def _lock(explained: Explained) -> str:
    """The lock that was waited for most, if that is more than half of all."""
    locks = explained.locks
    if not locks or not locks[0].waited_s > _HALF * sum(lock.waited_s for lock in locks):
        return ""
    first = locks[0]
    holder = next((each for each in first.holders if each.share > _HALF), None)
    held = f", which {clean(holder.name, most=24)} ({holder.thread}) had most of the time" if holder else ""
    return f"; most at {clean(first.called, most=_LONGEST)}{held}"


def _function(explained: Explained, group: str) -> str:
    named = [
        (place.share, f"{clean(place.name, most=_LONGEST)} of {_file(place.file)}")
        for place in (explained.python.functions if explained.python else ())
        # Who imports and compiles modules on the interpreter's behalf is nobody's own code.
        if not place.name.startswith(("[", "<")) and not (place.file or "").startswith("<frozen ")
    ]
    rows = (row for row in explained.categories if row.name in GROUPS[group])
    named = named or [
        (function.share, f"{clean(function.name, most=_LONGEST)} of {clean(function.object, most=_LONGEST)}")
        for row in rows
        for function in row.functions
        if not function.name.startswith("[")
    ]
    share, name = max(named, default=(0.0, ""))
    return f"; {100 * share:.0f} % in {name}" if share >= _STANDS_OUT else ""


def _file(path: str | None) -> str:
    return clean(PurePath(path).name if path else "?", most=_LONGEST)


def _process(explained: Explained) -> str:
    """The process that ran for most of the time in which any did."""
    ran: dict[str, float] = defaultdict(float)
    for process in explained.processes:
        ran[process.name] += process.running * process.wall_s
    if len(ran) < _SEVERAL:
        return ""
    most = max(ran, key=lambda name: ran[name])
    part = ran[most] / (sum(ran.values()) or 1.0)
    return f"; {100 * part:.0f} % of that in {clean(most, most=24)}" if most and part > _HALF else ""


def _by_name(explained: Explained, kind: str) -> dict[str, list[File]]:
    rows: dict[str, list[File]] = defaultdict(list)
    for row in explained.files.rows:
        if row.kind == kind:
            rows[row.name].append(row)
    return rows


def _by_end(explained: Explained) -> dict[str, list[File]]:
    """TCP connections by the address that several have in common: who serves is told by its own."""
    ends: dict[str, list[File]] = defaultdict(list)
    rows = [row for row in explained.files.rows if row.name.startswith("tcp ") and " to " in row.name]
    own = defaultdict[str, int](int)
    for row in rows:
        own[row.name.partition(" to ")[0]] += 1
    for row in rows:
        here, _, there = row.name.partition(" to ")
        serves = own[here] > 1
        ends[f"connections at {here.removeprefix('tcp ')}" if serves else there].append(row)
    return ends


def _moved(files: Iterable[File]) -> tuple[float, float]:
    """Bytes read and written."""
    rows = tuple(files)
    return (
        sum(file.read.bytes for file in rows if file.read),
        sum(file.written.bytes for file in rows if file.written),
    )


def _bytes_of_files(explained: Explained) -> str:
    """The file with more than half of the bytes that were not seen to be of a pipe or a socket.

    Those of files that were never found open are among them.
    """
    counters = explained.counters
    counted = (counters.read_chars or 0.0) + (counters.written_chars or 0.0)
    others = sum(_moved(row for row in explained.files.rows if row.kind != "file"))
    return _bytes(_by_name(explained, "file"), counted - others)


def _bytes(rows: dict[str, list[File]], least: float = 0.0) -> str:
    """What has more than half of all bytes, which are `least` or more, and which way."""
    if not rows:
        return ""
    most = max(rows, key=lambda name: sum(_moved(rows[name])))
    read, written = _moved(rows[most])
    if not read + written > _HALF * max(least, sum(sum(_moved(files)) for files in rows.values())):
        return ""
    ways = [
        f"{verb} {format_bytes(amount)}"
        for verb, amount in (("read", read), ("written", written))
        if amount >= _QUARTER * (read + written)
    ]
    many = f"{len(rows[most])} " if most.startswith("connections") else ""
    return f"; most bytes: {many}{shortened(most)}, {' and '.join(ways)}"


def shortened(name: str) -> str:
    """A path by its end, which says more than its beginning."""
    plain = clean(name, most=4096)
    return plain if len(plain) <= _LONG else f"…{plain[1 - _LONG :]}"
