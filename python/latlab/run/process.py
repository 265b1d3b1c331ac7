"""The process that measures: how it is started, what is read from its pipes, and how it ends."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from latlab.errors import WorkerError
from latlab.run.death import OomKills, cause_of_death, last_words, oom_kills
from latlab.run.events import Begin, End
from latlab.run.interrupts import Interrupts
from latlab.text import clean

_LONGEST_EVENT: Final = 64 << 20
_MOST_STRAY_LINES: Final = 100
_KEPT_STDERR: Final = 8 << 10


@dataclass(slots=True)
class Worker:
    """One measuring process and what it has said.

    Attributes:
        broken: why it is to be stopped, if it is.
        heard: when it last said something that is an event, s on the monotonic clock.
    """

    process: subprocess.Popen[bytes]
    oom_kills: OomKills
    current: Begin | None = None
    ended: End | None = None
    fatal: str = ""
    broken: str = ""
    heard: float = field(default_factory=time.monotonic)
    stray: int = 0
    _out: bytearray = field(default_factory=bytearray)
    _searched: int = 0
    _err: bytearray = field(default_factory=bytearray)

    @classmethod
    def start(cls, command: list[str], request: dict[str, object], kept: tuple[int, ...] = ()) -> Worker:
        """Starts one; `kept` are open files that it gets.

        Raises:
            WorkerError: it cannot be started.
        """
        kills = oom_kills()
        process = started([*command, str(os.getpid())], "measuring", kept)
        assert process.stdin is not None  # noqa: S101 - asked for
        # A worker that died already is heard of later.
        with contextlib.suppress(OSError):
            process.stdin.write(msgspec.json.encode(request | {"packages": _packages()}) + b"\n")
        return cls(process, kills)

    def lines(self, interrupts: Interrupts, *, grace_s: float, hang_s: float) -> Iterator[bytes]:
        """What it writes, line by line, until it ends, hangs, is `broken`, or was told to end.

        Args:
            interrupts: the first one tells it to end, a second one does not wait.
            grace_s: how long it may take after the first one.
            hang_s: how long it may say nothing.
        """
        out, err = self.process.stdout, self.process.stderr
        assert out is not None  # noqa: S101 - pipes were asked for
        assert err is not None  # noqa: S101
        told_at: float | None = None
        with selectors.DefaultSelector() as waiting:
            for stream in (out, err):
                os.set_blocking(stream.fileno(), False)
                waiting.register(stream, selectors.EVENT_READ)
            waiting.register(interrupts, selectors.EVENT_READ)
            while out in (key.fileobj for key in waiting.get_map().values()):
                if interrupts.count and told_at is None:
                    told_at = time.monotonic()
                    self.process.terminate()
                limit = self.heard + hang_s if told_at is None else told_at + grace_s
                if interrupts.count > 1 or time.monotonic() >= limit or self.broken:
                    if told_at is None:
                        self.broken = self.broken or f"it sent nothing for {hang_s:.0f} s"
                    self.process.kill()
                    # What it wrote before is still in the pipe.
                    break
                for key, _ in waiting.select(min(max(limit - time.monotonic(), 0.0), 1.0)):
                    if key.fileobj is interrupts:
                        interrupts.clear()
                    elif key.fileobj is err:
                        if not _read_into(err.fileno(), self._err, keep=_KEPT_STDERR):
                            waiting.unregister(err)
                    else:
                        alive = _read_into(out.fileno(), self._out)
                        yield from self._whole_lines()
                        if not alive:
                            waiting.unregister(out)
        self._drain()
        yield from self._whole_lines()

    def note_stray(self) -> None:
        """Counts a line that is no event; with too many of them it is broken."""
        self.stray += 1
        if self.stray > _MOST_STRAY_LINES:
            self.broken = "it wrote lines that are not events"

    def cause_of_death(self) -> str:
        """Why it ended, as a sentence for the user."""
        if self.broken:
            return f"the measuring process was stopped: {self.broken}"
        return cause_of_death(self.process.returncode, fatal=self.fatal, before=self.oom_kills)

    def with_last_words(self, text: str) -> str:
        """The sentence, with what it wrote to standard error."""
        said = last_words(self._err)
        return f"{text}; its message: {said}" if said else text

    def end(self) -> None:
        """Leaves none behind; one that the kernel does not end is not waited for."""
        process = self.process
        if process.poll() is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=2.0)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def _drain(self) -> None:
        """After the last event: lets it end, and takes what it said on standard error."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=2.0 if self.ended is None else 5.0)
        for stream, into, keep in (
            (self.process.stdout, self._out, None),
            (self.process.stderr, self._err, _KEPT_STDERR),
        ):
            # A grandchild may hold the pipe open: only what is there now is read.
            for _ in range(1 << 12):
                if stream is None or not _read_into(stream.fileno(), into, keep=keep, only_ready=True):
                    break

    def _whole_lines(self) -> Iterator[bytes]:
        lines: list[bytearray] = []
        # What was searched before is the beginning of one line: a long one is not searched again and again.
        if self._out.find(b"\n", self._searched) >= 0:
            *lines, self._out = self._out.split(b"\n")
        if len(self._out) > _LONGEST_EVENT:
            self.broken = "it wrote a line without end"
            self._out.clear()
        self._searched = len(self._out)
        for line in lines:
            if self.broken:
                break
            yield bytes(line)


