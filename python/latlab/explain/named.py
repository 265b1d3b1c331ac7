"""What the largest share is most of all, by name: a function or a line, a file, or the other end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final, NamedTuple

from latlab.explain.answer import GROUPS, Share, percent
from latlab.explain.model import Explained, PythonCode, PythonPlace
from latlab.explain.resources import File
from latlab.text import clean
from latlab.units import format_bytes

_RUNS: Final = frozenset({"computing", "memory-management"})
"""Groups of `GROUPS` that functions are known of."""
_STANDS_OUT: Final = 0.1
"""Share of wall time from which on a function is worth a name in the first sentence."""
_LONGEST: Final = 60
_ALMOST: Final = 0.2
"""The rest of a share that nearly all of is one thing."""
_LONG: Final = 64
_SEVERAL: Final = 2


class Place(NamedTuple):
    """A function or a line that stands for what the program does.

    Attributes:
        called: `app.py:42 (parse)`, `parse (app.py)`.
        share: of wall time.
        doing: what its share is of, where that is not the group's name.
    """

    called: str
    share: Share
    doing: str = ""


def place_of(explained: Explained, group: Share) -> Place | None:
    """The function or the line with half or more of a group that runs; None where there is none."""
    if group.name not in _RUNS:
        return None
    python = _python(explained, group) if group.name == "computing" else None
    # Python code is seen in a function while it is ready for a CPU, too.
    share = group.share + (explained.share("run-queue-wait") if python else 0.0)
    place = python or _native(explained, group.name)
    return place if place is not None and place.share.share >= share / 2 else None


def _python(explained: Explained, group: Share) -> Place | None:
    """Its share is of all time that Python code is in it: no more of that than the group has is computing."""
    python = explained.python
    if python is None:
        return None
    most = max(filter(_is_own, python.functions), key=lambda each: each.share, default=None)
    if most is None or most.share < _STANDS_OUT:
        return None
    waits = sum(each.share - each.running for each in python.stacks if each.frames[-1:] == (most.name,))
    doing = "" if most.share <= group.high else "running, or ready for a CPU"
    if waits > _ALMOST * most.share:
        doing = "running and waiting"
    line = _line_of(python, most.name, most.file)
    of = line if line is not None and line.share >= (1 - _ALMOST) * most.share else most
    return Place(_called(most.name, most.file, of.line), Share(most.name, of.share, of.low, of.high), doing)


def _is_own(place: PythonPlace) -> bool:
    """Who imports and compiles modules on the interpreter's behalf is nobody's own code."""
    return not place.name.startswith(("[", "<")) and not (place.file or "").startswith("<frozen ")


def _line_of(python: PythonCode, name: str, file: str | None) -> PythonPlace | None:
    """The heaviest line of a function."""
    lines = [line for line in python.lines if (line.name, line.file) == (name, file)]
    return max(lines, key=lambda line: line.share, default=None)


def _native(explained: Explained, group: str) -> Place | None:
    functions = [
        function
        for row in explained.rows(GROUPS[group])
        for function in row.functions
        if not function.name.startswith("[")
    ]
    most = max(functions, key=lambda each: each.share, default=None)
    if most is None or most.share < _STANDS_OUT:
        return None
    lines = [line for line in explained.lines if line.function == most.name and line.object == most.object]
    line = max(lines, key=lambda each: each.share, default=None)
    if line is not None and line.file and line.share >= (1 - _ALMOST) * most.share:
        known = Share(most.name, line.share, line.low, line.high)
        return Place(_called(most.name, line.file, line.line), known)
    return Place(_called(most.name, most.object), Share(most.name, most.share, most.low, most.high))


def _called(name: str, file: str | None, line: int | None = None) -> str:
    where, name = _where(file), clean(name, most=_LONGEST)
    return f"{name} ({where})" if line is None else f"{where}:{line} ({name})"


def _where(file: str | None) -> str:
    return clean(PurePath(file or "?").name, most=_LONGEST)


def most_of(explained: Explained, group: Share) -> str:
    """Completes "it spends half of the time …"; empty where nothing stands out. Shares are of wall time."""
    if group.name in _RUNS:
        place = _native(explained, group.name)
        return f"; {percent(place.share.share)} in {place.called}" if place else ""
    if group.name == "storage":
        return waits_in(explained, group) + _bytes_of_files(explained)
    if group.name == "kernel":
        return _counted(explained)
    if group.name == "network":
        return waits_in(explained, group) + _bytes(_by_end(explained))
    if group.name == "locks":
        return waits_in(explained, group) + _lock(explained)
    return waits_in(explained, group) if group.name in {"sleeping", "pipes"} else ""


def waits_in(explained: Explained, group: Share) -> str:
    """The Python function that waited for half of the group or more, if hardly anything else waits."""
    python = explained.python
    if python is None:
        return ""
    waited: dict[tuple[str, ...], float] = defaultdict(float)
    for stack in python.stacks:
        waited[stack.frames[-_SEVERAL:]] += stack.share - stack.running
    frames = max(waited, key=lambda each: waited[each], default=())
    if not frames or waited[frames] <= 0 or not group.share / 2 <= waited[frames] <= group.high:
        return ""
    ran = sum(stack.running for stack in python.stacks)
    lines = [line for line in python.lines if line.name == frames[-1]]
    line = max(lines, key=lambda line: line.share - line.busy_share * ran, default=None)
    at = f" at {_where(line.file)}:{line.line}" if line and line.file else ""
    by = f", called from {clean(frames[0], most=_LONGEST)}" if len(frames) == _SEVERAL else ""
    return f", in {clean(frames[-1], most=_LONGEST)}{at}{by}"


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
    if not locks or not locks[0].waited_s > sum(lock.waited_s for lock in locks) / 2:
        return ""
    first = locks[0]
    holder = next((each for each in first.holders if 2 * each.share > 1), None)
    held = f", mostly held by {clean(holder.name, most=24)} ({holder.thread})" if holder else ""
    return f"; most at {clean(first.called, most=_LONGEST)}{held}"


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
    files: dict[str, list[File]] = defaultdict(list)
    for row in explained.files.rows:
        if row.kind == "file":
            files[row.name].append(row)
    others = sum(_moved(row for row in explained.files.rows if row.kind != "file"))
    return _bytes(files, counted - others)


def _bytes(rows: dict[str, list[File]], least: float = 0.0) -> str:
    """What has more than half of all bytes, which are `least` or more, and which way."""
    if not rows:
        return ""
    most = max(rows, key=lambda name: sum(_moved(rows[name])))
    read, written = _moved(rows[most])
    if not read + written > max(least, sum(sum(_moved(files)) for files in rows.values())) / 2:
        return ""
    ways = [
        f"{verb} {format_bytes(amount)}"
        for verb, amount in (("read", read), ("written", written))
        if amount >= (read + written) / 4
    ]
    many = f"{len(rows[most])} " if most.startswith("connections") else ""
    return f"; most bytes: {many}{shortened(most)}, {' and '.join(ways)}"


def shortened(name: str) -> str:
    """A path by its end, which says more than its beginning."""
    plain = clean(name, most=4096)
    return plain if len(plain) <= _LONG else f"…{plain[1 - _LONG :]}"
