"""Jobs that are predicted and then run here, in a folder of their own: what ranges of other jobs must hold.

Each is a kind: repeats of one say nothing of another. They are written as programs write them, in Python's
own calls, and not as the probes are; what a program computes besides is hardly anything.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from latlab.errors import UserError
from latlab.predict import Job, Options, asked, kept, memory_of, newest, parsed
from latlab.predict.answer import Prediction
from latlab.predict.kept import Outcome
from latlab.predict.place import limits
from latlab.predict.work import probes_of, taken
from latlab.run.core import describe

_MIB: Final = 1 << 20
#: The one file that is read.
_FILE: Final = 1536 * _MIB
_SMALL, _FILES = 6000, 3000
_FLUSHED_FILES = 300
_ROUNDS: Final = 3
#: The files that jobs write; each job finds none.
_WRITTEN, _COPIED = "written", "copied"
_MADE: Final = (_WRITTEN, _COPIED)
#: What all of them leave on the disk at most, and what they write in all.
ROOM: Final = 5 << 30
WRITES: Final = 20 << 30
#: From this load for each CPU on, what others do decides how long jobs take.
_BUSY: Final = 0.5
#: About how long it takes, at most, where a disk is one.
SECONDS: Final = 180
#: ioctl_iflags(2), and EXT4_TOPDIR_FL.
_GET_FLAGS, _SET_FLAGS, _TOP_FOLDER = 0x80086601, 0x40086602, 0x00020000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job.

    Attributes:
        name: Its own.
        words: What is predicted.
        options: How it is done.
        prepare: What has to be so before; its time does not count.
        run: The job.
    """

    name: str
    words: tuple[str, ...]
    options: Options
    prepare: Callable[[Path], object]
    run: Callable[[Path], object]


