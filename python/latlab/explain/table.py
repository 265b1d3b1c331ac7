"""The ledger as a table of plain lines."""

from __future__ import annotations

from typing import Final

from latlab.explain.answer import SMALL, interval, percent
from latlab.explain.kept import day_and_time
from latlab.explain.model import Explained, Observer, Row, SourceLine, Stage, Symbol
from latlab.explain.named import shortened
from latlab.explain.resources import CallsOn, CallSum, Lock, Pauses
from latlab.text import aligned, clean
from latlab.units import format_bytes, format_count, format_ns, format_rate

_SHOWN: Final = 0.001
"""Smaller rows are summed in one line."""
_PART_SHOWN: Final = 0.005
_MOST_PARTS: Final = 4
_MOST_FUNCTIONS: Final = 3
_MOST_PROCESSES: Final = 8
_MOST_LOCKS: Final = 4
_MOST_CALLS: Final = 8
_MOST_PAUSES: Final = 6
_MOST_STEPS: Final = 6
_MOST_WAITS: Final = 5
_LEVELS: Final = {
    1: "kernel and user samples, the kernel's stack at each switch",
    2: "user samples, exact switches, reasons from /proc",
    3: "/proc and the kernel's counters only",
}


def table(explained: Explained) -> list[str]:
    """A row a category, largest first; what of it, indented; their sum."""
    shown = [row for row in explained.categories if row.share >= _SHOWN or row.name == "unexplained"]
    cells = [("category", "share", "95 % interval", "time", "how")]
    for row in shown:
        cells.append(_cells(row))
        cells.extend(_parts(row))
    rest = [row for row in explained.categories if row not in shown]
    if rest:
        share, seconds = sum(row.share for row in rest), sum(row.seconds for row in rest)
        cells.append(
            (f"{len(rest)} more, each below 0.1 %", percent(share), "", format_ns(1e9 * seconds), "")
        )
    whole = sum(row.share for row in explained.categories)
    cells.append(("sum", f"{100 * whole:.1f} %", "", format_ns(1e9 * explained.wall_s), ""))
    return aligned(cells)


def stages(explained: Explained) -> list[str]:
    """A row a stage that the program marks, the longest first; empty where it marks none."""
    if not explained.stages:
        return []
    cells = [("stage", "share", "time", "times", "bytes", "a second", "spent on")]
    for stage in explained.stages:
        marked = bool(stage.name)
        cells.append(
            (
                clean(stage.name, most=32) if marked else "(outside stages)",
                percent(stage.share),
                format_ns(1e9 * stage.seconds),
                format_count(stage.count) if marked else "",
                format_bytes(stage.bytes) if stage.bytes else "",
                format_rate(stage.rate) if stage.rate else "",
                _spent(stage),
            )
        )
    return aligned(cells)


def _spent(stage: Stage) -> str:
    """The largest parts of a stage, as shares of wall time like the stage's own."""
    parts = [part for part in stage.categories if part.share >= _PART_SHOWN][:_MOST_PARTS]
    return ", ".join(f"{part.name} {percent(part.share)}" for part in parts) or "–"


def processes(explained: Explained) -> list[str]:
    """A row a process, the busiest first; empty for one process."""
    if len(explained.processes) < 2:  # noqa: PLR2004 - one is the program itself
        return []
    cells = [("process", "was there", "ran or was ready", "waited most for", "")]
    for process in explained.processes[:_MOST_PROCESSES]:
        most = process.waits[0] if process.waits else None
        cells.append(
            (
                f"{clean(process.name, most=24)} ({process.pid})",
                format_ns(1e9 * process.wall_s),
                percent(process.running),
                f"{most.name} {percent(most.share)}" if most else "–",
                "",
            )
        )
    lines = aligned(cells)
    more = len(explained.processes) - _MOST_PROCESSES
    return [*lines, f"  and {more} more"] if more > 0 else lines


def locks(explained: Explained) -> list[str]:
    """A row a lock, those waited for longest first; empty where hardly any was."""
    shown = [lock for lock in explained.locks if lock.waited_s >= SMALL * explained.wall_s]
    if not shown:
        return []
    cells = [
        (
            clean(lock.called, most=48),
            format_ns(1e9 * lock.waited_s),
            _threads(lock.threads).removeprefix("at most "),
            f"{lock.scans:,}",
            held_by(lock, 2) or "–",
        )
        for lock in shown[:_MOST_LOCKS]
    ]
    return aligned([("lock", "waited for", "by", "samples", "held meanwhile by"), *cells])


def _at_least(pauses: Pauses) -> str:
    return "≥ " if pauses.is_least else ""


