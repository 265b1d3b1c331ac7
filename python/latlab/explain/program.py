"""One run of a program in a session of its own, with what it took; nothing of it is left running."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from latlab import signals
from latlab.errors import UserError
from latlab.text import clean
from latlab.units import format_cpus

#: Bytes of its standard error that are kept, the last ones.
_KEPT: Final = 8 << 10
_LONGEST_WORDS: Final = 200


class ProgramError(Exception):
    """A program that could not be started, failed or took too long: `ended with exit code 3`."""


class Ran(NamedTuple):
    """What a run took.

    Attributes:
        wall_s: From before the program was started to its end.
        start_s: Of it until the program was executed.
        cpu_s: CPU time of it and of the processes that it waited for.
        page_faults: Likewise.
        memory_bytes: Most memory that one of these processes had; at least what this process has, for the
            kernel counts a program from before it is executed.
        waited_s: How long its first thread was ready and had no CPU.
    """

    wall_s: float
    start_s: float
    cpu_s: float
    page_faults: int
    memory_bytes: int
    waited_s: float


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int | None = None,
    longest_s: float | None = None,
) -> Ran:
    """Runs a program to its end.

    What it leaves behind in its process group is killed, and so is all of it when an exception, such as that
    of Ctrl-C, ends the wait.

    Args:
        arguments: Name and arguments.
        environment: All that the program is given.
        stdin: As of `subprocess`.
        stdout: Likewise.
        stderr: Likewise; None: read, and its last words are in the error.
        longest_s: It is killed after that time.

    Raises:
        ProgramError: it could not be started, failed, or took too long.
    """
    with contextlib.ExitStack() as held:
        reading = None
        if stderr is None:
            reading, stderr = os.pipe()
            held.callback(os.close, reading)
            os.set_blocking(reading, False)
        writing = stderr if reading is not None else None
        running: subprocess.Popen[bytes] | None = None
        try:
            try:
                # A Ctrl-C between its start and this process's knowledge of it would leave it running.
                with signals.deferred():
                    begun = time.perf_counter()
                    running = _started(arguments, environment, stdin, stdout, stderr)
                    started = time.perf_counter()
            finally:
                if writing is not None:
                    os.close(writing)
            said = _until_it_ends(running.pid, reading, None if longest_s is None else begun + longest_s)
            ended = time.perf_counter()
            waited_s = _waited_s(running.pid)
        except BaseException:
            if running is not None:
                stop(running)
            raise
        # It has not been waited for, so the number is still its own.
        _kill(running.pid)
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise ProgramError(f"{ending(running.returncode)}{last_words(said)}")
    return Ran(
        ended - begun,
        started - begun,
        usage.ru_utime + usage.ru_stime,
        usage.ru_minflt + usage.ru_majflt,
        usage.ru_maxrss << 10,
        waited_s,
    )


def _started(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None,
    stdin: int | None,
    stdout: int | None,
    stderr: int | None,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - the user's own command
            arguments,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            # Ours are closed by themselves; those that the caller gave are the program's.
            close_fds=False,
            start_new_session=True,
        )
    except OSError as error:
        raise ProgramError(
            f"cannot be started: {clean(error.strerror or error, most=_LONGEST_WORDS)}"
        ) from None
    except ValueError as error:
        raise ProgramError(f"cannot be started: {clean(error, most=_LONGEST_WORDS)}") from None


@contextlib.contextmanager
def on_cpus(cpus: Sequence[int] | None) -> Iterator[tuple[int, ...]]:
    """These CPUs for all that this thread starts meanwhile; those that it has where none are named.

    Raises:
        UserError: it may not run on one of them.
    """
    before = os.sched_getaffinity(0)
    if cpus is None:
        yield tuple(sorted(before))
        return
    if not set(cpus) <= before:
        raise UserError(
            f"--cpus: {format_cpus(set(cpus) - before)} cannot be used here; allowed: {format_cpus(before)}"
        )
    os.sched_setaffinity(0, cpus)
    try:
        yield tuple(cpus)
    finally:
        os.sched_setaffinity(0, before)


def ending(code: int) -> str:
    """How a program that failed ended: by its exit code, or minus a signal's number."""
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def last_words(said: bytes) -> str:
    """`; it said: …`, the last line with something in it; empty where there is none."""
    lines = [
        clean(line.strip(), most=_LONGEST_WORDS) for line in said.decode("utf-8", "replace").splitlines()
    ]
    last = next((line for line in reversed(lines) if line), "")
    return f"; it said: {last}" if last else ""


def stop(running: subprocess.Popen[bytes]) -> None:
    """Kills a program and its process group."""
    if running.returncode is None:
        _kill(running.pid)
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            running.wait(timeout=5)


def _kill(group: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)


def _until_it_ends(pid: int, reading: int | None, due: float | None) -> bytes:
    """Waits, to the moment; what was said meanwhile.

    Waiting as `subprocess` does with a timeout would look every now and then, up to 50 ms late.
    """
    handle = os.pidfd_open(pid)
    said = b""
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if reading is not None:
            poll.register(reading, select.POLLIN)
        while True:
            left = None if due is None else max(due - time.perf_counter(), 0.0)
            ready = [descriptor for descriptor, _ in poll.poll(None if left is None else 1e3 * left)]
            if not ready:
                raise ProgramError(f"took more than its time{last_words(said)}")
            if reading in ready and reading is not None:
                data = _read(reading)
                if not data:
                    poll.unregister(reading)
                said = (said + data)[-_KEPT:]
            if handle in ready:
                # What is in the pipe now; a process that has left the group may write for ever.
                said += b"" if reading is None else _read(reading)
                return said[-_KEPT:]
    finally:
        os.close(handle)


def _read(descriptor: int) -> bytes:
    """Empty at the end, and where there is nothing yet."""
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, 1 << 16)
    return b""


def _waited_s(pid: int) -> float:
    """What the first thread of a program waited for a CPU; it has ended, and has not been waited for."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    return 0.0
