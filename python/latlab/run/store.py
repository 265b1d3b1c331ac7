"""The folder of runs: where they are kept, how one is named on the command line, and an index of them.

The files are the store. The SQLite index beside them only saves reading every file's first line again: it is
made anew when it is missing, damaged or old, and nothing needs it. A file of its name that is not latlab's is
left alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from latlab.errors import RunFileError, UserError
from latlab.run import model
from latlab.run.reader import SUFFIX, Limits
from latlab.run.writer import RunWriter
from latlab.text import clean

INDEX: Final = "index.sqlite3"
_SUFFIXES: Final = (SUFFIX, SUFFIX + ".zst")
_ID = re.compile(r"[A-Za-z0-9._-]{1,80}")
_MOST_LISTED: Final = 10_000
_TAIL_BYTES: Final = 64 * 1024
# Locked by another latlab, a full disk, a read-only file system: the next one will do it.
_PASSING: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
    }
)
#: SQLite's application id of our indexes, "latl": a database without it is somebody else's.
_APPLICATION: Final = 0x6C61_746C
_COLUMNS: Final = "name, mtime_ns, size, id, started, cpu, profile, stopped_by"


@dataclass(frozen=True, slots=True)
class Entry:
    """A run file in short.

    Attributes:
        path: the file.
        id: the run's id; the file's name without suffix where the header cannot be read.
        started: RFC 3339, empty where unknown.
        cpu: CPU model, empty where unknown. Not cleaned for display.
        profile: `quick`, `standard`, `thorough`.
        stopped_by: the footer's word; `cut short` without a footer.
        size: bytes.
    """

    path: Path
    id: str
    started: str
    cpu: str
    profile: str
    stopped_by: str
    size: int

    @property
    def started_s(self) -> float:
        """Seconds since 1970; 0 where unknown."""
        return _instant(self.started)


class _Brief(msgspec.Struct):
    id: str
    started: str
    machine: model.Json
    settings: model.Settings = model.Settings()


class _Ending(msgspec.Struct):
    line: str = ""
    stopped_by: str = ""


_ENDING = msgspec.json.Decoder(_Ending)
_BRIEF = msgspec.json.Decoder(_Brief)


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

    def _keeps_index(self, folder: Path) -> bool:
        """Whether an index belongs there: not among other files, where the user happens to be."""
        return folder in {self._usual, _temporary_folder()}

    def beside(self) -> Path | None:
        """The folder for what is kept beside runs, made if need be; `None` where none can be written.

        It is not the current folder, where the user happens to be.
        """
        for place in filter(self._keeps_index, self._places()):
            with contextlib.suppress(OSError):
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
                if _can_be_written(place) and (place == self._usual or _is_own(place)):
                    return place
        return None

    def entries(self) -> list[Entry]:
        """All runs, the newest last. Files that are no runs are left out."""
        entries = [
            entry for folder in self._searched() for entry in _entries(folder, self._keeps_index(folder))
        ]
        return sorted(entries, key=lambda entry: (entry.started_s, entry.id))

    def resolve(self, name: str | os.PathLike[str]) -> Path:
        """The file of a run: a path, an id, the beginning of one, or `last`.

        Raises:
            UserError: there is none, or several begin so.
        """
        text = os.fspath(name)
        if _looks_like_path(text):
            return Path(text)
        where = clean(self.folder, most=200)
        if text == "last":
            entries = self.entries()
            if not entries:
                raise UserError(f"there is no run in {where} yet: `latlab measure` makes one")
            return entries[-1].path
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
        raise UserError(f"{len(found)} runs begin with {text!r}: {names}; write more of the one you mean")


def _named(text: str) -> Iterator[str]:
    return (text + suffix for suffix in _SUFFIXES)


def _looks_like_path(text: str) -> bool:
    separators = [os.sep, os.altsep] if os.altsep else [os.sep]
    if any(separator in text for separator in separators) or text.endswith(
        (*_SUFFIXES, ".json", ".jsonl", ".zst")
    ):
        return True
    try:
        return text not in {"", "last"} and os.path.lexists(text)
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


def _entries(folder: Path, keeps_index: bool) -> list[Entry]:
    try:
        with os.scandir(folder) as scan:
            items = [item for item in scan if item.name.endswith(_SUFFIXES)]
    except OSError:
        return []
    files = []
    for item in items:
        # A link that leads nowhere or round in circles, a file that has just gone.
        with contextlib.suppress(OSError):
            if item.is_file():
                files.append((item.name, item.stat()))
    files = sorted(files)[-_MOST_LISTED:]
    index = _Index(folder)
    known = index.known()
    out: list[Entry] = []
    fresh: list[tuple[str, int, Entry]] = []
    for name, status in files:
        entry = known.get((name, status.st_mtime_ns, status.st_size))
        if entry is None:
            entry = _summary(folder / name, status.st_size)
            if entry is None:
                continue
            fresh.append((name, status.st_mtime_ns, entry))
        out.append(entry)
    if keeps_index:
        index.update(fresh, keep={name for name, _ in files})
    return out


def _summary(path: Path, size: int) -> Entry | None:
    """A run file in short from its first and last line; None if it is no run."""
    if path.name.endswith(".zst"):
        from latlab.run.reader import read  # noqa: PLC0415 - only for packed files

        try:
            run = read(path)
        except RunFileError:
            return None
        stopped = run.footer.stopped_by if run.footer else "cut short"
        cpu = run.machine.text("cpu.model_name") or ""
        return Entry(path, run.id, run.header.started, cpu, run.settings.profile, stopped, size)
    try:
        with path.open("rb") as file:
            first = file.readline(Limits().line_bytes)
            last = _last_line(file, size)
        brief = _BRIEF.decode(first)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None
    try:
        ending = _ENDING.decode(last)
        stopped = ending.stopped_by if ending.line == "footer" else "cut short"
    except (ValueError, RecursionError, msgspec.MsgspecError):
        stopped = "cut short"
    machine = model.Machine(brief.machine if isinstance(brief.machine, dict) else {})
    cpu = machine.text("cpu.model_name") or ""
    return Entry(path, brief.id, brief.started, cpu, brief.settings.profile, stopped, size)


def _last_line(file: BinaryIO, size: int) -> bytes:
    """A footer holds the run's figures: a few hundred kilobytes."""
    most = _TAIL_BYTES
    while True:
        file.seek(max(size - most, 0))
        _, newline, last = file.read(most).rstrip(b"\n").rpartition(b"\n")
        if newline or most >= min(size, Limits().line_bytes):
            return last
        most *= 8