def pauses(explained: Explained) -> list[str]:
    """A row for each kind of pause of a Java, Go or Node program, those that took longest first."""
    if not explained.pauses:
        return []
    cells = [
        (
            f"{clean(each.called, most=56)} ({each.process})",
            f"{_at_least(each)}{each.times:,}",
            f"{_at_least(each)}{format_ns(1e9 * each.seconds)}",
            percent(each.seconds / explained.wall_s),
            format_ns(1e9 * each.longest_s) if each.longest_s is not None else "–",
        )
        for each in explained.pauses[:_MOST_PAUSES]
    ]
    return aligned([("pauses of its runtime", "times", "time", "of wall time", "longest seen"), *cells])


def returned(call: CallSum, most: int) -> str:
    """The errors of these calls: `3 ENOENT, 1 EAGAIN`; empty where there was none."""
    return ", ".join(f"{format_count(error.times)} {error.name}" for error in call.errors[:most])


def calls(explained: Explained) -> list[str]:
    """A row for all calls of one kind, those first that took longest; empty where they were not recorded."""
    asked = explained.calls
    if asked is None or not asked.of:
        return []
    cells = [("system call", "times", "time in it", "mean", "longest", "errors")]
    for call in asked.of[:_MOST_CALLS]:
        took, mean, longest = (
            format_ns(1e9 * each) for each in (call.seconds, call.seconds / call.times, call.longest_s)
        )
        cells.append((call.name, f"{call.times:,}", took, mean, longest, returned(call, 2) or "–"))
    lines = aligned(cells)
    rest = asked.of[_MOST_CALLS:]
    if rest:
        times = sum(call.times for call in rest)
        seconds = sum(call.seconds for call in rest)
        lines.append(f"  and {len(rest)} more kinds, {times:,} calls, {format_ns(1e9 * seconds)}")
    if asked.has_narrow:
        lines.append("  calls of 32-bit programs are not counted")
    if asked.restarts:
        lines.append(
            f"  recording restarted {format_count(asked.restarts)} times: calls in between are missing"
        )
    if asked.lost:
        lines.append(
            f"  {asked.lost:,} records were lost: up to as many more calls may have begun or returned"
        )
    return lines


def calls_on(explained: Explained) -> list[str]:
    """A row for all calls on one file, pipe, socket or device, as `calls`."""
    asked = explained.calls
    if asked is None or not asked.on:
        return []
    cells = [("calls on", "process", "times", "time in them", "longest", "read", "written", "errors")]
    for on in asked.on[:_MOST_CALLS]:
        took, longest = (format_ns(1e9 * each) for each in (on.seconds, on.longest_s))
        read, written = (format_bytes(each) if each else "–" for each in (on.read_bytes, on.written_bytes))
        process = f"{clean(on.process_name, most=16)} ({on.process})"
        cells.append(
            (called_on(on), process, f"{on.times:,}", took, longest, read, written, returned(on, 2) or "–")
        )
    lines = aligned(cells)
    rest = asked.on[_MOST_CALLS:]
    if rest:
        times, seconds = sum(on.times for on in rest), sum(on.seconds for on in rest)
        left_out = f"; {format_count(asked.left_out)} more are not listed" if asked.left_out else ""
        lines.append(f"  {times:,} calls on {len(rest)} others, {format_ns(1e9 * seconds)}{left_out}")
    return lines


def called_on(on: CallsOn) -> str:
    """What calls were made on; of a long path its end."""
    return "no name known" if on.name is None else shortened(on.name)


def critical_path(explained: Explained) -> list[str]:
    """A row for who did what on the critical path, longest first; empty where it is one process alone."""
    shown = [step for step in explained.steps if step.share >= _SHOWN][:_MOST_STEPS]
    if not shown:
        return []
    cells = [
        (clean(step.called, most=32), percent(step.share), format_ns(1e9 * step.seconds), step.doing or "")
        for step in shown
    ]
    return aligned([("critical path", "share", "time", "doing"), *cells])


def ended_waits(explained: Explained) -> list[str]:
    """A row for who ended whose waits, longest first; empty where the program ended hardly any."""
    least = SMALL * explained.wall_s
    shown = [wait for wait in explained.ended_waits if wait.seconds >= least][:_MOST_WAITS]
    if not shown:
        return []
    cells = [
        (
            clean(wait.called, most=32),
            format_ns(1e9 * wait.seconds),
            f"{wait.count:,}",
            wait.category,
            clean(wait.ended_by, most=32),
        )
        for wait in shown
    ]
    return aligned([("waits of", "time", "times", "for", "ended by"), *cells])


def held_by(lock: Lock, most: int) -> str:
    """Who had a lock while others waited for it, the longest first; empty where it does not tell."""
    holders = lock.holders[:most]
    return ", ".join(f"{clean(each.name, most=24)} ({each.thread}) {percent(each.share)}" for each in holders)


