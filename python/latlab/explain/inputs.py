"""The files that a program reads, and whether they are in memory: put out of the page cache, or into it.

Only these files are touched (posix_fadvise on each), never the machine's caches as a whole. mincore says
what came of it, so an experiment on a file that another program holds in memory is not believed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import mmap
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from latlab.errors import UserError
from latlab.paths import file_system_of

_SMALLEST: Final = 64 << 10
"""Smaller files are configuration, and their reading is not what takes the time."""
_MOST_FILES: Final = 256
_MOST_SEEN: Final = 4096
_CHUNK: Final = 256 << 20
_READ: Final = 4 << 20
_SCAN_S: Final = 0.05
_NO_DISK: Final = frozenset({"proc", "sysfs", "tmpfs", "devtmpfs", "cgroup", "cgroup2", "devpts", "ramfs"})


def named(arguments: Sequence[str], stdin: int | None = 0) -> list[Path]:
    """Regular files that the arguments name, and standard input if it is one."""
    return list(filter(_is_data, _named(arguments, stdin).values()))


def _named(arguments: Sequence[str], stdin: int | None = 0) -> dict[tuple[int, int], Path]:
    found: dict[tuple[int, int], Path] = {}
    paths = [Path(part) for word in arguments[1:] for part in parts(word)]
    if stdin is not None:
        with contextlib.suppress(OSError):
            paths.append(Path(f"/proc/self/fd/{stdin}").readlink())
    for path in paths:
        _keep(path, found)
    return found


def parts(argument: str) -> tuple[str, ...]:
    """What of an argument may be a file's name: `FILE`, and that in `--option=FILE` or `if=FILE`."""
    value = argument.partition("=")[2]
    return (argument, value) if value else (argument,)


def place_on_stdin(refusal: str) -> int | None:
    """Where a file on standard input is read from; None for a terminal and for what has no end to begin at.

    Raises:
        UserError: it is a pipe or the like, with this refusal.
    """
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return os.lseek(0, 0, os.SEEK_CUR)
    if stat.S_ISCHR(mode):
        return None
    raise UserError(refusal)


class Watch:
    """Looks which files the children of this process have open, now and then, while it is entered.

    The files themselves are opened by nobody before `files` is asked for: that would bring them into memory.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._begun_ns = time.time_ns()
        self._found = _named(arguments)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._scan, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def files(self) -> list[Path]:
        """Those that arguments name and those that were seen open; what was written meanwhile is no input."""
        seen = self._found.values()
        found = [path for path in seen if not _is_newer(path, self._begun_ns) and _is_data(path)]
        return found[:_MOST_FILES]

    def _scan(self) -> None:
        own = os.getpid()
        while not self._done.wait(_SCAN_S):
            for path in opened(pid for pid in tree(own) if pid != own):
                _keep(path, self._found)


def opened(pids: Iterable[int]) -> Iterator[Path]:
    """What these processes have open for reading now."""
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    flags = Path(f"/proc/{pid}/fdinfo/{entry.name}").read_text(encoding="ascii")
                    if _reads(flags):
                        yield Path(os.readlink(entry.path))  # noqa: PTH115 - of an entry


def tree(pid: int) -> list[int]:
    """A process and those that it started, as far as they are seen now."""
    pids = [pid]
    for each in pids:
        with contextlib.suppress(OSError, ValueError), os.scandir(f"/proc/{each}/task") as tasks:
            for task in tasks:
                children = Path(task.path, "children").read_text(encoding="ascii").split()
                pids += [int(child) for child in children if int(child) not in pids]
        if len(pids) > _MOST_FILES:
            break
    return pids


def evict(paths: Iterable[Path]) -> None:
    """Writes back what is dirty of each file and asks the kernel to forget its pages."""
    for path in paths:
        with contextlib.suppress(OSError), regular(path) as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(paths: Iterable[Path]) -> None:
    """Reads each file through the page cache."""
    buffer = bytearray(_READ)
    for path in paths:
        with contextlib.suppress(OSError), regular(path) as file:
            while file.readinto(buffer):
                pass


def resident(paths: Iterable[Path]) -> float | None:
    """Share of these files' pages that are in memory; `None` where the kernel does not say."""
    inside = pages = 0
    for path in paths:
        if not _is_reported(path):
            return None
        counted = _pages(path)
        if counted is None:
            return None
        inside += counted[0]
        pages += counted[1]
    return inside / pages if pages else None


def size(paths: Iterable[Path]) -> int:
    """Bytes of these files."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def _pages(path: Path) -> tuple[int, int] | None:
    """Pages of a file in memory, and pages in all."""
    libc = ctypes.CDLL(None, use_errno=True)
    inside = pages = 0
    try:
        with regular(path) as file:
            left, at = os.fstat(file.fileno()).st_size, 0
            while left > 0:
                length = min(left, _CHUNK)
                # Private and writable, so that its address can be had; nothing is written.
                with mmap.mmap(
                    file.fileno(),
                    length,
                    flags=mmap.MAP_PRIVATE,
                    prot=mmap.PROT_READ | mmap.PROT_WRITE,
                    offset=at,
                ) as mapped:
                    count = (length + mmap.PAGESIZE - 1) // mmap.PAGESIZE
                    seen = (ctypes.c_ubyte * count)()
                    # Nothing may hold the buffer when a signal ends the call: it could not be unmapped.
                    address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
                    failed = libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), seen)
                if failed:
                    return None
                inside += sum(byte & 1 for byte in bytes(seen))
                pages += count
                at, left = at + length, left - length
    except (OSError, ValueError, AttributeError):
        return None
    return inside, pages


def _is_reported(path: Path) -> bool:
    """Whether mincore tells this user the truth: of files that he may not write it says "all of it"."""
    try:
        return path.stat().st_uid == os.geteuid() or os.access(path, os.W_OK)
    except OSError:
        return False


def _keep(path: Path, found: dict[tuple[int, int], Path]) -> None:
    """Adds a regular file that is large enough, without opening it."""
    if len(found) >= _MOST_SEEN:
        return
    with contextlib.suppress(OSError, ValueError):
        about = path.stat()
        if stat.S_ISREG(about.st_mode) and about.st_size >= _SMALLEST and os.access(path, os.R_OK):
            found.setdefault((about.st_dev, about.st_ino), path.absolute())


def _is_data(path: Path) -> bool:
    """Whether a disk holds it, and it is no program or library: those are mapped, by others too."""
    try:
        with regular(path) as file:
            on_a_disk = file_system_of(os.fstat(file.fileno()).st_dev) not in _NO_DISK
            return on_a_disk and file.read(4) != b"\x7fELF"
    except OSError:
        return False


def regular(path: str | Path) -> io.FileIO:
    """A regular file, open for reading. What else has that name by now is not opened at all.

    Raises:
        OSError: it is none, or cannot be opened.
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", os.fspath(path))
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return io.FileIO(os.open(f"/proc/self/fd/{place}", flags), "r")
    finally:
        os.close(place)


def _is_newer(path: Path, moment_ns: int) -> bool:
    try:
        return path.stat().st_mtime_ns > moment_ns
    except OSError:
        return True


def _reads(fdinfo: str) -> bool:
    for line in fdinfo.splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return int(value.strip(), 8) & os.O_ACCMODE != os.O_WRONLY
    return False