class _Index:
    """The SQLite index of one folder; every failure of it is as if there were none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / INDEX

    def _is_ours(self) -> bool:
        """Whether it is one that latlab made, is empty, or is not there."""
        try:
            if not self._path.is_file():
                return not os.path.lexists(self._path)
            with self._path.open("rb") as file:
                head = file.read(72)
        except OSError:
            return False
        # https://www.sqlite.org/fileformat.html, section 1.3: the application id at byte 68.
        begin = b"SQLite format 3\0"
        return not head or (head.startswith(begin) and head[68:] == _APPLICATION.to_bytes(4))

    def known(self) -> dict[tuple[str, int, int], Entry]:
        if not self._path.is_file() or not self._is_ours():
            return {}
        try:
            with contextlib.closing(self._open("ro")) as base:
                rows = base.execute(f"SELECT {_COLUMNS} FROM runs LIMIT {_MOST_LISTED}").fetchall()  # noqa: S608
            return {
                (name, mtime, size): Entry(
                    self._folder / name,
                    str(run_id),
                    str(started),
                    str(cpu),
                    str(profile),
                    str(stopped),
                    int(size),
                )
                for name, mtime, size, run_id, started, cpu, profile, stopped in rows
            }
        except (sqlite3.Error, TypeError, ValueError):
            return {}

    def update(self, fresh: Sequence[tuple[str, int, Entry]], keep: set[str]) -> None:
        if not fresh or not os.access(self._folder, os.W_OK) or not self._is_ours():
            return
        for attempt in (1, 2):
            try:
                with contextlib.closing(self._open("rwc")) as base, base:
                    base.execute(f"PRAGMA application_id = {_APPLICATION}")
                    base.execute(f"CREATE TABLE IF NOT EXISTS runs ({_COLUMNS}, PRIMARY KEY (name))")
                    gone = {name for (name,) in base.execute("SELECT name FROM runs")} - keep
                    base.executemany("DELETE FROM runs WHERE name = ?", [(name,) for name in gone])
                    base.executemany(
                        "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                        [
                            (name, mtime, e.size, e.id, e.started, e.cpu, e.profile, e.stopped_by)
                            for name, mtime, e in fresh
                        ],
                    )
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode in _PASSING:
                    return
                # Damaged, or of another form: made anew, once.
                if attempt == 1:
                    with contextlib.suppress(OSError):
                        self._path.unlink()
            else:
                return

    def _open(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._path.absolute().as_uri()}?mode={mode}", uri=True, timeout=0.5)


def _instant(started: str) -> float:
    """Seconds since 1970 of an RFC 3339 text; 0 where it is none."""
    try:
        moment = datetime.fromisoformat(started)
        return (moment if moment.tzinfo else moment.astimezone()).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
