"""`explain --prove`: runs the program again with one thing changed, in turn with the program as it was.

Each round runs every variant once, in an order of its own, and each variant is compared with the
unchanged run of the same round: what drifts from round to round cancels. The figure is the median of
these ratios; its interval is that of order statistics, which assumes nothing of how they are
distributed. The unchanged program takes part twice: what it saves against itself is what chance alone
gives.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import stat
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from latlab import signals, stats
from latlab.errors import UserError
from latlab.explain import inputs
from latlab.explain.bounds import saving, undisturbed
from latlab.explain.experiments import (
    Experiment,
    Planned,
    environment_of,
    given_environment,
    machine_now,
    planned,
    subject_of,
)
from latlab.explain.judge import Judgement
from latlab.explain.model import Explained
from latlab.text import clean

_ROUNDS: Final = ((7, 120.0), (6, 1800.0), (3, float("inf")))
"""Rounds, and for how long they may take. Six are the fewest whose median has a 95 % interval."""
_VISIT_S: Final = 0.1
"""A shorter program is run several times in a row: starting it is then little of the time."""
_MOST_IN_A_ROW: Final = 10
_PIECE: Final = 1 << 30
_EVICTED: Final = 0.02
_WARM: Final = 0.98
_NEAR: Final = 0.25
"""Further from the median than this part of it, a run is no usual one: some percent are chance."""
CONTROL: Final = "itself-again"
_FROM_MEMORY: Final = frozenset({"input-in-memory", "input-on-tmpfs"})


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one experiment showed. Savings are shares of the unchanged program's wall time; negative: slower.

    Attributes:
        name: of the experiment; `itself-again` is the unchanged program once more.
        says: the change in words.
        how: what to type or do.
        rounds: pairs that were compared.
        wall_s: median wall time with the change.
        base_s: median wall time without it.
        saving: median over rounds.
        low: lower end of its interval.
        high: upper end.
        is_interval: whether low and high are a 95 % interval; else they are the range of too few rounds.
        bound: saved at most, by the ledger; None where the ledger bounds nothing of it.
        beats_bound: whether the whole interval lies above the bound.
        predicted: saving that the limits predict, from and to, where they do.
        is_worse: asks what would be lost.
        failed: why there is no figure.
    """

    name: str
    says: str
    how: str
    rounds: int
    wall_s: float | None = None
    base_s: float | None = None
    saving: float | None = None
    low: float | None = None
    high: float | None = None
    is_interval: bool = False
    bound: float | None = None
    beats_bound: bool = False
    predicted: tuple[float, float] | None = None
    is_worse: bool = False
    failed: str | None = None


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """All experiments, and what they were run on."""

    baseline: str
    runs: int
    input_files: int
    input_bytes: int
    experiments: tuple[Measured, ...]
    left_out: tuple[str, ...] = ()
    interrupted: bool = False
    without_waits: bool = False
    """Whether times are without waits for a CPU: those of a program of one thread."""
    explained_s: float | None = None
    """What the run that was explained took, calculated as the times here."""
    unchanged_s: tuple[float, float] | None = None
    """Shortest and longest time of the unchanged program."""
    is_typical: bool = True
    """Whether the run that was explained is like the unchanged ones; if not, its bounds are not theirs."""

    def best(self) -> Measured | None:
        """The largest saving that is more than chance: above nothing, and above the control's interval."""
        control = next((each for each in self.experiments if each.name == CONTROL), None)
        chance = max(control.high or 0.0, 0.0) if control is not None else 0.0
        found = [
            each
            for each in self.experiments
            if each.name != CONTROL
            and not each.is_worse
            and each.is_interval
            and each.low is not None
            and each.low > 0
            and (each.saving or 0.0) > chance
        ]
        return max(found, key=lambda each: each.saving or 0.0, default=None)


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
            self.planned.baseline, name=CONTROL, says="unchanged once more: what chance alone gives"
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


# ---- before anything


def check(arguments: Sequence[str]) -> Streams:
    """Whether the program can be run again as it was.

    Raises:
        UserError: it cannot; nothing was run.
    """
    if not arguments:
        raise UserError("--prove: runs a program again; a process that runs already cannot be")
    place = inputs.place_on_stdin(
        "--prove: standard input, a pipe or socket, can be read only once: put what comes from it into a file"
    )
    return Streams(place, _output())


