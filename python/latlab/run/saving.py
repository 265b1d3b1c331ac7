"""Writes a finished file: whole or not at all, also when this process is killed meanwhile."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from latlab.errors import UserError
from latlab.run.writer import give_name, open_unnamed
from latlab.text import clean


def save(target: Path, content: bytes, *, replace: bool = True) -> Path:
    """Writes or replaces a file, so that a full disk or a kill never leaves half of one.

    A device or a pipe is written as it is.

    Args:
        target: the file.
        content: all of it.
        replace: whether it may exist already.

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
            _replace(target, content)
    except FileExistsError:
        raise UserError(f"{clean(target, most=300)} exists already") from None
    except (OSError, ValueError) as error:
        reason = clean(getattr(error, "strerror", None) or error)
        raise UserError(f"cannot write {clean(target, most=300)}: {reason}") from None
    return target


def _save_new(target: Path, content: bytes) -> bool:
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
            give_name(file.fileno(), target)
        except OSError:
            return False
    return True


def _replace(target: Path, content: bytes) -> None:
    # A link stays one: what it points to is replaced.
    target = target.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        part.chmod(_mode_of(target))
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _mode_of(target: Path) -> int:
    """The mode of what is replaced, else of any new file: mkstemp makes files private."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