def started(command: list[str], what: str, kept: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    """A process of ours with pipes, deaf to Ctrl-C.

    Args:
        command: its program and arguments.
        what: it does: `measuring`.
        kept: open files that it gets.

    Raises:
        WorkerError: it cannot be started.
    """
    try:
        with sigint_blocked():
            return subprocess.Popen(  # noqa: S603 - our own worker
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=clean_environment(),
                pass_fds=kept,
            )
    except OSError as error:
        reason = clean(error.strerror or error)
        raise WorkerError(f"the {what} process cannot be started: {clean(command[0])}: {reason}") from None


def worker_command() -> list[str]:
    """How the measuring process is started; what follows is the id of this one."""
    if not sys.executable:
        raise WorkerError(
            "this Python does not know its executable (sys.executable): run latlab from a normal Python"
        )
    return [sys.executable, "-I", "-S", os.fspath(Path(__file__).resolve().parent.parent / "worker.py")]


def _packages() -> str | None:
    """The folder that NumPy would be imported from: the measuring process has no site-packages of its own."""
    spec = importlib.util.find_spec("numpy")
    return None if spec is None or spec.origin is None else os.fspath(Path(spec.origin).parent.parent)


def clean_environment() -> dict[str, str]:
    """The environment without what would load an allocator or a profiler into the measuring process."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "DYLD_INSERT_LIBRARIES"}
        and not name.startswith(("MALLOC_", "PYTHON"))
    }
    # Who leaves restartable sequences to others has a reason, and they cost nothing that is measured.
    kept = [
        tunable
        for tunable in os.environ.get("GLIBC_TUNABLES", "").split(":")
        if tunable.startswith("glibc.pthread.rseq=")
    ]
    return environment | ({"GLIBC_TUNABLES": ":".join(kept)} if kept else {})


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """A process started within is born deaf to Ctrl-C; one for this process is delivered afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _read_into(
    descriptor: int, into: bytearray, *, keep: int | None = None, only_ready: bool = False
) -> bool:
    """Reads once; False at the end.

    Args:
        descriptor: a pipe that does not block.
        into: where the bytes are added.
        keep: at most so many bytes are kept, the last ones.
        only_ready: whether nothing to read right now counts as the end.
    """
    try:
        data = os.read(descriptor, 1 << 18)
    except BlockingIOError:
        return not only_ready
    except OSError:
        return False
    into += data
    if keep is not None and len(into) > keep:
        del into[:-keep]
    return bool(data)
