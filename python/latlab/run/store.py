"""The folder of runs: where they are kept, and how one is named on the command line.

The files are the store. They are found by their first lines: those of 1,000 runs are read in 0.04 s.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from latlab.errors import RunFileError, UserError
from latlab.run.machine import Machine
from latlab.run.model import Settings, Tool
from latlab.run.reader import SUFFIX, Limits, decompressor
from latlab.run.writer import RunWriter
from latlab.text import clean

_SUFFIXES: Final = (SUFFIX, SUFFIX + ".zst")
_ID = re.compile(r"[A-Za-z0-9._-]{1,80}")
#: `last`, and `last~2` for the run two before it.
_NEWEST = re.compile(r"last(?:~(\d{1,5}))?")
_MOST_LISTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A run file in short.

    Attributes:
        path: the file.
        id: the run's id.
        started_s: when it began, seconds since 1970; 0 where unknown.
        size: bytes.
    """

    path: Path
    id: str
    started_s: float
    size: int


class _Brief(msgspec.Struct):
    """What of a header is told: it must also say what it was measured on."""

    id: str
    started: str
    machine: msgspec.Raw


_BRIEF = msgspec.json.Decoder(_Brief)


class Head(msgspec.Struct):
    """What of a header says on what and how a run was measured."""

    id: str
    started: str
    machine: Machine
    schema: str = ""
    settings: Settings = Settings()
    tool: Tool | None = None

    @property
    def started_s(self) -> float:
        """Seconds since 1970; 0 where unknown."""
        return _instant(self.started)


def _to_machine(kind: type, value: Any) -> Machine:  # noqa: ANN401 - any JSON
    """Without the checks of what is to be written again: a look-up never fails."""
    if kind is not Machine or not isinstance(value, dict):
        raise TypeError("Expected `object`")
    return Machine(value)


_HEAD = msgspec.json.Decoder(Head, dec_hook=_to_machine)


def head(path: Path) -> Head:
    """Reads the first line of a run file alone.

    Raises:
        RunFileError: it is no header of a run.
    """
    try:
        return _HEAD.decode(first_line(path))
    except (OSError, ValueError, RecursionError):
        raise RunFileError(f"{clean(path, most=300)} does not begin like a run file") from None


def default_folder() -> Path | None:
    """`$XDG_DATA_HOME/latlab/runs`, else `~/.local/share/latlab/runs`; None without a home."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification says to ignore a relative path.
    if data and os.path.isabs(data):  # noqa: PTH117 - of a string that may be empty
        return Path(data) / "latlab" / "runs"
    try:
        home = Path.home()
        # A home that does not exist says that there is none (`nobody` has /nonexistent): it is not made.
        return home / ".local" / "share" / "latlab" / "runs" if home.exists() else None
    except (OSError, RuntimeError):
        return None


def new_id(now: datetime | None = None) -> str:
    """A unique name that sorts by local time: `2026-11-21T003012-k3f9qa`."""
    import secrets  # noqa: PLC0415 - 5 ms that only a new run needs

    moment = now or datetime.now().astimezone()
    letters = "".join(secrets.choice("abcdefghjkmnpqrstvwxyz23456789") for _ in range(6))
    return f"{moment:%Y-%m-%dT%H%M%S}-{letters}"


class Store:
    """The folders in which runs are looked for. Nothing is made before a run is to be kept.

    Attributes:
        notice: one sentence for the user when a run does not go where runs usually go, else empty.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.notice = ""
        self._usual = default_folder() if folder is None else Path(folder)
        self._only_there = folder is not None

    @property
    def folder(self) -> Path:
        """The folder that new runs go to, unless it turns out that it cannot be written."""
        return next(self._places())

    def create(self, run_id: str) -> RunWriter:
        """Opens the file of a new run, in the first folder that allows it.

        Raises:
            RunFileError: none does.
        """
        reasons = [] if self._usual is not None else ["there is no home folder"]
        for place in self._places():
            try:
                folder = _made(place)
                writer = RunWriter(folder / f"{run_id}{SUFFIX}", may_rename=True)
            except (OSError, RunFileError) as error:
                reasons.append(_refusal(place, error))
                continue
            if reasons:
                self.notice = f"{reasons[0]}: this run is kept in {clean(folder, most=200)}"
            return writer
        raise RunFileError(f"no folder to keep the run in ({'; '.join(reasons)}): name a file with --out")

    def _places(self) -> Iterator[Path]:
        """Folders for a new run, the best first."""
        if self._usual is not None:
            yield self._usual
        if not self._only_there:
            # A folder that was removed under the shell's feet has no name.
            with contextlib.suppress(OSError):
                yield Path.cwd()
            yield _temporary_folder()

    def _searched(self) -> list[Path]:
        """Folders that may hold runs: the usual one alone, where runs can be kept in it."""
        if self._usual is not None and (self._only_there or _can_be_written(self._usual)):
            return [self._usual]
        return [place for place in self._places() if place != _temporary_folder() or _is_own(place)]

    def beside(self) -> Path | None:
        """The folder for what is kept beside runs, made if need be; `None` where none can be written.

        It is not the current folder, where the user happens to be.
        """
        for place in self._places():
            if place not in {self._usual, _temporary_folder()}:
                continue
            with contextlib.suppress(OSError):
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
                if _can_be_written(place) and (place == self._usual or _is_own(place)):
                    return place
        return None

    def entries(self) -> list[Entry]:
        """All runs, the newest last. Files that are no runs are left out."""
        entries = [entry for folder in self._searched() for entry in _entries(folder)]
        return sorted(entries, key=lambda entry: (entry.started_s, entry.id))

    def resolve(self, name: str | os.PathLike[str]) -> Path:
        """The file of a run: a path, an id, the beginning of one, `last`, or `last~1` for the one before.

        Raises:
            UserError: there is none, or several begin so.
        """
        text = os.fspath(name)
        if _looks_like_path(text):
            return Path(text)
        where = clean(self.folder, most=200)
        newest = _NEWEST.fullmatch(text)
        if newest:
            entries, back = self.entries(), int(newest[1] or 0)
            if not entries:
                raise UserError(f"there is no run in {where} yet: `latlab measure` makes one")
            if back >= len(entries):
                raise UserError(f"there are only {len(entries)} runs in {where}: {text} is too old")
            return entries[-1 - back].path
        if not _ID.fullmatch(text):
            raise UserError(f"no run {clean(text, most=100)!r} in {where}, and no such file")
        return self._by_prefix(text, where)

    def _by_prefix(self, text: str, where: str) -> Path:
        found = [
            entry for entry in self.entries() if entry.id.startswith(text) or entry.path.name.startswith(text)
        ]
        exact = [entry for entry in found if entry.id == text or entry.path.name in {text, *_named(text)}]
        if len(exact) == 1 or len(found) == 1:
            return (exact or found)[0].path
        if not found:
            raise UserError(f"no run {text!r} in {where}, and no such file: `latlab show last` is the newest")
        names = ", ".join(clean(entry.id, most=40) for entry in found[-4:])
        raise UserError(f"{len(found)} runs begin with {text!r}: {names}; give more of the id")


