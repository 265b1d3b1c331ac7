"""Writes a finished file: whole or not at all, also when this process is killed meanwhile."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from latlab.errors import UserError
from latlab.run.writer import give_name, open_unnamed
from latlab.text import clean


def save(target: Path, content: bytes, *, replace: bool = True) -> Path:
    """Writes or replaces a file, so that a full disk or a kill never leaves half of one.

    A device or a pipe is written as it is.

    Raises:
        UserError: it cannot be written, or it exists and is not to be replaced.
    """
    try:
        if not replace:
            if not _save_new(target, content):
                with target.open("xb") as file:
                    file.write(content)
        elif target.exists() and not stat.S_ISREG(target.stat().st_mode):
            target.write_bytes(content)
        elif not _save_new(target, content):
            replace_file(target, content)
    except FileExistsError:
        raise UserError(f"{clean(target, most=300)} already exists") from None
    except (OSError, ValueError) as error:
        reason = clean(getattr(error, "strerror", None) or error)
        raise UserError(f"cannot write {clean(target, most=300)}: {reason}") from None
    return target


def _save_new(target: Path, content: bytes, mode: int | None = None) -> bool:
    """Through a file that has no name before it is whole; False where there is no such thing."""
    if os.path.lexists(target):
        return False
    descriptor = open_unnamed(target.parent)
    if descriptor < 0:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        try:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            give_name(file.fileno(), target)
        except OSError:
            return False
    return True


def replace_file(target: Path, content: bytes, *, mode: int | None = None) -> None:
    """A reader of the file meanwhile finds the old one or the new one, of the same mode unless one is named.

    A link stays one: what it points to is replaced.

    Raises:
        OSError: it cannot be written.
    """
    target = target.resolve()
    part = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
    mode = _mode_of(target) if mode is None else mode
    if not _save_new(part, content, mode):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(part, flags, 0o600)
        # From here on it is surely ours.
        with _removed_on_failure(part):
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            part.chmod(mode)
    with _removed_on_failure(part):
        part.replace(target)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Waits for others that write in a folder, where that has a lock (not on Windows, some networks)."""
    with contextlib.ExitStack() as stack:
        # Not the file: it is replaced, and a lock is of what was replaced.
        with contextlib.suppress(OSError, ImportError):
            import fcntl  # noqa: PLC0415 - Unix only

            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _removed_on_failure(part: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _mode_of(target: Path) -> int:
    """The mode of what is replaced, else of any new file."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
