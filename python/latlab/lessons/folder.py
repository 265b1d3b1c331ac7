"""A lesson's folder: locked while it is used, removed at the end, or by the next lesson after a kill.

Only what lessons make is ever removed, from folders of this user whose names and locks are those of lessons'.
Standard library only, as the plain-Python programs are.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PREFIX: Final = "latlab-lesson-"
LOCK: Final = "lock"
#: What the lock of a lesson's folder holds, to the byte.
LOCK_TEXT: Final = b"latlab lesson folder: latlab removes it when no process holds a lock on this file\n"
_NAME: Final = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}")
#: Everything that lessons make in their folders, as paths from there: nothing else is ever removed from one.
#: The names that Go gives are those of its build cache.
_MADE: Final = re.compile(
    r"""
      (text|disk|calls|output|errors|blocks|rows|columns|habits\.bin|again\.bin|file\.bin|native\.latlab\.jsonl)
    | (answer|many)-\d+ | BlockData\d+ | \.?(ledger|explained)\.json(\.\w{8})?
    | (pair|files|steps|flushed|forgotten)-\d+(/((large|small_\d+)\.bin|file-\d+))?
    | downloads(/file_\d+)?
    | (linked_list|list_[a-z]+)(\.c|-\w+)?
    | (rust|c)(/(program|words\.(rs|c)|latlab_stage\.(rs|h)))?
    | go_(simple|optimised)(/(program|words_\w+\.go|go\.mod|stage(/stage\.go)?))?
    | go-cache(/(README|\w+\.txt|[0-9a-f]{2}(/[0-9a-f]{64}-[ad](/\w+)?)?))?
    """,
    re.VERBOSE,
)
#: `FS_IOC_GETFLAGS`, `FS_IOC_SETFLAGS` and `FS_TOPDIR_FL` of linux/fs.h.
_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
_TOP: Final = 0x20000
#: A folder may be swept before it has a lock; another one is made then, at most so many times.
_ATTEMPTS: Final = 10


@contextlib.contextmanager
def own_folder(place: Path) -> Iterator[Path]:
    """A new folder in that one, held until it is removed at the end; what killed lessons left goes first.

    Raises:
        OSError: it cannot be made.
    """
    sweep(place)
    folder, lock = _locked_folder(place)
    try:
        _spread(folder)
        yield folder
    finally:
        _remove(folder)
        if lock is not None:
            os.close(lock)


def fresh_folder(place: Path, kind: str) -> Path:
    """A new folder in a lesson's, called `KIND-NUMBER`, where no files were removed a moment ago.

    Without a journal, ext4 gives out no inode that was freed within five minutes, and looks at each of them
    again for every new file of the same group of blocks: 1,000 files took 155 to 700 ms in place of 33. Each
    folder in a lesson's has a group of its own, by its name; this one has a name that none had before.

    Raises:
        OSError: it cannot be made.
    """
    folder = place / f"{kind}-{secrets.randbelow(10**15)}"
    folder.mkdir()
    return folder


def _spread(folder: Path) -> None:
    """Asks ext4 to give each folder in this one a group of blocks of its own, as `chattr +T` does."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - Unix only

        descriptor = os.open(folder, os.O_RDONLY)
        try:
            (flags,) = struct.unpack("=q", fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8)))
            fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("=q", flags | _TOP))
        finally:
            os.close(descriptor)


def sweep(directory: Path) -> int:
    """Removes what killed lessons of this user left: folders that nobody holds, empty ones without a lock.

    Their names are those of lessons' folders to the letter. What lessons do not make stays in them, and so do
    the folder and its lock then.

    Returns:
        How many.
    """
    if not hasattr(os, "getuid"):
        return 0
    removed = 0
    with contextlib.suppress(OSError):
        device = directory.stat().st_dev
        for folder in [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]:
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and (found.st_uid, found.st_dev) == (os.getuid(), device):
                removed += _swept(folder)
    return removed


def _swept(folder: Path) -> bool:
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            folder.rmdir()
    except OSError:
        return False
    else:
        try:
            is_file = stat.S_ISREG(os.fstat(lock).st_mode)
            if is_file and os.read(lock, len(LOCK_TEXT) + 1) == LOCK_TEXT and _lock(lock):
                _remove(folder)
        finally:
            os.close(lock)
    return not folder.exists()


def _locked_folder(place: Path) -> tuple[Path, int | None]:
    """A new folder, and its lock where there are such things."""
    for attempt in itertools.count(1):
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        try:
            return folder, _new_lock(folder / LOCK)
        except OSError as error:
            with contextlib.suppress(OSError):
                folder.rmdir()
            if attempt == _ATTEMPTS or not isinstance(error, FileNotFoundError):
                raise
    raise AssertionError


def _new_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # Without a lock it has no text either, and nobody sweeps the folder.
        if _lock(descriptor):
            os.write(descriptor, LOCK_TEXT)
            return descriptor
    except OSError:
        os.close(descriptor)
        path.unlink()
        raise
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool:
    """Locks a file until it is closed; False where another process holds it or there are no locks."""
    if sys.platform == "win32":
        return False
    import fcntl  # noqa: PLC0415 - Unix only

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folder: Path) -> None:
    """Removes what lessons make in a folder, then its lock and the folder, unless anything else is in it."""
    sweep(folder)
    with contextlib.suppress(OSError):
        own = folder.lstat()
        # Links are not followed.
        for root, folders, files in os.walk(folder, topdown=False):
            for name in (*files, *folders):
                path = Path(root, name)
                if _MADE.fullmatch(path.relative_to(folder).as_posix()):
                    with contextlib.suppress(OSError):
                        _remove_one(path, own)
        if [path.name for path in folder.iterdir()] == [LOCK]:
            (folder / LOCK).unlink()
            folder.rmdir()


def _remove_one(path: Path, own: os.stat_result) -> None:
    found = path.lstat()
    if (found.st_uid, found.st_dev) != (own.st_uid, own.st_dev):
        return
    if stat.S_ISDIR(found.st_mode):
        path.rmdir()
    elif stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        path.unlink()
