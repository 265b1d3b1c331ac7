"""A program that is run over and over: what is to be run, and how, so that nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from latlab import signals
from latlab.explain import inputs
from latlab.explain.experiments import Experiment, Planned, environment_of, given_environment
from latlab.explain.model import Explained
from latlab.explain.program import ProgramError, on_cpus, run
from latlab.text import clean

CONTROL: Final = "itself-again"
_PIECE: Final = 1 << 30
_EVICTED: Final = 0.02
_WARM: Final = 0.98


class Agenda(msgspec.Struct, frozen=True, kw_only=True):
    """What is about to be run."""

    planned: Planned
    files: tuple[Path, ...]
    input_bytes: int
    rounds: int
    in_a_row: int
    seconds: float

    @property
    def variants(self) -> tuple[Experiment, ...]:
        """The unchanged program twice, then the changes."""
        control = msgspec.structs.replace(
            self.planned.baseline, name=CONTROL, says="unchanged once more: the effect of chance alone"
        )
        return (self.planned.baseline, control, *self.planned.experiments)

    @property
    def runs(self) -> int:
        """Starts of the program."""
        return self.rounds * len(self.variants) * self.in_a_row


class Streams(msgspec.Struct, frozen=True):
    """What standard input and output were when the command began."""

    input_at: int | None
    output: str
    """`null`, `pipe`, or the folder of the file that it is."""


class FailedError(Exception):
    """A run that says nothing; the text says why."""


class Bench:
    """Starts the program over and over; leaves nothing behind."""

    def __init__(
        self, explained: Explained, arguments: Sequence[str], what: Agenda, streams: Streams
    ) -> None:
        self._arguments = list(arguments)
        self._what = what
        self._streams = streams
        self._copied: list[str] | None = None
        self._drain: _Drain | None = None
        self._longest_s = 20 + 10 * explained.wall_s
        self._held = contextlib.ExitStack()
        # One thread's waits for a CPU are counted by the kernel, and can be taken off; of several, some are
        # hidden behind others that run.
        self.is_alone = explained.threads.most <= 1 and len(explained.processes) <= 1
        self.runs = 0

    def __enter__(self) -> Bench:
        # Without this the program would go on when this process is asked to end.
        self._held.enter_context(signals.raised())
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def visit(self, variant: Experiment) -> float:
        """Wall time of one run, the mean of those in a row."""
        try:
            arguments = self._in_memory() if variant.copies else self._arguments
            total = 0.0
            for _ in range(self._what.in_a_row):
                self._prepare(variant)
                total += self._once(arguments, variant)
        except ProgramError as error:
            raise FailedError(f"it {error}") from None
        except OSError as error:
            # No room, nothing to write to, too many files: the other experiments and the verdict remain.
            raise FailedError(clean(error, most=160)) from None
        return total / self._what.in_a_row

    def _prepare(self, variant: Experiment) -> None:
        files = self._what.files
        if not files or variant.cache == "as-is":
            return
        if variant.cache == "evicted":
            inputs.evict(files)
            left = inputs.resident(files)
            if left is None:
                raise FailedError(
                    "this user does not own its input, so the kernel does not show whether it is in memory"
                )
            if left > _EVICTED:
                raise FailedError(
                    f"{100 * left:.0f} % of its input stayed in memory: another program may hold it"
                )
        else:
            inputs.warm(files)
            inside = inputs.resident(files)
            # Who may not know has read all of it just now.
            if inside is not None and inside < _WARM:
                raise FailedError("its input does not stay in memory")

    def _once(self, arguments: Sequence[str], variant: Experiment) -> float:
        with contextlib.ExitStack() as stack:
            out = stack.enter_context(self._output(variant))
            source = stack.enter_context(self._input())
            stack.enter_context(on_cpus(_last(variant.cpus)))
            ran = run(
                arguments,
                environment_of(variant, given_environment()),
                stdin=source,
                stdout=out,
                stderr=subprocess.DEVNULL,
                longest_s=self._longest_s,
            )
        self.runs += 1
        return ran.wall_s - (ran.waited_s if self.is_alone else 0.0)

    @contextlib.contextmanager
    def _output(self, variant: Experiment) -> Iterator[int]:
        """Where standard output goes: as it was, but to nobody."""
        kind = "null" if variant.output == "null" else self._streams.output
        if not any(each.output == "null" for each in self._what.planned.experiments):
            kind = "null"  # it does not matter, so nothing is written anywhere
        if kind == "null":
            with Path(os.devnull).open("wb", buffering=0) as nowhere:
                yield nowhere.fileno()
        elif kind == "pipe":
            if self._drain is None:
                self._drain = _Drain()
                self._held.callback(self._drain.close)
            yield self._drain.writing
        else:
            # A file without a name, where the program's own output went: nothing is left of it.
            with tempfile.TemporaryFile(dir=kind) as made:
                yield made.fileno()

    @contextlib.contextmanager
    def _input(self) -> Iterator[int]:
        at = self._streams.input_at
        with Path(os.devnull if at is None else "/proc/self/fd/0").open("rb", buffering=0) as source:
            source.seek(at or 0)
            yield source.fileno()

    def _in_memory(self) -> list[str]:
        """The arguments, with the files that they name copied into memory.

        A copy has no name but that of this process's descriptor: whatever ends this process takes it along.
        """
        if self._copied is None:
            copied = list(self._arguments)
            for at, name in replaceable(self._arguments, self._what.files):
                copy = os.memfd_create("latlab-prove", os.MFD_CLOEXEC)
                self._held.callback(os.close, copy)
                with inputs.regular(name) as file:
                    while os.sendfile(copy, file.fileno(), None, _PIECE):
                        pass
                copied[at] = copied[at].removesuffix(name) + f"/proc/{os.getpid()}/fd/{copy}"
            self._copied = copied
        return self._copied


def replaceable(arguments: Sequence[str], files: Sequence[Path]) -> list[tuple[int, str]]:
    """Arguments that name one of these files, by their place, and the name, with which they end."""
    found = []
    for at, word in enumerate(arguments[1:], 1):
        name = next((part for part in inputs.parts(word) if _is_among(part, files)), None)
        if name is not None:
            found.append((at, name))
    return found


def _is_among(name: str, files: Sequence[Path]) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return any(Path(name).samefile(file) for file in files)
    return False


class _Drain:
    """A pipe that is read empty until this is closed, whoever still holds its other end then.

    A program may leave a child behind that has its output: the pipe of one run would not end with it.
    """

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        self._reported, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while self._reported not in select.select([self._reading, self._reported], [], [])[0]:
            os.read(self._reading, 1 << 20)

    def close(self) -> None:
        os.close(self._tell)
        self._thread.join()
        for end in (self._reported, self._reading, self.writing):
            os.close(end)


def _last(count: int | None) -> list[int] | None:
    """The last so many of the CPUs that this thread may use; None for all."""
    return None if count is None else sorted(os.sched_getaffinity(0))[-count:]