def _named(text: str) -> Iterator[str]:
    return (text + suffix for suffix in _SUFFIXES)


def _looks_like_path(text: str) -> bool:
    separators = [os.sep, os.altsep] if os.altsep else [os.sep]
    if any(separator in text for separator in separators) or text.endswith(
        (*_SUFFIXES, ".json", ".jsonl", ".zst")
    ):
        return True
    try:
        return bool(text) and not _NEWEST.fullmatch(text) and os.path.lexists(text)
    except ValueError:
        return False


def _can_be_written(folder: Path) -> bool:
    """Whether runs are kept in a folder; one that is not there yet may be one that cannot be made."""
    try:
        return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        return False


def _temporary_folder() -> Path:
    owner = os.getuid() if hasattr(os, "getuid") else os.getpid()
    return Path(tempfile.gettempdir()) / f"latlab-{owner}"


def _is_own(folder: Path) -> bool:
    """Whether a folder in the shared temporary folder is really this user's, not one prepared for him."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and (not hasattr(os, "getuid") or status.st_uid == os.getuid())


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder == _temporary_folder() and not _is_own(folder):
        return Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
    return folder


def _refusal(folder: Path, error: OSError | RunFileError) -> str:
    reason = f" ({clean(error.strerror or error)})" if isinstance(error, OSError) else ""
    return f"{clean(folder, most=200)} cannot be written{reason}"


def _entries(folder: Path) -> Iterator[Entry]:
    try:
        with os.scandir(folder) as scan:
            items = sorted(
                (item for item in scan if item.name.endswith(_SUFFIXES)), key=lambda item: item.name
            )
    except OSError:
        return
    for item in items[-_MOST_LISTED:]:
        # A link that leads nowhere or round in circles, a file that has just gone, one that is no run.
        with contextlib.suppress(OSError, ValueError, RecursionError):
            if item.is_file():
                brief = _BRIEF.decode(first_line(Path(item.path)))
                yield Entry(Path(item.path), brief.id, _instant(brief.started), item.stat().st_size)


def first_line(path: Path) -> bytes:
    """A run's header, which says on what and how it was measured."""
    with path.open("rb") as file:
        if path.suffix != ".zst":
            return file.readline(Limits().line_bytes)
        import zstandard  # noqa: PLC0415 - only for packed files

        try:
            with decompressor().stream_reader(file) as unpacked:
                return io.BufferedReader(unpacked).readline(Limits().line_bytes)
        except zstandard.ZstdError as error:
            raise ValueError from error


def _instant(started: str) -> float:
    """Seconds since 1970 of an RFC 3339 text; 0 where it is none."""
    try:
        moment = datetime.fromisoformat(started)
        return (moment if moment.tzinfo else moment.astimezone()).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
