"""One measurement of a user at a time: an advisory lock of `latlab measure`.

The lock is an abstract Unix socket with the user's id in its name. The kernel frees the name however its
process ends, and no file is left. A second run connects to it: the kernel says whose process holds it, and
closes the connection when that process ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from latlab.run.model import Finding
from latlab.text import clean
from latlab.units import format_seconds

#: Runs with another value in this variable do not wait for each other: tests of latlab run side by side.
NAME_VARIABLE: Final = "LATLAB_LOCK_NAME"
#: Runs that wait for one; more go on at once.
_MOST_WAITING: Final = 128
_LONGEST_CALL_S: Final = 0.5
_CREDENTIALS: Final = struct.Struct("3i")

Wait = Callable[[socket.socket, float], object]
"""Waits until a connection is closed, at most so many seconds."""


def lock_name(user: int, suffix: str | None = None) -> str:
    """The lock's name among abstract sockets; a network namespace has its own."""
    return f"\0latlab-measure-{user}{os.environ.get(NAME_VARIABLE, '') if suffix is None else suffix}"


@dataclass(frozen=True, slots=True)
class Holder:
    """Another run of the same user, and a connection that ends with it.

    Attributes:
        process: its id; 0 where it is not visible from here.
        command: its command line, cleaned; empty where it cannot be read.
    """

    process: int
    command: str
    connection: socket.socket

    def __str__(self) -> str:
        """`process 1234, latlab measure --profile quick`."""
        named = f"process {self.process}" if self.process else "its process is not visible from here"
        return f"{named}, {self.command}" if self.command else named


def try_lock(name: str, user: int) -> socket.socket | Holder | None:
    """The lock, or who holds it; None where there is no such lock, or another user took its name."""
    if sys.platform != "linux":
        return None
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(name)
        lock.listen(_MOST_WAITING)
    except OSError as error:
        lock.close()
        return _holder(name, user) if error.errno == errno.EADDRINUSE else None
    return lock


def _holder(name: str, user: int) -> Holder | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(name)
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        connection.close()
        return None
    process, owner, _ = _CREDENTIALS.unpack(found)
    if owner != user:
        connection.close()
        return None
    return Holder(process, _command_of(process), connection)


def _command_of(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    names = [os.path.basename(word) for word in words]  # noqa: PTH119 - of bytes
    # As it was typed, without the interpreter.
    shown = [b"latlab", *words[names.index(b"latlab") + 1 :]] if b"latlab" in names else words
    return clean(b" ".join(shown).decode(errors="replace"), most=200)


def _until_closed(connection: socket.socket, most_s: float) -> None:
    end = time.monotonic() + most_s
    while (left_s := end - time.monotonic()) > 0:
        # Ctrl-C just before the system call does not end it: Python acts on it after the call.
        if select.select([connection], [], [], min(left_s, _LONGEST_CALL_S))[0]:
            return


@contextlib.contextmanager
def turn(
    most_s: float,
    *,
    beside: bool = False,
    say: Callable[[str], None],
    name: str | None = None,
    user: int | None = None,
    now: Callable[[], float] = time.monotonic,
    wait: Wait = _until_closed,
) -> Iterator[tuple[Finding, ...]]:
    """Holds the lock for a run, after waiting for another run of this user; yields what marks the run.

    Args:
        most_s: how long to wait, s. The run goes on then, and is marked.
        beside: whether to go on at once.
        say: told whom it waits for, and that it goes on beside them.
        name: the lock's name.
        user: whose runs wait for each other; this process's user by default.
        now: a clock, s.
        wait: waits for the end of a connection.
    """
    if user is None:
        user = os.geteuid() if hasattr(os, "geteuid") else 0
    name = lock_name(user) if name is None else name
    begun, reported = now(), 0
    found = try_lock(name, user)
    while isinstance(found, Holder):
        left_s = begun + most_s - now()
        if beside or left_s <= 0:
            found.connection.close()
            say(f"latlab: measuring beside another latlab measure ({found}): the run is marked")
            yield (_mark(found),)
            return
        if reported != found.process:
            reported = found.process
            say(
                f"latlab: waiting for another latlab measure ({found}), at most {format_seconds(left_s)};"
                " --beside does not wait"
            )
        with found.connection:
            wait(found.connection, left_s)
        found = try_lock(name, user)
    try:
        yield ()
    finally:
        if found is not None:
            found.close()


def _mark(holder: Holder) -> Finding:
    process = f" (process {holder.process})" if holder.process else ""
    return Finding(
        id="another-run",
        severity="warning",
        title=f"another latlab measure of this user was running{process}",
        effect="both runs competed for CPU time, memory bandwidth and the disk: any figure can be "
        "several times too slow",
        remedy="measure again when no other run is active",
    )
