"""Wall time of file I/O: how much of it was reading, writing, or for pages of mappings."""

from __future__ import annotations

from typing import Final, NamedTuple

from latlab.explain.model import Explained, Row

FILE_IO: Final = ("storage-wait", "file-io-cpu")
_MAPPED: Final = frozenset({"reading for page faults", "page fault"})
"""Parts that a touched page of a mapping causes, no call."""
_NEITHER: Final = frozenset({"flushing", "names and metadata"})
"""Parts that are no transfer."""
_NEXT_TO_NOTHING: Final = 0.01
"""A direction with a smaller part of the bytes gets none of the waiting that may be either's."""


class Moved(NamedTuple):
    """Wall time in read calls, in write calls and for pages of mappings, in seconds.

    `told_apart`: most of the calls' was seen to be one or the other; else the bytes decide.
    """

    reading: float
    writing: float
    mapped: float
    distinguished: bool


def moved(explained: Explained, *rows: Row) -> Moved:
    """Of these rows of file I/O, all of them where none is given; names and flushes are neither."""
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
    for row in rows or explained.known(*FILE_IO):
        share = of_bytes if row.name == "file-io-cpu" else of_waiting
        for name, seconds in _parts(row):
            if name in _MAPPED:
                mapped += seconds
            elif name == "reading":
                reading += seconds
            elif name == "writing":
                writing += seconds
            elif name not in _NEITHER:
                either = seconds * of_calls
                guessed += either
                reading += either * share
                writing += either * (1 - share)
    return Moved(reading, writing, mapped, one_way or guessed <= (reading + writing) / 2)


def _parts(row: Row) -> list[tuple[str, float]]:
    parts = [(part.name, part.seconds) for part in row.parts]
    rest = row.seconds - sum(seconds for _, seconds in parts)
    return [*parts, ("", rest)] if rest > 0 else parts