def facts(explained: Explained) -> list[str]:
    """Counts, threads, how much could be seen, and what seeing cost."""
    counters, threads, observer = explained.counters, explained.threads, explained.observer
    lines = [
        f"CPU time {format_ns(1e9 * counters.user_s)} user, {format_ns(1e9 * counters.system_s)} kernel;"
        f" {_threads(threads.most)}, {threads.parallelism:.2f} running at once while any ran"
    ]
    if counters.read_chars is not None and counters.read_calls:
        lines.append(
            f"read {format_bytes(counters.read_chars)} in {_calls(counters.read_calls)}"
            f" ({format_bytes(counters.read_chars / counters.read_calls)} each);"
            f" {_from_disk(counters.device_read_bytes or 0.0, counters.read_chars)}"
        )
    if counters.written_chars is not None and counters.write_calls:
        lines.append(f"wrote {format_bytes(counters.written_chars)} in {_calls(counters.write_calls)}")
    lines.append(
        f"{format_count(counters.minor_faults)} page faults from memory, "
        f"{format_count(counters.major_faults)} from a disk; "
        f"{format_count(counters.voluntary_switches)} waits, "
        f"{format_count(counters.involuntary_switches)} preemptions"
    )
    lines.append(_seen(explained))
    lines.append(
        f"observer: {percent(observer.share)} of the program's CPU time{_allowed(observer)},"
        f" {percent(observer.watcher_share)} of a CPU besides; {observer.scans:,} scans, "
        f"{observer.samples:,} samples"
    )
    if explained.calibration is not None:
        since = day_and_time(explained.calibration.measured_s) if explained.calibration_kept else "now"
        lines.append(f"costs of kernel work and of recording: measured {since}")
    if explained.nameless_share is not None and explained.nameless_share >= _PART_SHOWN:
        lines.append(f"{percent(explained.nameless_share)} of the samples of user code have no function name")
    if explained.program.left_running:
        lines.append(f"{explained.program.left_running} of its processes outlived it")
    return [*lines, *explained.notes]


def _from_disk(device: float, read: float) -> str:
    """The kernel counts what a disk gave for whatever reason, in whole pages."""
    if not device:
        return "nothing came from a disk"
    came = f"{format_bytes(device)} came from a disk"
    return f"{came}, with whole pages, read-ahead and mapped files" if device > read else came


def _allowed(observer: Observer) -> str:
    """What recording might have taken."""
    return f" (at most {percent(observer.allowed_share)})" if observer.allowed_share else ""


def _seen(explained: Explained) -> str:
    line = f"seen at level {explained.level} of 3: {_LEVELS[explained.level]}"
    if explained.level > 1:
        missing = [rung for rung in explained.levels if not rung.available and rung.reason]
        if missing:
            line += f"; level {missing[0].level}: {missing[0].reason}"
        if explained.raise_:
            line += f"; to see more: {explained.raise_}"
    return line


def _calls(calls: float) -> str:
    return "1 call" if calls == 1 else f"{format_count(calls)} calls"


def _threads(most: int) -> str:
    return "1 thread" if most <= 1 else f"at most {most:,} threads"


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    time = format_ns(1e9 * row.seconds)
    return (row.name, percent(row.share), interval(row.low, row.high), time, row.method)


def _parts(row: Row) -> list[tuple[str, str, str, str, str]]:
    # A single part that is the whole row says nothing that the row does not.
    several = len(row.parts) > 1
    cells = [
        (f"  {part.name}", percent(part.share), "", format_ns(1e9 * part.seconds), "")
        for part in row.parts[:_MOST_PARTS]
        if part.share >= _PART_SHOWN and (several or part.share < row.share)
    ]
    # Of the kernel's work counts tell something; of what they do not, any may be in it.
    counted = [within for within in row.counted if within.share >= _PART_SHOWN]
    for within in counted or row.within:
        share, how = (percent(within.share), "by counts") if counted else ("", "not separable")
        cells.append((f"  {within.name}", share, interval(within.low, within.high), "", how))
    for function in row.functions[:_MOST_FUNCTIONS]:
        if function.share >= _PART_SHOWN:
            name = f"{clean(function.name, most=40)} ({clean(function.object, most=24)})"
            known = interval(function.low, function.high)
            cells.append((f"    {name}", percent(function.share), known, "", ""))
    return cells


def counts_as(row: Symbol | SourceLine) -> str:
    """The category of a function or a line; where it is several that can be seen, the share of each."""
    seen = [each for each in row.categories if each.share >= _SHOWN / 2]
    if len(seen) < 2:  # noqa: PLR2004 - one is no list
        return row.category or ""
    return ", ".join(f"{each.name} {percent(each.share)}" for each in seen)
