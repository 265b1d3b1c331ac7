"""Counting words: how much of the time is I/O, in several languages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from latlab.lessons.bench import NOT_TIMED, Arms, Bench, Cannot, Times, times_of
from latlab.lessons.cache import NOT_KEPT, brought_in, why_not_cold
from latlab.lessons.experiments.io_bottleneck.figures import STAGES, Heard, Ledger, Ran
from latlab.lessons.experiments.io_bottleneck.workshop import (
    ALL,
    CACHED,
    COLD,
    PLANS,
    SORTERS,
    TAKES_TURNS,
    Runs,
    Sorting,
    Text,
    Workshop,
    of_sorting,
)
from latlab.lessons.figures import Published, Series
from latlab.lessons.model import Guess, Original, Reported
from latlab.lessons.native import PLAIN_BLOCK, disk_rate, nearest_block
from latlab.lessons.programs import disk_speed
from latlab.lessons.template import reported

if TYPE_CHECKING:
    from latlab.run.run import Run

QUESTION = "What's the performance bottleneck in your program?"
ORIGIN = "an article, “I/O is no longer the bottleneck”"
PROGRAMS = (
    "words.py",
    "words_simple.go",
    "words_optimised.go",
    "words.rs",
    "words.c",
    "words_text.py",
    "disk_speed.py",
)
#: It counts the words of a file of the user's, where one is named.
TAKES_FILE = True
GUESS = Guess(
    "How much of the time of the simple Go program is reading the file, in percent?",
    "share.go_simple.reading",
    Published("14%", 0.14),
)
ORIGINAL_TAKES: Final = Original(
    600,
    27e9,
    "seven programs count a text of 413 MB three times, from the page cache and past it, and files of 4 GiB are written and read",
)
#: The article's text.
PUBLISHED_BYTES: Final = 413_000_000
PUBLISHED: Final = {
    name: {
        stage: Published(f"{seconds} s", float(seconds))
        for stage, seconds in zip((*STAGES, "total"), column.split(), strict=True)
    }
    for name, column in {
        "python_simple": "0.384 7.980 0.005 0.010 8.386",
        "go_simple": "0.499 3.492 0.002 0.009 4.000",
        "go_optimised": "0.154 2.249 0.002 0.010 2.414",
    }.items()
} | {"python_optimised": {"total": Published("7.5 seconds", 7.5)}}
PUBLISHED_SHARE: Final = {"go_simple": Published("14%", 0.14), "go_optimised": Published("7%", 0.07)}
PUBLISHED_DISK: Final = {
    "read_cold": Published("1.7 GB/s", 1.7e9),
    "read_cached": Published("10.8 GB/s", 10.8e9),
    "write_sync": Published("1.2 GB/s", 1.2e9),
    "write": Published("1.6 GB/s", 1.6e9),
}
#: Title, and the probe's side and path.
DISK: Final = {
    "read_cold": ("Read (not cached)", "read", "buffered-cold"),
    "read_cached": ("Read (cached)", "read", "buffered-warm"),
    "write_sync": ("Write (incl. sync time)", "write", "buffered-fsync-end"),
    "write": ("Write (not incl. sync)", "write", "buffered"),
}
_NOT_READ: Final = {
    "read_cold": "the cache did not drop the file, or cannot be asked here",
    "read_cached": NOT_KEPT,
}
#: Bytes of a call that reads a cached file.
BLOCKS: Final = (4 << 10, 64 << 10, 1 << 20)
_NOT_RUN: Final = "it was not run"
_SORT: Final = "sorting, by the number of different words"


def run(bench: Bench) -> Reported:
    """The disk, the text, the programs, sorting, the ledgers; then the probes."""
    plan = PLANS[bench.size]
    with Workshop(bench) as shop:
        what_text = f"the text: {shop.announced}"
        text = bench.attempt(what_text, shop.make_text)
        disk = bench.arms("the speed of the disk", lambda: disk_times(bench))
        calls = bench.arms("reading by system calls of several sizes", lambda: call_times(bench))
        programs = shop.build()
        runs: Runs = {} if text is None else shop.count(programs, text)
        sorting = bench.attempt(_SORT, lambda: shop.sort(programs)) or {}
        ledgers = {} if text is None or bench.plain else shop.explain(programs, text)
    what_native = "the Rust probes (storage.read.sequential, storage.write.sequential)"
    native = bench.native(
        what_native,
        "storage.read.sequential,storage.write.sequential",
        budget=plan.native_s,
        max_bytes=plan.native_bytes,
    )
    return say(
        bench.size,
        text,
        with_lines_apart(runs),
        why=functools.partial(_why, bench, what_text),
        disk=disk,
        calls=calls,
        sorting=sorting,
        why_sorting=functools.partial(_why, bench, _SORT),
        ledgers=ledgers,
        native=native,
        why_native=bench.why(what_native),
    )


def _why(bench: Bench, whole: str, name: str = "", state: str = "") -> str:
    """Why a program has no figure: its text, or the whole part; its building; its run in that state."""
    title = ALL[name].title if name else ""
    found = [bench.why(whole), bench.why(title), bench.why(f"{title}, {state}")]
    if state == COLD and name in TAKES_TURNS:
        found.append("reading alternates with processing, and the kernel reads ahead meanwhile")
    if state == CACHED and name == "python_lines":
        found.append("no run separated the time of reading alone")
    return next(filter(None, found), _NOT_RUN)


def say(
    size: str,
    text: Text | None = None,
    runs: Runs | None = None,
    *,
    why: Callable[..., str] = lambda *_: _NOT_RUN,
    disk: Arms[str] = NOT_TIMED,
    calls: Arms[int] = NOT_TIMED,
    sorting: Sorting | None = None,
    why_sorting: Callable[..., str] = lambda *_: _NOT_RUN,
    ledgers: Mapping[str, Ledger] | None = None,
    native: Run | None = None,
    why_native: str = "",
) -> Reported:
    """What these figures say.

    Args:
        size: Of the lesson.
        text: What was counted; None where there is none.
        runs: Of each program and state of the file, reading line by line separately.
        why: Why a program has no figure in a state of the file.
        disk: See `disk_times`.
        calls: See `call_times`.
        sorting: Of each program, by how many words are different.
        why_sorting: Why a program has no figure of a text that is sorted.
        ledgers: Of the programs that `latlab explain` ran.
        native: The run of Rust probes.
        why_native: Why there is none.
    """
    known, sorted_, names = runs or {}, sorting or {}, {name for name, _ in sorting or {}}
    cached, cold = (
        {name: Ran(known.get((name, state), ()), why(name, state)) for name in ALL}
        for state in (CACHED, COLD)
    )
    sorts = {
        name: {
            distinct: Ran(sorted_.get((name, distinct), ()), why_sorting(name, of_sorting(distinct)))
            for distinct in sorted({distinct for _, distinct in sorted_})
        }
        for name in SORTERS
        if name in names
    }
    return reported(
        __name__,
        tuple(series(sorts)),
        text=text,
        why_text=why(),
        best_of=len(next(iter(known.values()), ())),
        cached=cached,
        cold=cold,
        plan=PLANS[size],
        disk={
            name: disk[name] or Times(why=disk.why or _NOT_READ.get(name, "it was not measured"))
            for name in DISK
        },
        core={name: disk_rate(native, side, path, why_native) for name, (_, side, path) in DISK.items()},
        core_blocks={
            title: found[0]
            for title, side, path in DISK.values()
            if (found := nearest_block(native, side, path)) is not None and found[0] != PLAIN_BLOCK
        },
        calls=calls,
        sorts=sorts,
        why_sorting=why_sorting("python_simple"),
        ledgers=ledgers or {},
    )


def with_lines_apart(runs: Runs) -> Runs:
    """Line by line, reading apart from processing: by the runs that only read the lines.

    A pair whose reading alone took longer than both together was disturbed, and does not separate them.
    """
    found = dict(runs)
    whole, reading = found.pop(("python_lines", CACHED), ()), found.pop(("only_read", CACHED), ())
    pairs = []
    for one, other in zip(whole, reading, strict=False):
        read, both = other.of("reading"), one.of("processing")
        if read < both:
            stages = {**one.stages, "reading": read, "processing": both - read}
            pairs.append(Heard(one.seconds, stages, one.peak_bytes))
    if pairs:
        found["python_lines", CACHED] = tuple(pairs)
    return found


def series(sorts: Mapping[str, Mapping[int, Ran]]) -> Iterator[Series]:
    """Sorting by the number of different words, point by point."""
    for name, by_words in sorts.items():
        points = {distinct: ran for distinct, ran in by_words.items() if ran}
        if points:
            yield Series(f"{name}_distinct", "count", tuple(map(float, points)))
            for stage in STAGES:
                yield Series(f"{name}_{stage}", "s", tuple(ran.of(stage) for ran in points.values()))


def disk_times(bench: Bench) -> dict[str, Times]:
    """Seconds for one large file: written with and without sync, read past the cache and from it."""
    size = PLANS[bench.size].disk_bytes
    bench.room(size)
    path, found = bench.folder / "disk", dict[str, list[float]]()
    data = disk_speed.blocks(size >> 20)
    try:
        for kind in bench.turns(("write_sync", "write", "read"), 3, PLANS[bench.size].disk_s):
            if kind != "read":
                found.setdefault(kind, []).append(disk_speed.write(path, data, sync=kind == "write_sync"))
                # What is left to be written must not disturb the next one.
                disk_speed.flush(path)
                continue
            if not why_not_cold(path):
                found.setdefault("read_cold", []).append(disk_speed.read(path))
            if brought_in(path):
                found.setdefault("read_cached", []).append(disk_speed.read(path))
    finally:
        path.unlink(missing_ok=True)
    return times_of(found)


def call_times(bench: Bench) -> dict[int, Times]:
    """Seconds for each byte of a cached file that is read by calls of so many bytes."""
    size = min(PLANS[bench.size].disk_bytes, 64 << 20)
    bench.room(size)
    path = bench.folder / "calls"
    try:
        disk_speed.write(path, disk_speed.blocks(size >> 20), sync=False)
        if not brought_in(path):
            raise Cannot(NOT_KEPT)
        found = bench.times({block: functools.partial(disk_speed.read, path, block) for block in BLOCKS}, 3)
    finally:
        path.unlink(missing_ok=True)
    return {block: Times(tuple(each / size for each in times.values)) for block, times in found.items()}
