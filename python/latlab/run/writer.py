"""Writes a run file line by line, so that it is a readable, complete-so-far run at every moment.

The file appears under its name together with its first line: a process that is killed before that leaves
nothing behind. It never takes the place of another file. When the disk is full the run goes on in memory.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from latlab.errors import RunFileError
from latlab.run import model
from latlab.text import clean

_MOST_SUFFIXES = 100


class RunWriter:
    """An open run file.

    Attributes:
        path: where it is, or will be with the first line.
        error: why lines are kept in memory instead, or None.
    """

    def __init__(self, path: str | os.PathLike[str], *, may_rename: bool = False) -> None:
        """Makes sure that the file can be written, before anything is measured.

        Args:
            path: the file to make; it must not exist.
            may_rename: whether `-2`, `-3`, ... may be added to a name that is taken.

        Raises:
            RunFileError: it exists, or its folder is missing or cannot be written.
        """
        self.path = Path(path)
        self.error: str | None = None
        self._may_rename = may_rename
        self._pending = b""
        self._named = False
        self._descriptor = -1
        if not may_rename and os.path.lexists(self.path):
            raise _taken(self.path)
        try:
            self._descriptor = open_unnamed(self.path.parent)
        except OSError as error:
            raise RunFileError(f"{clean(self.path)} cannot be written: {_reason(error)}") from None

    def header(self, header: model.Header) -> None:
        """Writes the first line and gives the file its name.

        Raises:
            RunFileError: another file took the name meanwhile.
        """
        line = model.ENCODER.encode(header)
        if self._descriptor < 0:
            self._create()
        self._append(line)
        if not self._named:
            self._give_name()

    def record(self, record: model.Record | bytes) -> None:
        """Appends a record; as the core's own JSON it keeps fields that are not known here."""
        if isinstance(record, bytes):
            self._append(b'{"line":"record",' + record.lstrip()[1:])
        else:
            self._append(model.ENCODER.encode(record))

    def footer(self, footer: model.Footer) -> None:
        """Appends the last line and asks the system to keep the file through a power cut."""
        self._append(model.ENCODER.encode(footer))
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            # EINVAL, EROFS: a pipe or a file system that has no such thing.
            if error.errno not in {errno.EINVAL, errno.EROFS, errno.ENOTSUP}:
                self.error = self.error or _reason(error)

    def close(self) -> None:
        """Closes the file; further lines are lost."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, line: bytes) -> None:
        self._pending += line.rstrip(b"\n") + b"\n"
        self._flush()

    def _flush(self) -> None:
        try:
            while self._pending:
                count = os.write(self._descriptor, self._pending)
                self._pending = self._pending[count:]
        except OSError as error:
            # What was written of a line stays: a reader leaves out a torn last line, and the next write that
            # succeeds completes it.
            self.error = _reason(error)
        else:
            self.error = None

    def _create(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        for path in self._names():
            try:
                self._descriptor = os.open(path, flags, 0o666)
            except FileExistsError:
                continue
            except OSError as error:
                raise RunFileError(f"{clean(path)} cannot be written: {_reason(error)}") from None
            self.path, self._named = path, True
            return
        raise _taken(self.path)

    def _give_name(self) -> None:
        for path in self._names():
            try:
                give_name(self._descriptor, path)
            except FileExistsError:
                continue
            except OSError:
                self._copy_to_named()
                return
            self.path, self._named = path, True
            return
        raise _taken(self.path)

    def _copy_to_named(self) -> None:
        """Where an unnamed file cannot be linked (no /proc, some file systems), starts the file over."""
        unnamed = self._descriptor
        size = os.lseek(unnamed, 0, os.SEEK_END)
        text = os.pread(unnamed, size, 0)
        self._create()
        os.close(unnamed)
        self._pending = text + self._pending
        self._flush()

    def _names(self) -> list[Path]:
        if not self._may_rename:
            return [self.path]
        name = self.path.name
        stem, dot, suffix = name.partition(".")
        return [
            self.path,
            *(self.path.with_name(f"{stem}-{number}{dot}{suffix}") for number in range(2, _MOST_SUFFIXES)),
        ]


def open_unnamed(folder: Path) -> int:
    """A file without a name in that folder, or -1 where there is no such thing."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, _why_not(folder))
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag:
        return -1
    try:
        return os.open(folder, flag | os.O_RDWR | os.O_APPEND, 0o666)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL}:
            return -1
        raise


def give_name(descriptor: int, path: Path) -> None:
    """Gives an unnamed file its name; fails if the name is taken."""
    folder = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
    try:
        # With a folder to start from, os.link asks the kernel to follow the link that stands for the open
        # file; without one, it links that link itself.
        os.link(str(descriptor), path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _why_not(folder: Path) -> str:
    if not folder.exists():
        return f"there is no folder {clean(folder)}"
    return (
        f"{clean(folder)} is not a folder" if not folder.is_dir() else "no permission to write in its folder"
    )


def _taken(path: Path) -> RunFileError:
    return RunFileError(f"{clean(path)} already exists: name another file, or remove it first")


def _reason(error: OSError) -> str:
    return clean(error.strerror or error)
