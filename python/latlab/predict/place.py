"""What of a path decides how long a job on it takes: sizes, holes, what is cached, its file system."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import stat
import sys
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
#: Number of the system call, on every architecture.
_CACHESTAT: Final = 451
#: Of larger files the page cache is looked through in windows of so many bytes.
_WINDOW: Final = 1 << 30
#: Number of the device, and of its feature; both are shown to everybody.
_VIRTIO, _BALLOON, _REPORTING = Path("/sys/bus/virtio/devices"), 5, 5
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
#: Mount options by which a file system compresses: bytes on the disk are not those of the file.
COMPRESSED: Final = ("compress", "compression=on")
#: Kinds that always do.
PACKED: Final = frozenset({"squashfs", "erofs", "zfs"})


@dataclass(frozen=True, slots=True)
class Place:
    """A file or a folder.

    Attributes:
        path: As it was named.
        size: Bytes of its files.
        on_disk: Bytes that they take on the disk.
        cached: Bytes that are in the page cache; None where unknown.
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
        raise UserError(
            f"{shown!r} is neither a size, such as 30GB, nor a path that can be read: {why}"
        ) from None
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


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


def _cached(file: Path, size: int) -> int | None:
    """Bytes of a file that are in the page cache; None where it may not be read, or that is unknown.

    By cachestat(2), which maps nothing (Linux 6.5); before it by mincore(2).
    """
    if size == 0:
        return 0
    page = mmap.PAGESIZE
    try:
        library = ctypes.CDLL(None, use_errno=True)
        with file.open("rb") as opened:
            counts = (ctypes.c_uint64 * 5)()
            asked = (opened.fileno(), ctypes.byref(_Range(0, size)), counts, 0)
            if sys.platform == "linux" and library.syscall(_CACHESTAT, *asked) == 0:
                return min(counts[0] * page, size)
            found = 0
            for start in range(0, size, _WINDOW):
                length = min(_WINDOW, size - start)
                # Private, so that its address may be asked for; nothing is written.
                with mmap.mmap(opened.fileno(), length, access=mmap.ACCESS_COPY, offset=start) as mapped:
                    found += _resident(library, mapped, length) * page
    except (OSError, ValueError, AttributeError):
        return None
    return min(found, size)


def _resident(library: ctypes.CDLL, mapped: mmap.mmap, length: int) -> int:
    """How many pages of a mapping are in memory.

    Raises:
        OSError: the kernel does not say.
    """
    vector = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
    first = ctypes.c_char.from_buffer(mapped)
    try:
        if library.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(length), vector) != 0:
            raise OSError(ctypes.get_errno(), "mincore")
    finally:
        # The mapping cannot be closed while something points into it.
        del first
    return sum(each & 1 for each in vector)


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the page cache and what is written into it.

    Attributes:
        memory: Bytes that the page cache may grow to: what is available, and what the cgroup leaves.
        dirty: Bytes that may be written before writers wait for the disk; None where unknown.
        returned: Free memory goes back to the host, which has to find it again when it is used.
    """

    memory: int
    dirty: int | None
    returned: bool = False


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
    dirty = int(sum(known) / 2) if len(known) == 2 else None  # noqa: PLR2004 - both
    return Limits(memory, dirty, _is_returned())


def _is_returned() -> bool:
    """Whether a balloon gives free memory back (virtio 1.2, 5.5.3: `VIRTIO_BALLOON_F_REPORTING`)."""
    for device in _VIRTIO.glob("*"):
        with contextlib.suppress(OSError):
            kind, features = ((device / name).read_text(encoding="utf-8") for name in ("device", "features"))
            if int(kind, 16) == _BALLOON and features[_REPORTING : _REPORTING + 1] == "1":
                return True
    return False
