"""What is typed, checked before anything is run: a mistake costs one line, not a minute and a line."""

from __future__ import annotations

import errno
import fnmatch
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from latlab.cli.nearest import nearest
from latlab.errors import UserError
from latlab.text import clean


def checked_directory(directory: str | None) -> str | None:
    """The directory that is asked about, as an absolute path.

    Raises:
        UserError: It is missing, or no directory.
    """
    if directory is None:
        return None
    if not directory:
        raise UserError("--dir: an empty name is no directory; . is the current one")
    path = Path(directory)
    shown = clean(directory, most=200)
    try:
        if not path.exists():
            raise UserError(f"--dir: there is no directory {shown!r}")
        if not path.is_dir():
            raise UserError(f"--dir: {shown!r} is a file, not a directory")
        return str(path.resolve())
    except (OSError, ValueError) as error:
        raise UserError(f"--dir: {shown!r}: {clean(getattr(error, 'strerror', None) or error)}") from None


def checked_globs(option: str, values: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Globs of probe ids, each of which matches something; commas separate several.

    Raises:
        UserError: One matches nothing; the message names the nearest id.
    """
    ids = list(known)
    globs = [glob.strip() for value in values for glob in value.split(",")]
    for glob in globs:
        if not glob:
            raise UserError(f"{option}: an empty glob matches no probe; latlab list shows the ids")
        if any(fnmatch.fnmatchcase(name, glob) for name in ids):
            continue
        guess = nearest(glob, ids)
        hint = f"did you mean {guess}?" if guess else "latlab list shows the ids"
        what = "matches no probe" if set(glob) & set("*?[") else "is no probe"
        raise UserError(f"{option}: {clean(glob, most=100)!r} {what}; {hint}")
    return tuple(globs)


def checked_output(path: str | None, endings: Sequence[str], *, may_exist: bool) -> Path | None:
    """A file that can be written, with one of these endings. Leaves nothing behind.

    Raises:
        UserError: It cannot, or it exists and may not be overwritten.
    """
    if path is None:
        return None
    target = Path(path)
    shown = clean(path, most=200)
    if endings and not target.name.lower().endswith(tuple(endings)):
        raise UserError(f"{shown!r}: write a name that ends in {' or '.join(endings)}")
    try:
        if target.is_dir():
            raise UserError(f"{shown!r} is a directory; name a file in it")
        if target.exists():
            if not may_exist:
                raise UserError(f"{shown!r} exists already: name another file, or remove it first")
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


def checked_cpus(cpus: tuple[int, ...] | None, allowed: Sequence[int]) -> tuple[int, ...] | None:
    """CPUs that this process may run on.

    Raises:
        UserError: One is not among them.
    """
    if cpus is None:
        return None
    missing = [cpu for cpu in cpus if cpu not in allowed]
    if missing and allowed:
        noun = f"CPU {missing[0]}" if len(missing) == 1 else f"CPUs {', '.join(map(str, missing[:8]))}"
        raise UserError(f"--cpu: {noun} cannot be used; this process may run on {ranges(allowed)}")
    return cpus


def ranges(numbers: Sequence[int]) -> str:
    """`0-3,8` of numbers."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)
