"""What the kernel's services cost a program: calls, switches, wake-ups, new threads, timers, locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import altair as alt

from latlab.charts import dots
from latlab.charts.dots import Dot
from latlab.run.model import Point, Record
from latlab.run.run import Run
from latlab.units import format_ns_as_asked
from latlab.view.points import drawable, why_absent
from latlab.view.table import Table

ID = "kernel"
TITLE = "What does it cost to ask the kernel for something?"
PROBES = (
    "kernel.mutex",
    "kernel.syscall",
    "kernel.context_switch",
    "kernel.wakeup",
    "kernel.timer",
    "kernel.spawn",
)
_SYSCALLS = {
    "getppid": "system call: getppid",
    "read-0": "system call: read of nothing",
    "clock_gettime-vdso": "clock_gettime, answered outside the kernel (vDSO)",
    "clock_gettime-syscall": "system call: clock_gettime",
    "futex-wake": "system call: futex wake, nobody waits",
}
_SPAWNS = {
    "thread": "thread: started and joined",
    "fork-exit": "process: forked, ended, waited for",
    "posix_spawn": "program: posix_spawn, ended, waited for",
    "python": "Python: started, ended, waited for",
}
_TIMERS = {
    "nanosleep": "nanosleep of {}",
    "nanosleep-absolute": "nanosleep until {} from now",
    "nanosleep-slack-1": "nanosleep of {} without slack",
    "thread-sleep": "Rust's thread::sleep of {}",
    "poll": "poll with a time-out of {}",
}
_PLACEMENTS = {"same-cpu": "one CPU", "across-blocking": "two CPUs", "across-polling": "two CPUs, polling"}


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


_NAMES: Mapping[str, Callable[[Point], str]] = {
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
        known.index(operation) if operation in known else len(known),
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
    return [dots.dot(name(record), record) for record in sorted(records, key=_place)]


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, "kernel.syscall")


def chart(run: Run) -> alt.LayerChart | None:
    """One row an operation."""
    return dots.chart(lines(run), "one operation, logarithmic")


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = "; ".join(dots.spoken(row) for row in lines(run)[: dots.MOST_ROWS])
    return f"Dot chart on a logarithmic axis: time of operations of the kernel. {words}."


def table(run: Run) -> Table:
    """Every operation."""
    return dots.table(lines(run), "operation")
