"""What of a path decides how long a job on it takes: sizes, holes, what is cached, its file system."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from latlab.errors import UserError
from latlab.text import clean

#: Files of a folder that are looked at.
_MOST: Final = 100_000
#: Below this share of its size on the disk a file has holes, or is compressed.
_WHOLE: Final = 0.9
#: Of larger files the page cache is looked through in windows of so many bytes.
_WINDOW: Final = 1 << 30
#: Kinds of file systems whose files are in memory, and beginnings of those behind a network or a program.
MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
REMOTE: Final = (
    "nfs",
    "cifs",
    "smb",
    "fuse",
    "9p",
    "ceph",
    "glusterfs",
    "afs",
    "lustre",
    "beegfs",
    "virtiofs",
)
#: Those that compress or share blocks: bytes on the disk are not those of the file.
CHANGED: Final = frozenset({"btrfs", "zfs", "squashfs", "erofs", "f2fs", "overlay"})


@dataclass(frozen=True, slots=True)
class Place:
    """A file or a folder.

    Attributes:
        path: As it was named.
        size: Bytes of its files.
        on_disk: Bytes that they take on the disk.
        cached: Bytes that are in the page cache; None where nothing tells.
        files: How many.
        device: Number of the device that it is on.
    """

    path: str
    size: int
    on_disk: int
    cached: int | None
    files: int
    device: int

    @property
    def has_holes(self) -> bool:
        """Whether it takes less on the disk than it says: reading holes reads nothing."""
        return self.on_disk < _WHOLE * self.size


def place_of(name: str) -> Place:
    """Looks at a path; reads no content.

    Raises:
        UserError: there is none, it cannot be read, or it is neither a file nor a folder.
    """
    shown = clean(name, most=200)
    try:
        status = Path(name).stat()
    except (OSError, ValueError) as error:
        why = clean(getattr(error, "strerror", None) or error)
        raise UserError(f"{shown!r} is neither a size, as 30GB, nor a path that can be read: {why}") from None
    if stat.S_ISREG(status.st_mode):
        known = [(Path(name), status)]
    elif stat.S_ISDIR(status.st_mode):
        known = list(_files(name, status.st_dev))
    else:
        raise UserError(f"{shown!r} is neither a file nor a folder")
    size = sum(own.st_size for _, own in known)
    if not size:
        raise UserError(f"{shown!r} holds no bytes")
    cached = [_cached(file, own.st_size) for file, own in known]
    return Place(
        name,
        size,
        sum(own.st_blocks * 512 for _, own in known),
        None if None in cached else sum(each or 0 for each in cached),
        len(known),
        status.st_dev,
    )


def _files(folder: str, device: int) -> Iterator[tuple[Path, os.stat_result]]:
    """The regular files below a folder, of its device alone."""
    count = 0
    for at, folders, names in os.walk(folder):
        for name in names:
            file = Path(at, name)
            with contextlib.suppress(OSError):
                status = file.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_dev == device:
                    count += 1
                    if count > _MOST:
                        raise UserError(f"{clean(folder, most=200)!r} holds more than {_MOST:,} files")
                    yield file, status
        folders[:] = [own for own in folders if not os.path.ismount(os.path.join(at, own))]  # noqa: PTH118


def _cached(file: Path, size: int) -> int | None:
    """Bytes of a file that are in the page cache, by mincore(2); None where it may not be read."""
    if size == 0:
        return 0
    page, found = mmap.PAGESIZE, 0
    try:
        with file.open("rb") as opened:
            for start in range(0, size, _WINDOW):
                length = min(_WINDOW, size - start)
                with mmap.mmap(opened.fileno(), length, prot=mmap.PROT_READ, offset=start) as mapped:
                    found += _resident(mapped, length, page) * page
    except (OSError, ValueError):
        return None
    return min(found, size)


def _resident(mapped: mmap.mmap, length: int, page: int) -> int:
    """How many pages of a mapping are in memory.

    Raises:
        OSError: the kernel does not say.
    """
    library = ctypes.CDLL(None, use_errno=True)
    pages = (length + page - 1) // page
    vector = (ctypes.c_ubyte * pages)()
    # The address of a mapping that may not be written: numpy reads it without a copy.
    import numpy as np  # noqa: PLC0415 - only for real paths

    address = np.frombuffer(mapped, dtype=np.uint8).ctypes.data
    if library.mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), vector) != 0:
        raise OSError(ctypes.get_errno(), "mincore")
    return int(np.count_nonzero(np.frombuffer(bytes(vector), dtype=np.uint8) & 1))


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the page cache and what is written into it.

    Attributes:
        memory: Bytes that the page cache may grow to: what is available, and what the cgroup leaves.
        dirty: Bytes that may be written before writers wait for the disk; None where unknown.
    """

    memory: int
    dirty: int | None


def limits(memory: int) -> Limits:
    """The limits of this machine.

    Args:
        memory: Bytes that may be used: available, and left by the cgroup.
    """
    own = {}
    for name in ("dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"):
        with contextlib.suppress(OSError, ValueError):
            own[name] = int(Path("/proc/sys/vm", name).read_text(encoding="utf-8"))
    # Writers are slowed from halfway between both limits on (mm/page-writeback.c, freerun).
    ends = [
        own.get(f"{kind}_bytes") or (own[f"{kind}_ratio"] / 100 * memory if f"{kind}_ratio" in own else None)
        for kind in ("dirty", "dirty_background")
    ]
    known = [end for end in ends if end is not None]
    return Limits(memory, int(sum(known) / 2) if len(known) == 2 else None)  # noqa: PLR2004 - both