def _output() -> str:
    try:
        mode = os.fstat(1).st_mode
        if stat.S_ISREG(mode):
            folder = Path("/proc/self/fd/1").readlink().parent
            return str(folder) if os.access(folder, os.W_OK) else "null"
        if stat.S_ISCHR(mode) and not os.isatty(1):
            return "null"
    except OSError:
        return "null"
    return "pipe"


def reason_not_to(explained: Explained) -> str | None:
    """Why a program that has ended is not run again."""
    if explained.program.signal is not None:
        return "a signal ended it"
    if explained.program.exit_code != 0:
        return f"it ended with {explained.program.exit_code}"
    if explained.program.left_running:
        return "processes of it are still running"
    return None


def agenda(explained: Explained, arguments: Sequence[str], files: Sequence[Path]) -> Agenda:
    """What is to be run, and for how long; `files` is what the program reads."""
    total = inputs.size(files)
    subject = subject_of(arguments)
    plan = planned(
        explained, subject, machine_now(subject, total, bool(_replaceable(arguments, files))), files, total
    )
    wall = max(explained.wall_s, 1e-4)
    in_a_row = max(1, min(_MOST_IN_A_ROW, round(_VISIT_S / wall)))
    a_round = in_a_row * wall * (2 + len(plan.experiments))
    rounds = next(rounds for rounds, most_s in _ROUNDS if rounds * a_round <= most_s)
    return Agenda(
        planned=plan,
        files=tuple(files),
        input_bytes=total,
        rounds=rounds,
        in_a_row=in_a_row,
        seconds=rounds * a_round,
    )


# ---- running it


def prove(
    explained: Explained,
    judgement: Judgement,
    arguments: Sequence[str],
    what: Agenda,
    streams: Streams,
    *,
    seed: int | None = None,
    told: Callable[[str], None] | None = None,
) -> Proof:
    """Runs all rounds; an interrupt ends them early, with what there is."""
    chance = random.Random(seed)  # noqa: S311 - an order, nothing secret
    with _Bench(explained, arguments, what, streams) as bench:
        times: dict[str, list[float | None]] = {each.name: [] for each in what.variants}
        failed: dict[str, str] = {}
        interrupted = False
        rounds = 0
        try:
            for at in range(what.rounds):
                if told is not None:
                    told(f"round {at + 1} of {what.rounds}")
                order = list(what.variants)
                chance.shuffle(order)
                seen: dict[str, float] = {}
                for variant in order:
                    if variant.name in failed:
                        continue
                    try:
                        seen[variant.name] = bench.visit(variant)
                    except _FailedError as error:
                        failed[variant.name] = str(error)
                        if variant.name == what.planned.baseline.name:
                            raise
                rounds += 1
                for name, list_of in times.items():
                    list_of.append(seen.get(name))
        except KeyboardInterrupt:
            interrupted = True
        except _FailedError as error:
            failed = {each.name: f"the unchanged program: {error}" for each in what.variants}
        runs, is_alone = bench.runs, bench.is_alone
    base = what.planned.baseline.name
    explained_s = explained.wall_s * (undisturbed(explained) if is_alone else 1.0)
    unchanged = [took for name in (base, CONTROL) for took in times[name] if took is not None]
    is_typical = is_near(explained_s, unchanged)
    measured = [
        _measured(explained, judgement, each, times[base], times[each.name], failed.get(each.name))
        for each in what.variants[1:]
    ]
    if not is_typical:
        measured = [
            msgspec.structs.replace(each, bound=None, predicted=None, beats_bound=False) for each in measured
        ]
    return Proof(
        baseline=what.planned.baseline.cache,
        runs=runs,
        input_files=len(what.files),
        input_bytes=what.input_bytes,
        experiments=tuple(measured),
        left_out=what.planned.left_out,
        interrupted=interrupted,
        without_waits=is_alone,
        explained_s=explained_s,
        unchanged_s=(min(unchanged), max(unchanged)) if unchanged else None,
        is_typical=is_typical,
    )


class _FailedError(Exception):
    """A run that says nothing; the text says why."""


