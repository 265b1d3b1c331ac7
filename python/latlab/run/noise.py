"""What `latlab noise` hears: a process of its own listens, this one reads what it says."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from latlab.errors import UserError, WorkerError
from latlab.run.death import cause_of_death, last_words, oom_kills
from latlab.run.process import started, worker_command
from latlab.text import clean

LEVELS: Final = ("time stamps", "interrupt flag", "rseq", "perf records", "tracepoints")
"""Of evidence, least first."""

_GRACE_S: Final = 5.0
"""How long it may take to judge what it has recorded, after Ctrl-C."""
_START_S: Final = 30.0
"""How long it may take beyond the time asked for: clock, quietest CPU, judgement."""
_LONGEST: Final = 64 << 20
_Answer = TypeVar("_Answer")


class Rung(msgspec.Struct, frozen=True):
    """One level of evidence: whether it is there, and if not, why not."""

    level: str
    available: bool
    reason: str | None = None


class CauseRow(msgspec.Struct, frozen=True):
    """What one cause took."""

    cause: str
    count: int
    per_s: float
    total_ns: float
    ns_per_s: float
    median_ns: float
    largest_ns: float
    share_time: float
    evidence: dict[str, int] = {}
    who: tuple[tuple[str, int], ...] = ()


class PeriodicInterference(msgspec.Struct, frozen=True):
    """A periodic cause. `phase_ns` is its first expected tick after the first clock read."""

    cause: str
    reason: str
    hz: float
    period_ns: float
    phase_ns: float
    ticks: int = msgspec.field(name="teeth")
    hit: int
    by_chance: float
    typical_ns: float
    gaps: int
    ns: float
    share_time: float


class Explained(msgspec.Struct, frozen=True):
    """How many gaps of a length and more have a cause.

    `by_period` of them have it from their period, of which `by_period_interrupted` had an interrupt too; by
    the interrupt flag alone, `by_interrupt` are some interrupt, and `outside` were not this kernel's.
    """

    at_least_ns: float
    gaps: int
    attributed: int
    by_period: int = msgspec.field(name="by_comb")
    ns: float
    by_period_interrupted: int = msgspec.field(default=0, name="by_comb_interrupted")
    by_interrupt: int = 0
    outside: int = 0


class Agreement(msgspec.Struct, frozen=True):
    """Timer ticks by tracepoints (`truly`) and by periodic interference alone (`found`)."""

    truly: int
    found: int
    recall: float
    precision: float


class Unprivileged(msgspec.Struct, frozen=True):
    """The same gaps judged without what root alone sees.

    `named` counts gaps of 10 µs and more by the cause found so, then by the cause that tracepoints give.
    """

    explained: tuple[Explained, ...]
    periodic: tuple[PeriodicInterference, ...] = msgspec.field(default=(), name="combs")
    timer_ticks: Agreement | None = None
    named: dict[str, dict[str, int]] = {}


class Count(msgspec.Struct, frozen=True):
    """How often the kernel counted something on the CPU meanwhile; `what` in its own words."""

    name: str
    what: str
    count: int


class Counted(msgspec.Struct, frozen=True):
    """What the kernel counted meanwhile, the most frequent first."""

    interrupts: tuple[Count, ...] = ()


class Noise(msgspec.Struct, frozen=True):
    """What kept a thread on one CPU from looking at the clock."""

    cpu: int
    pinned: bool
    stopped_by: str
    seconds: float
    threshold_ns: float
    level: str
    levels: tuple[Rung, ...]
    gaps: int
    gaps_ns: float
    causes: tuple[CauseRow, ...]
    periodic: tuple[PeriodicInterference, ...] = msgspec.field(name="combs")
    explained: tuple[Explained, ...]
    lost_records: int
    dropped_gaps: int
    unprivileged: Unprivileged | None = None
    counted: Counted = Counted()

    @property
    def lost_share(self) -> float:
        """Of the time that it listened."""
        return self.gaps_ns / (self.seconds * 1e9)


class CpuNoise(msgspec.Struct, frozen=True):
    """What one CPU lost in a few short listens."""

    cpu: int
    seconds: float
    gaps: int
    lost_share: float


class Survey(msgspec.Struct, frozen=True):
    """Every CPU shortly, the quietest for longer. `allowed` may be more than were listened to."""

    cpus: tuple[CpuNoise, ...]
    allowed: int
    quietest: Noise


class Score(msgspec.Struct, frozen=True):
    """How well one cause is found; `not_injected` were tried and did not come about, by reason."""

    injected: int
    found: int
    reported: int
    recall: float
    precision: float
    not_injected: dict[str, int] = {}


class Stalls(msgspec.Struct, frozen=True):
    """Stalls that nothing explains, and how many of them came out unexplained."""

    injected: int
    unexplained: int
    recall: float
    not_injected: dict[str, int] = {}


class Confusion(msgspec.Struct, frozen=True):
    """What was done to a CPU, and what was found."""

    cpu: int
    seconds: float
    level: str
    levels: tuple[Rung, ...]
    causes: dict[str, Score]
    unseen: tuple[str, ...]
    unseen_because: dict[str, str]
    stalls: Stalls
    matrix: dict[str, dict[str, int]]
    lost_records: int


def listen(
    seconds: float = 10.0,
    *,
    cpu: int | None = None,
    threshold_ns: float = 1000.0,
    level: str | None = None,
    command: list[str] | None = None,
) -> tuple[Noise, Any]:
    """Measures what interrupts a CPU, in a process of its own.

    Args:
        seconds: for how long.
        cpu: on which CPU; by default the quietest one.
        threshold_ns: shorter gaps are not looked at.
        level: the most evidence that is used, one of `LEVELS`.
        command: the measuring process, instead of this Python with `latlab/worker.py`.

    Returns:
        What was found, and the same as plain values, with all that is known. After Ctrl-C what was found
        until then; its `stopped_by` says so.

    Raises:
        UserError: it cannot be done as asked.
        WorkerError: the measuring process failed.
        KeyboardInterrupt: before anything was recorded.
    """
    request = {"what": "listen", "seconds": seconds, "cpu": cpu, "threshold_ns": threshold_ns, "level": level}
    line = _asked(request, patience_s=seconds + _START_S, command=command)
    return _decoded(line, Noise)


def self_test(
    seconds: float = 2.0,
    *,
    cpu: int | None = None,
    level: str | None = None,
    command: list[str] | None = None,
) -> tuple[Confusion, Any]:
    """Makes known disturbances, `seconds` for each of four kinds, and compares; otherwise as `listen`."""
    request = {"what": "self-test", "seconds": seconds, "cpu": cpu, "level": level}
    line = _asked(request, patience_s=4 * seconds + _START_S, command=command)
    return _decoded(line, Confusion)


def survey(
    seconds: float = 2.0, *, level: str | None = None, command: list[str] | None = None
) -> tuple[Survey, Any]:
    """Listens shortly to every CPU and for the rest of `seconds` to the quietest; otherwise as `listen`."""
    request = {"what": "survey", "seconds": seconds, "level": level}
    line = _asked(request, patience_s=seconds + _START_S, command=command)
    return _decoded(line, Survey)


def _decoded(line: bytes, kind: type[_Answer]) -> tuple[_Answer, Any]:
    try:
        return msgspec.json.decode(line, type=kind), msgspec.json.decode(line)
    except msgspec.MsgspecError as error:
        raise WorkerError(
            f"the measuring process sent an unreadable message: {clean(error, most=200)}"
        ) from None


def _asked(request: Mapping[str, object], *, patience_s: float, command: list[str] | None) -> bytes:
    kills = oom_kills()
    process = started([*(command or worker_command()), str(os.getpid()), "--noise"], "listening")
    line = msgspec.json.encode(request) + b"\n"
    with process:
        try:
            out, err = _patiently(process, lambda: process.communicate(line, timeout=patience_s))
        finally:
            if process.poll() is None:
                process.kill()
    answer = out[:_LONGEST].strip()
    if b'"event"' in answer[:20]:
        raise _refusal(answer)
    if not answer or process.returncode != 0:
        text = cause_of_death(process.returncode, fatal="", before=kills)
        said = last_words(bytearray(err))
        raise WorkerError(f"the measuring process failed: {text}{f'; its message: {said}' if said else ''}")
    return answer


def _patiently(
    process: subprocess.Popen[bytes], wait: Callable[[], tuple[bytes, bytes]]
) -> tuple[bytes, bytes]:
    """Waits for the answer. After Ctrl-C, for what was heard until then; nothing is KeyboardInterrupt."""
    try:
        return wait()
    except subprocess.TimeoutExpired:
        raise WorkerError("the measuring process did not end in time and was stopped") from None
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            process.send_signal(signal.SIGTERM)
        try:
            out, err = process.communicate(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            raise KeyboardInterrupt from None
        if not out.strip() or process.returncode != 0:
            raise KeyboardInterrupt from None
        return out, err


def _refusal(answer: bytes) -> UserError | WorkerError:
    try:
        text = clean(msgspec.json.decode(answer)["text"], most=500)
    except (msgspec.MsgspecError, KeyError, TypeError):
        return WorkerError("the measuring process failed without a message")
    mistakes = ("seconds:", "cpu:", "threshold_ns:", "no such level:")
    return (
        UserError(text) if text.startswith(mistakes) else WorkerError(f"the measuring process failed: {text}")
    )