def calibrate(
    directory: str | None = None, run: str | None = None, say: Callable[[str], object] = lambda _: None
) -> list[Outcome]:
    """Runs every kind three times, in rounds of all, keeps the median of each, and returns it.

    Args:
        directory: Where the scratch folder is made; by default where the run measured.
        run: By the figures of this run.
        say: Called with a line for each kind.

    Raises:
        UserError: there is no room, or no run with the figures.
    """
    kinds = list(_kinds())
    jobs = [parsed(kind.words, kind.options)[0] for kind in kinds]
    runs = [newest(probes_of(job), run) for job in jobs]
    at = directory or runs[0].machine.text("dir.path") or tempfile.gettempdir()
    here = describe(at).machine
    free, room = shutil.disk_usage(at).free, limits(memory_of(here))
    if free < 2 * ROOM:
        raise UserError(
            f"{at} has too little room: calibration needs {2 * ROOM >> 30} GiB free; name another --dir"
        )
    outcomes = []
    answers = [asked(job, own, at, calibrated=False) for job, own in zip(jobs, runs, strict=True)]
    with _scratch(at) as folder:
        busy = os.getloadavg()[0]
        _lay_out(folder)
        took: list[list[float]] = [[] for _ in kinds]
        for _ in range(_ROUNDS):
            for kind, job, times in zip(kinds, jobs, took, strict=True):
                for name in _MADE:
                    (folder / name).unlink(missing_ok=True)
                kind.prepare(folder)
                if room.returned:
                    in_use(min(taken(job), room.memory // 2))
                begun = time.perf_counter()
                kind.run(folder)
                times.append(time.perf_counter() - begun)
        for kind, found, times in zip(kinds, answers, took, strict=True):
            if found.only is None:
                say(f"{kind.name}: left out, {found.refused.why if found.refused else 'two answers'}")
                continue
            outcomes.append(outcome_of(found, statistics.median(times), kept.identity(here), kind.name))
            say(f"{kind.name}: {outcomes[-1].actual:.3g} s, predicted {outcomes[-1].predicted:.3g} s")
    kept.keep(outcomes, instead_of="calibrate")
    if busy > _BUSY * (os.cpu_count() or 1):
        say(f"others used the machine (load {busy:.1f}): repeat it on an idle one, for narrower ranges")
    return outcomes


def outcome_of(
    found: Prediction, seconds: float, machine: str, kind: str, command: Sequence[str] = ()
) -> Outcome:
    """What a job took, beside the one answer that was given."""
    (branch,) = found.branches
    return Outcome(
        source="verify" if command else "calibrate",
        kind=kind,
        job=found.job,
        predicted=branch.range.middle,
        low=branch.range.low,
        high=branch.range.high,
        half=branch.half,
        actual=seconds,
        bytes={part.name: part.amount for part in branch.parts},
        most=max(branch.parts, key=lambda part: part.seconds).sort,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine,
        command=" ".join(command),
    )


@contextlib.contextmanager
def _scratch(at: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=".latlab-calibrate-", dir=at))
    try:
        _apart(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_use(size: int) -> None:
    """Takes so many bytes of memory and gives them back.

    Where free memory goes back to a host, that comes after two seconds (mm/page_reporting.c): what begins
    before takes memory that nobody has to find. Answers are of such jobs, and say what others take longer.
    """
    if size < mmap.PAGESIZE:
        return
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as own:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            own.madvise(mmap.MADV_HUGEPAGE)
        for place in range(0, size, mmap.PAGESIZE):
            own[place] = 1


def _apart(folder: Path) -> None:
    """Has ext4 put its folders where no files were removed lately, as `chattr +T` does.

    Where many were, creating a file becomes up to sixty times as slow, which says nothing of other folders.
    """
    if sys.platform != "linux":
        return
    import fcntl  # noqa: PLC0415 - not on every system

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        flags = bytearray(8)
        fcntl.ioctl(descriptor, _GET_FLAGS, flags)
        own = int.from_bytes(flags[:4], sys.byteorder) | _TOP_FOLDER
        fcntl.ioctl(descriptor, _SET_FLAGS, own.to_bytes(8, sys.byteorder))
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _lay_out(folder: Path) -> None:
    """The file that is read, and the small ones: bytes that cannot be compressed, on the disk."""
    with (folder / "file").open("wb") as opened:
        for _ in range(_FILE // (16 * _MIB)):
            opened.write(os.urandom(16 * _MIB))
        os.fsync(opened.fileno())
    (folder / "small").mkdir()
    content = os.urandom(_SMALL)
    for number in range(_FILES):
        (folder / "small" / str(number)).write_bytes(content)
    _evict(folder / "small")


def _kinds() -> Iterator[Kind]:
    """All kinds; at least 19, so that one of them may lie outside of nine of ten."""
    cold, cached, direct = Options(cache="cold"), Options(cache="cached"), Options(direct=True)
    evict, warm, synced = _evicted("file"), _warmed("file"), _synced
    size, half = str(_FILE), str(_FILE // 2)
    yield Kind(
        "stream, cached",
        ("read", size),
        _with(cached, block=262144),
        warm,
        lambda at: _read(at / "file", 262144),
    )
    yield Kind(
        "stream, direct",
        ("read", size),
        _with(direct, block=524288),
        evict,
        lambda at: _direct(at / "file", 524288, _FILE),
    )
    yield Kind(
        "stream, direct, small",
        ("read", str(48 * _MIB)),
        _with(direct, block=16384),
        evict,
        lambda at: _direct(at / "file", 16384, 48 * _MIB),
    )
    yield Kind("copy, cold", ("copy", half), cold, evict, lambda at: _copy(at, _FILE // 2))
    yield Kind("copy, cached", ("copy", half), cached, warm, lambda at: _copy(at, _FILE // 2))
    yield Kind(
        "write", ("write", half), Options(block=262144), synced, lambda at: _write(at, 262144, _FILE // 2)
    )
    yield Kind(
        "write, flushed",
        ("write", half),
        Options(block=262144, fsync="end"),
        synced,
        lambda at: _write(at, 262144, _FILE // 2, end=True),
    )
    yield Kind(
        "write, direct",
        ("write", half),
        _with(direct, block=524288),
        synced,
        lambda at: _write_direct(at, 524288, _FILE // 2),
    )
    yield Kind(
        "write, direct, small",
        ("write", str(48 * _MIB)),
        _with(direct, block=16384),
        synced,
        lambda at: _write_direct(at, 16384, 48 * _MIB),
    )
    yield Kind(
        "copy, cached, flushed",
        ("copy", half),
        Options(cache="cached", fsync="end"),
        warm,
        lambda at: _copy(at, _FILE // 2, flush=True),
    )
    yield Kind(
        "append, each flushed",
        ("write", str(1000 * 8192)),
        Options(block=8192, fsync="each"),
        synced,
        lambda at: _append(at, 8192, 1000),
    )
    yield Kind(
        "append, large, each flushed",
        ("write", str(150 * _MIB)),
        Options(block=_MIB, fsync="each"),
        synced,
        lambda at: _append(at, _MIB, 150),
    )
    files = (str(_FILES), str(_SMALL))
    yield Kind("files, written", ("files", *files), Options(), synced, lambda at: _files(at, _FILES))
    yield Kind("files, cold", ("files", *files), Options(reading=True, cache="cold"), _evicted("small"), _all)
    yield Kind("files, cached", ("files", *files), Options(reading=True, cache="cached"), _all, _all)
    larger = ("files", "1000", "40kB")
    yield Kind("files, larger", larger, Options(), synced, lambda at: _files(at, 1000, 40_000))
    flushed = ("files", str(_FLUSHED_FILES), str(_SMALL))
    yield Kind(
        "files, each flushed",
        flushed,
        Options(fsync="each"),
        synced,
        lambda at: _files(at, _FLUSHED_FILES, flush=True),
    )
    random = ("random", "5000", "8KiB")
    yield Kind(
        "blocks, read", random, Options(reading=True, cache="cold"), evict, lambda at: _blocks(at, 5000, 1)
    )
    yield Kind(
        "blocks, read, eight at once",
        random,
        Options(reading=True, cache="cold", depth=8),
        evict,
        lambda at: _blocks(at, 5000, 8),
    )
    yield Kind("blocks, written", random, Options(), synced, lambda at: _blocks(at, 5000, 1, writing=True))
    # What was laid out is on the disk for some seconds by now, also below this machine.
    yield Kind(
        "stream, cold", ("read", size), _with(cold, block=_MIB), evict, lambda at: _read(at / "file", _MIB)
    )
    yield Kind(
        "stream, cold, small calls",
        ("read", half),
        _with(cold, block=32768),
        evict,
        lambda at: _read(at / "file", 32768, _FILE // 2),
    )


def _with(options: Options, block: int) -> Options:
    return Options(block=block, cache=options.cache, direct=options.direct)


def _synced(_folder: Path) -> None:
    """What was written before goes to the disk, so that no job waits for another's bytes."""
    os.sync()


def _evicted(name: str) -> Callable[[Path], None]:
    return lambda folder: _evict(folder / name)


def _evict(path: Path) -> None:
    """Flushes files and puts them out of the page cache."""
    for file in path.iterdir() if path.is_dir() else (path,):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _warmed(name: str) -> Callable[[Path], None]:
    return lambda folder: _read(folder / name, _MIB)


def _read(file: Path, block: int, most: int | None = None) -> None:
    with file.open("rb", buffering=0) as opened:
        buffer = bytearray(block)
        moved = 0
        while (most is None or moved < most) and (count := opened.readinto(buffer)):
            moved += count


def _aligned(block: int) -> memoryview:
    own = mmap.mmap(-1, max(block, mmap.PAGESIZE))
    own.write(os.urandom(block))
    return memoryview(own)[:block]


def _direct(file: Path, block: int, most: int) -> None:
    descriptor, view = os.open(file, os.O_RDONLY | os.O_DIRECT), _aligned(block)
    try:
        for place in range(0, most, block):
            os.preadv(descriptor, [view], place)
    finally:
        os.close(descriptor)


def _written(folder: Path, block: int, count: int, flags: int = 0) -> Iterator[int]:
    """Writes so many blocks to a new file, and hands over its descriptor after each."""
    view = _aligned(block)
    descriptor = os.open(folder / _WRITTEN, os.O_WRONLY | os.O_CREAT | flags)
    try:
        for _ in range(count):
            os.writev(descriptor, [view])
            yield descriptor
    finally:
        os.close(descriptor)


def _write(folder: Path, block: int, size: int, *, end: bool = False) -> None:
    for number, descriptor in enumerate(_written(folder, block, size // block), 1):
        if end and number == size // block:
            os.fsync(descriptor)


def _write_direct(folder: Path, block: int, size: int) -> None:
    for _ in _written(folder, block, size // block, os.O_DIRECT):
        pass


def _append(folder: Path, block: int, count: int) -> None:
    for descriptor in _written(folder, block, count):
        os.fsync(descriptor)


def _copy(folder: Path, size: int, *, flush: bool = False) -> None:
    with (
        (folder / "file").open("rb", buffering=0) as source,
        (folder / _COPIED).open("wb", buffering=0) as to,
    ):
        buffer = bytearray(131072)
        moved = 0
        while moved < size and (count := source.readinto(buffer)):
            to.write(memoryview(buffer)[:count])
            moved += count
        if flush:
            os.fsync(to.fileno())


def _files(at: Path, count: int, size: int = _SMALL, *, flush: bool = False) -> None:
    folder = tempfile.mkdtemp(dir=at)
    content = os.urandom(size)
    for number in range(count):
        descriptor = os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, content)
        if flush:
            os.fsync(descriptor)
        os.close(descriptor)


def _all(folder: Path) -> None:
    small = folder / "small"
    for number in range(_FILES):
        descriptor = os.open(f"{small}/{number}", os.O_RDONLY)
        os.read(descriptor, _SMALL + 1)
        os.close(descriptor)


def _blocks(folder: Path, count: int, workers: int, *, writing: bool = False) -> None:
    descriptor = os.open(folder / "file", os.O_RDWR | os.O_DIRECT)
    places = [int.from_bytes(os.urandom(4), "little") % (_FILE // 8192) * 8192 for _ in range(count)]

    def some(own: Sequence[int]) -> None:
        view = _aligned(8192)
        for place in own:
            if writing:
                os.pwritev(descriptor, [view], place)
            else:
                os.preadv(descriptor, [view], place)

    threads = [threading.Thread(target=some, args=(places[first::workers],)) for first in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(descriptor)


__all__ = ["ROOM", "SECONDS", "WRITES", "Job", "Kind", "calibrate", "outcome_of"]
