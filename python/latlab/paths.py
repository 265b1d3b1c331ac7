"""Files and folders that somebody names: read, written to, or refused in one line."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from latlab.errors import UserError
from latlab.text import clean

_KINDS: Final = (
    (stat.S_ISLNK, "a symbolic link: name the file that it points to"),
    (stat.S_ISDIR, "a directory: name a file in it, or measure its disk with --dir"),
    (stat.S_ISBLK, "a device: only regular files are read"),
    (stat.S_ISCHR, "a device: only regular files are read"),
    (stat.S_ISFIFO, "a pipe: only regular files are read"),
    (stat.S_ISSOCK, "a socket: only regular files are read"),
)


def checked_file(value: str | os.PathLike[str]) -> str:
    """A regular file that exists and can be read, as an absolute path.

    Raises:
        UserError: it is none: missing, a directory, a device, a symbolic link, or not to be read.
    """
    shown = clean(os.fspath(value), most=300)
    if not os.fspath(value):
        raise UserError("the file name is empty")
    path = Path(value).absolute()
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise UserError(f"there is no file {shown!r}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{shown!r}: {clean(getattr(error, 'strerror', None) or error)}") from None
    for is_kind, what in _KINDS:
        if is_kind(found.st_mode):
            raise UserError(f"{shown!r} is {what}")
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{shown!r} is not a regular file")
    if not found.st_size:
        raise UserError(f"{shown!r} is empty: there is nothing to read")
    if not os.access(path, os.R_OK):
        raise UserError(f"{shown!r} cannot be read by this user")
    return os.fspath(path)


def checked_folder(value: str | os.PathLike[str]) -> str:
    """A folder that exists, as an absolute path.

    Raises:
        UserError: it is none.
    """
    if not os.fspath(value):
        raise UserError("the directory name is empty; use . for the current one")
    shown = clean(os.fspath(value), most=200)
    try:
        path = Path(value)
        if not path.exists():
            raise UserError(f"there is no directory {shown!r}")
        if not path.is_dir():
            raise UserError(f"{shown!r} is a file, not a directory")
        return os.fspath(path.resolve())
    except (OSError, ValueError) as error:
        raise UserError(f"{shown!r}: {clean(getattr(error, 'strerror', None) or error)}") from None


def checked_output(
    value: str | os.PathLike[str], endings: Sequence[str] = (), *, may_exist: bool = True
) -> Path:
    """A file that can be written, with one of these endings. Leaves nothing behind.

    Raises:
        UserError: It cannot, or it exists and may not be overwritten.
    """
    target = Path(value)
    shown = clean(os.fspath(value), most=200)
    if endings and not target.name.lower().endswith(tuple(endings)):
        raise UserError(f"{shown!r}: use a name that ends in {' or '.join(endings)}")
    try:
        if target.is_dir():
            raise UserError(f"{shown!r} is a directory; name a file in it")
        if target.exists():
            if not may_exist:
                raise UserError(f"{shown!r} already exists: name another file, or remove it first")
            if not os.access(target, os.W_OK):
                raise UserError(f"{shown!r} cannot be written: {os.strerror(errno.EACCES)}")
        folder = target.parent
        if not folder.is_dir():
            raise UserError(f"{shown!r}: there is no directory {clean(folder, most=200)!r}")
        # The only proof that a file can be made is to make one: permissions say nothing on a read-only file
        # system.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        raise UserError(
            f"{shown!r} cannot be written: {clean(getattr(error, 'strerror', None) or error)}"
        ) from None
    return target


def file_system_of(device: int) -> str:
    """The kind of file system on the device of that number, as `xfs`; empty where it is not listed."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            fields, _, rest = line.partition(" - ")
            if fields.split()[2:3] == [wanted]:
                return next(iter(rest.split()), "")
    return ""
