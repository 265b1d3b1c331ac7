"""What the kernel's services cost a program: calls, switches, wake-ups, new threads, timers, locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from latlab.run.model import Point, Record
from latlab.run.operations import operation_rungs
from latlab.run.run import Run
from latlab.text import listed
from latlab.units import format_ns, format_ns_as_asked
from latlab.view.evidence import evidence
from latlab.view.plot import Dot, Dots, dot
from latlab.view.points import drawable, place_in, with_figures
from latlab.view.topic import Chart, Topic

PROBES: Final = (
    "kernel.mutex",
    "kernel.syscall",
    "kernel.context_switch",
    "kernel.wakeup",
    "kernel.timer",
    "kernel.spawn",
)
_SYSCALLS: Final = {
    "getppid": "system call: getppid",
    "read-0": "system call: read of nothing",
    "clock_gettime-vdso": "clock_gettime, without entering the kernel (vDSO)",
    "clock_gettime-syscall": "system call: clock_gettime",
    "futex-wake": "system call: futex wake, nobody waits",
}
_SPAWNS: Final = {
    "thread": "thread: started and joined",
    "fork-exit": "process: forked, ended, waited for",
    "posix_spawn": "program: posix_spawn, ended, waited for",
    "python": "Python: started, ended, waited for",
}
_TIMERS: Final = {
    "nanosleep": "nanosleep of {}",
    "nanosleep-absolute": "nanosleep until {} from now",
    "nanosleep-slack-1": "nanosleep of {} without slack",
    "thread-sleep": "Rust's thread::sleep of {}",
    "poll": "poll with a time-out of {}",
}
_PLACEMENTS: Final = {
    "same-cpu": "one CPU",
    "across-blocking": "two CPUs",
    "across-polling": "two CPUs, polling",
}


def name(record: Record) -> str:
    """What a record's operation is called."""
    named = _NAMES.get(record.probe)
    return named(record.point) if named else record.point.label()


def _switch(point: Point) -> str:
    if point.between is None:
        return f"{(point.operation or '').removesuffix('-alone')}: the calls of both sides, no switch"
    place = _PLACEMENTS.get(point.placement or "", point.placement or "")
    return f"{point.operation} there and back, {point.between or 'threads'}, {place}"


def _timer(point: Point) -> str:
    asked, called = format_ns_as_asked(point.sleep_ns), _TIMERS.get(point.operation or "")
    return f"{called.format(asked) if called else f'{point.operation} of {asked}'}: how late"


def _mutex(point: Point) -> str:
    many = point.threads or 1
    return f"mutex, lock and unlock, {many} thread{'' if many == 1 else 's'}"


_NAMES: Final[Mapping[str, Callable[[Point], str]]] = {
    "kernel.syscall": lambda point: _SYSCALLS.get(point.operation or "", f"system call: {point.operation}"),
    "kernel.context_switch": _switch,
    "kernel.wakeup": lambda point: f"wake-up of a thread that slept {format_ns_as_asked(point.sleep_ns)}",
    "kernel.spawn": lambda point: _SPAWNS.get(point.operation or "", f"{point.operation}"),
    "kernel.timer": _timer,
    "kernel.mutex": _mutex,
}


def _place(record: Record) -> tuple[int, int, str, str, str, int, int]:
    point = record.point
    operation = point.operation or ""
    known = [*_SYSCALLS, "pipe-alone", "pipe", "eventfd", "futex", *_TIMERS, *_SPAWNS]
    return (
        PROBES.index(record.probe),
        place_in(known, operation),
        operation,
        (point.placement != "same-cpu" and point.placement) or "",
        point.between or "",
        point.sleep_ns or 0,
        point.threads or 0,
    )


def lines(run: Run) -> list[Dot]:
    """A row for each operation that has a figure, in the order of the probes, like beside like."""
    records = [
        record
        for record in run.records
        if record.probe in PROBES and record.kind in {"batch_mean", "per_op"} and drawable(record.value)
    ]
    return [dot(name(record), record) for record in sorted(records, key=_place)]


def _picture(own: Sequence[Dot]) -> Dots:
    return Dots(
        own,
        "one operation, logarithmic",
        "Dot chart on a logarithmic axis: time of operations of the kernel.",
    )


def prose(run: Run) -> Iterator[str]:
    """What is asked for most, and how late the shortest sleep ends."""
    costs = {rung.key: rung.latency_p50_ns for rung in operation_rungs(run)}
    parts = [
        f"{name} costs {format_ns(cost)}" if key == "syscall" else f"{name} {format_ns(cost)}"
        for key, name in (
            ("syscall", "a system call"),
            ("context-switch", "a switch to another thread"),
            ("wakeup", "waking a sleeping thread"),
            ("thread", "a thread"),
            ("process", "a process"),
        )
        if (cost := costs.get(key)) is not None
    ]
    if parts:
        yield f"Here {listed(parts)}."
    late = [r for r in with_figures(run, "kernel.timer", "per_op") if r.point.sleep_ns]
    if late:
        shortest = min(late, key=lambda record: record.point.sleep_ns or 0)
        yield (
            f"A sleep of {format_ns_as_asked(shortest.point.sleep_ns)} ({shortest.point.operation}) ends"
            f" {format_ns(shortest.value)} late (median)."
        )


def _evidence(run: Run) -> Iterator[str]:
    for probe in sorted(PROBES):
        yield from (f"{probe}: {line}" for line in evidence(run, probe))


TOPIC: Final = Topic(
    Chart(
        id="kernel",
        title="What do the kernel's services cost?",
        caption="Logarithmic axis. Operations timed one by one have a whisker to their slow end; the "
        "rest are means over windows, which have no tail. A row “there and back” is two switches.",
        probe="kernel.syscall",
        measured=lines,
        picture=_picture,
        table=lambda own: _picture(own).table("operation"),
    ),
    probes=PROBES,
    prose=prose,
    evidence=_evidence,
)