class _Bench:
    """Starts the program over and over; leaves nothing behind."""

    def __init__(
        self, explained: Explained, arguments: Sequence[str], what: Agenda, streams: Streams
    ) -> None:
        self._explained = explained
        self._arguments = list(arguments)
        self._what = what
        self._streams = streams
        self._copies: list[int] = []
        self._copied: list[str] | None = None
        self._drain: _Drain | None = None
        self._running: subprocess.Popen[bytes] | None = None
        self._longest_s = 20 + 10 * explained.wall_s
        self._held = contextlib.ExitStack()
        # One thread's waits for a CPU are counted by the kernel, and can be taken off; of several, some are
        # hidden behind others that run.
        self.is_alone = explained.threads.most <= 1 and len(explained.processes) <= 1
        self.runs = 0

    def __enter__(self) -> _Bench:
        # Without this the program would go on when this process is asked to end.
        self._held.enter_context(signals.raised())
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._drain is not None:
            self._drain.close()
        for copy in self._copies:
            os.close(copy)
        self._held.close()

    def visit(self, variant: Experiment) -> float:
        """Wall time of one run, the mean of those in a row."""
        try:
            arguments = self._in_memory() if variant.copies else self._arguments
            total = 0.0
            for _ in range(self._what.in_a_row):
                self._prepare(variant)
                total += self._once(arguments, variant)
        except OSError as error:
            # No room, nothing to write to, too many files: the other experiments and the verdict remain.
            self._stop()
            raise _FailedError(clean(error, most=160)) from None
        return total / self._what.in_a_row

    def _prepare(self, variant: Experiment) -> None:
        files = self._what.files
        if not files or variant.cache == "as-is":
            return
        if variant.cache == "evicted":
            inputs.evict(files)
            left = inputs.resident(files)
            if left is None:
                raise _FailedError(
                    "this user does not own its input, so the kernel hides whether it is in memory"
                )
            if left > _EVICTED:
                raise _FailedError(
                    f"{100 * left:.0f} % of its input stayed in memory: another program may hold it"
                )
        else:
            inputs.warm(files)
            inside = inputs.resident(files)
            # Who may not know has read all of it just now.
            if inside is not None and inside < _WARM:
                raise _FailedError("its input does not stay in memory")

    def _once(self, arguments: Sequence[str], variant: Experiment) -> float:
        with contextlib.ExitStack() as stack:
            out = stack.enter_context(self._output(variant))
            source = stack.enter_context(self._input())
            stack.enter_context(_on_cpus(variant.cpus))
            environment = environment_of(variant, given_environment())
            begun = time.perf_counter()
            try:
                self._running = subprocess.Popen(  # noqa: S603 - the user's own command
                    arguments,
                    stdin=source,
                    stdout=out,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    # Ours are closed by themselves; those that the caller gave are the program's.
                    close_fds=False,
                    start_new_session=True,
                )
            except OSError as error:
                raise _FailedError(f"it cannot be started: {clean(error, most=120)}") from None
            took = self._wait(begun)
        self.runs += 1
        return took

    def _wait(self, begun: float) -> float:
        running = self._running
        if running is None:
            raise _FailedError("it is not running")
        handle = os.pidfd_open(running.pid)
        try:
            # Waiting with a timeout would look every now and then, up to 50 ms late.
            ended, _, _ = select.select([handle], [], [], self._longest_s)
            took = time.perf_counter() - begun
        finally:
            os.close(handle)
        if not ended:
            self._stop()
            raise _FailedError(f"it took more than {self._longest_s:.0f} s")
        if self.is_alone:
            took -= _waited_s(running.pid)
        code = running.wait()
        self._running = None
        if code != 0:
            raise _FailedError(f"it ended with {code}" if code > 0 else f"signal {-code} ended it")
        return took

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        with contextlib.suppress(OSError):
            os.killpg(running.pid, signal.SIGKILL)
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            running.wait(timeout=5)

    @contextlib.contextmanager
    def _output(self, variant: Experiment) -> Iterator[int]:
        """Where standard output goes: as it was, but to nobody."""
        kind = "null" if variant.output == "null" else self._streams.output
        if not any(each.output == "null" for each in self._what.planned.experiments):
            kind = "null"  # it does not matter, so nothing is written anywhere
        if kind == "null":
            file = os.open(os.devnull, os.O_WRONLY)
            try:
                yield file
            finally:
                os.close(file)
        elif kind == "pipe":
            if self._drain is None:
                self._drain = _Drain()
            yield self._drain.writing
        else:
            # A file without a name, where the program's own output went: nothing is left of it.
            with tempfile.TemporaryFile(dir=kind) as made:
                yield made.fileno()

    @contextlib.contextmanager
    def _input(self) -> Iterator[int]:
        at = self._streams.input_at
        if at is None:
            file = os.open(os.devnull, os.O_RDONLY)
        else:
            file = os.open("/proc/self/fd/0", os.O_RDONLY)
            os.lseek(file, at, os.SEEK_SET)
        try:
            yield file
        finally:
            os.close(file)

    def _in_memory(self) -> list[str]:
        """The arguments, with the files that they name copied into memory.

        A copy has no name but that of this process's descriptor: whatever ends this process takes it along.
        """
        if self._copied is None:
            copied = list(self._arguments)
            for at, name in _replaceable(self._arguments, self._what.files):
                copy = os.memfd_create("latlab-prove", os.MFD_CLOEXEC)
                self._copies.append(copy)
                with inputs.regular(name) as file:
                    while os.sendfile(copy, file.fileno(), None, _PIECE):
                        pass
                copied[at] = copied[at].removesuffix(name) + f"/proc/{os.getpid()}/fd/{copy}"
            self._copied = copied
        return self._copied


