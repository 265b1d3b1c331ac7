"""What was measured of this machine to explain programs by, kept in one file beside the runs.

It holds for this user of this latlab on this machine until it starts again, and for 30 days at most:
microcode, the CPUs' governor and the host of a virtual machine change with a start. A file that is missing,
damaged or of another machine is as none, and what is measured next takes its place.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import msgspec

from latlab.explain.model import Calibration
from latlab.run.core import core
from latlab.run.saving import replace_file
from latlab.run.store import Store
from latlab.text import clean

FILE: Final = "calibration.json"
_VERSION: Final = 3
"""Raised when something is measured otherwise."""
_LONGEST_S: Final = 30 * 86_400
_MOST_BYTES: Final = 1 << 20
_NAMES_THE_CPU: Final = ("model name", "microcode", "CPU part")
"""Lines of /proc/cpuinfo; architectures differ in which they have."""


class KeptLimit(msgspec.Struct, frozen=True):
    """A limit of this machine, measured at some sizes.

    Attributes:
        measured_s: when, seconds since 1970.
        points: size in bytes, and the lowest, middle and highest time of it.
        device: the file system that it is of; `None` where it is of none.
        note: why there is no point.
    """

    measured_s: int
    points: tuple[tuple[float, float, float, float], ...] = ()
    device: int | None = None
    note: str = ""


class _Machine(msgspec.Struct, frozen=True):
    """What a measurement depends on, beside the user."""

    boot: str
    kernel: str
    host: str
    cpu: tuple[str, ...]
    cpus: int
    latlab: str

    @classmethod
    def here(cls) -> Self:
        """This machine. Of all its CPUs the first is asked: of hundreds the kernel needs a while to tell."""
        about = platform.uname()
        lines = _beginning("/proc/cpuinfo").partition("\n\n")[0].splitlines()
        return cls(
            _beginning("/proc/sys/kernel/random/boot_id").strip(),
            f"{about.release} {about.version}",
            about.node,
            tuple(line for line in lines if line.startswith(_NAMES_THE_CPU)),
            os.cpu_count() or 0,
            core().__version__,
        )


class _Measured(msgspec.Struct, frozen=True):
    """What one user has measured."""

    calibrations: tuple[Calibration, ...] = ()
    limits: dict[str, tuple[KeptLimit, ...]] = {}

    def within(self, from_s: float, to_s: float) -> Self:
        """What was measured in this time."""
        return type(self)(
            tuple(each for each in self.calibrations if from_s <= each.measured_s <= to_s),
            {
                name: tuple(each for each in limits if from_s <= each.measured_s <= to_s)
                for name, limits in self.limits.items()
            },
        )


class _Content(msgspec.Struct, frozen=True):
    version: int
    machine: _Machine
    users: dict[str, _Measured] = {}


class Kept:
    """The file, as it was when this was made.

    Attributes:
        calibrations: those that hold.
        limits: by name, those that hold.
        notice: why something could not be kept, in one sentence, else empty.
    """

    def __init__(self, store: Store | None = None) -> None:
        self.notice = ""
        folder = (store or Store()).beside()
        self._path = None if folder is None else folder / FILE
        self._machine = _Machine.here()
        self._user = str(os.geteuid()) if hasattr(os, "geteuid") else ""
        mine = self._mine(self._users())
        self.calibrations = mine.calibrations
        self.limits = mine.limits

    def keep(self, calibration: Calibration) -> None:
        """Takes the place of the one with the same permission."""
        users = self._users()
        mine = self._mine(users)
        others = (each for each in mine.calibrations if each.recording != calibration.recording)
        self._write(users | {self._user: _Measured((*others, calibration), mine.limits)})

    def keep_limits(self, limits: Mapping[str, KeptLimit]) -> None:
        """Each takes the place of the one of the same name and file system."""
        users = self._users()
        mine = self._mine(users)
        for name, limit in limits.items():
            others = (each for each in mine.limits.get(name, ()) if each.device != limit.device)
            mine.limits[name] = (*others, limit)
        self._write(users | {self._user: mine})

    def _users(self) -> dict[str, _Measured]:
        """All that is kept of this machine."""
        if self._path is not None:
            with contextlib.suppress(OSError, msgspec.MsgspecError, RecursionError):
                content = msgspec.json.decode(_bytes_of(self._path), type=_Content)
                if content.version == _VERSION and content.machine == self._machine:
                    return content.users
        return {}

    def _mine(self, users: Mapping[str, _Measured]) -> _Measured:
        now = time.time()
        return users.get(self._user, _Measured()).within(now - _LONGEST_S, now)

    def _write(self, users: dict[str, _Measured]) -> None:
        if self._path is None:
            why = "this user has no writable folder"
        elif not self._machine.boot:
            why = "the kernel does not report its boot id"
        else:
            try:
                content = msgspec.json.encode(_Content(_VERSION, self._machine, users))
                replace_file(self._path, content, mode=0o600)
            except OSError as error:
                why = f"{clean(self._path, most=200)}: {clean(error.strerror or error)}"
            else:
                return
        self.notice = f"Measured limits of this machine cannot be kept and are measured each time ({why})."


def day_and_time(measured_s: float) -> str:
    """When something was measured, as this user's clock shows it."""
    return f"{datetime.fromtimestamp(measured_s):%d %b %H:%M}"


def _bytes_of(path: Path) -> bytes:
    """A file's beginning; nothing of what is no file, as a pipe would be waited for."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)


def _beginning(path: str) -> str:
    """The first 4 KiB of a file of the kernel's; empty where it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a name
            return file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""