def _replaceable(arguments: Sequence[str], files: Sequence[Path]) -> list[tuple[int, str]]:
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
        self._told, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while self._told not in select.select([self._reading, self._told], [], [])[0]:
            os.read(self._reading, 1 << 20)

    def close(self) -> None:
        os.close(self._tell)
        self._thread.join()
        for end in (self._told, self._reading, self.writing):
            os.close(end)


@contextlib.contextmanager
def _on_cpus(count: int | None) -> Iterator[None]:
    """A program inherits the CPUs of the thread that starts it."""
    if count is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-count:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _waited_s(pid: int) -> float:
    """What a program of one thread waited for a CPU; it has ended, and has not been waited for."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    return 0.0


# ---- what it says


def _measured(
    explained: Explained,
    judgement: Judgement,
    variant: Experiment,
    base: Sequence[float | None],
    changed: Sequence[float | None],
    failed: str | None,
) -> Measured:
    known = Measured(
        name=variant.name,
        says=variant.says,
        how=variant.how,
        rounds=0,
        is_worse=variant.is_worse,
        bound=bound_of(explained, judgement, variant),
        predicted=_predicted(explained, judgement, variant),
        failed=failed,
    )
    pairs = [(one, other) for one, other in zip(base, changed, strict=False) if one and other]
    if not pairs:
        return msgspec.structs.replace(known, failed=failed or "no round was finished")
    low, median, high, is_interval = compared(pairs)
    return msgspec.structs.replace(
        known,
        rounds=len(pairs),
        base_s=statistics.median(one for one, _ in pairs),
        wall_s=statistics.median(other for _, other in pairs),
        saving=median,
        low=low,
        high=high,
        is_interval=is_interval,
        beats_bound=beats(low, known.bound),
    )


def compared(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float, bool]:
    """Median saving over pairs (without, with), between its ends; whether those are a 95 % interval."""
    savings = sorted(1 - other / one for one, other in pairs)
    median = statistics.median(savings)
    try:
        low, high = stats.order_statistic_interval(savings, 0.5)
    except UserError:
        return savings[0], median, savings[-1], False
    return low, median, high, True


def is_near(seconds: float, unchanged: Sequence[float]) -> bool:
    """Whether a run is like the unchanged ones: within their range, or near their median."""
    if not unchanged or min(unchanged) <= seconds <= max(unchanged):
        return True
    usual = statistics.median(unchanged)
    return abs(seconds - usual) <= _NEAR * usual


def beats(low: float, bound: float | None) -> bool:
    """Whether even the lower end of a saving is more than the ledger allows."""
    return bound is not None and low > bound


def bound_of(explained: Explained, judgement: Judgement, variant: Experiment) -> float | None:
    """Saved at most by a change, as a share of wall time.

    What waited for a CPU when it was explained need not wait when it is run again: the rest is then a larger
    share of less wall time. A disk that is not read from costs nothing outside of file I/O either.
    """
    if not variant.categories:
        return None
    beside = judgement.beside_reading if variant.name in _FROM_MEMORY else 0.0
    return min((saving(explained, variant.categories)[2] + beside) / undisturbed(explained), 1.0)


def _predicted(explained: Explained, judgement: Judgement, variant: Experiment) -> tuple[float, float] | None:
    if variant.name not in _FROM_MEMORY:
        return None
    bound = judgement.limit("read-memory")
    if bound is None:
        return None
    return bound.saving_low, min(bound.saving_high / undisturbed(explained), 1.0)
