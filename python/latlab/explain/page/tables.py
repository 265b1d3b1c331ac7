"""The tables of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any, Final, TypeAlias, TypeVar

from latlab.explain.answer import interval, percent
from latlab.explain.model import Explained, Process, PythonPlace, Row, SourceLine, Stage, Symbol
from latlab.explain.named import shortened
from latlab.explain.resources import File
from latlab.explain.table import called_on, counts_as, held_by, returned
from latlab.text import clean
from latlab.units import format_bytes, format_count, format_ns
from latlab.view.table import Cell, Quantity, Table, table_of

_SHOWN: Final = 0.0005
_MOST_PARTS: Final = 6
_MOST_FILES: Final = 40
_MOST_NAMED: Final = 6
_MOST_PLACES: Final = 12
_Column: TypeAlias = tuple[str, Quantity, Callable[[Any], Cell]]
_Code = TypeVar("_Code", Symbol, SourceLine)
_SHARE: Final[tuple[_Column, _Column]] = (
    ("share", "text", lambda row: percent(row.share)),
    ("95 % interval", "text", lambda row: interval(row.low, row.high, " – ")),
)


def ledger(explained: Explained) -> Table:
    """A row a category, what of it below it, their sum."""
    table = table_of(
        [row for row in explained.categories if row.share >= _SHOWN or row.name == "unexplained"],
        ("category", "text", lambda row: row.name),
        *_SHARE,
        ("time", "seconds", lambda row: row.seconds),
        ("how", "text", lambda row: row.method),
        ("what of it", "text", _of),
    )
    whole = sum(row.share for row in explained.categories)
    return Table(table.columns, (*table.rows, ("sum", f"{100 * whole:.1f} %", "", explained.wall_s, "", "")))


def _of(row: Row) -> str:
    if row.within:
        counted = [each for each in row.counted if each.share >= _SHOWN]
        return ", ".join(
            f"{each.name} {percent(each.share)} by counts ({interval(each.low, each.high, ' – ')})"
            if counted
            else f"{each.name} {interval(each.low, each.high, ' – ')} (not separable)"
            for each in counted or row.within
        )
    named = [(each.name, each.share) for each in row.functions] or [
        (each.name, each.share) for each in row.parts if len(row.parts) > 1
    ]
    largest = [f"{clean(name, most=60)} {percent(share)}" for name, share in named if share >= _SHOWN]
    return ", ".join(largest[:_MOST_PARTS])


def stages(explained: Explained) -> Table:
    """A row a stage."""
    return table_of(
        explained.stages,
        ("stage", "text", lambda stage: clean(stage.name, most=60) if stage.name else "(outside stages)"),
        ("share", "text", lambda stage: percent(stage.share)),
        ("time", "seconds", lambda stage: stage.seconds),
        ("times", "count", lambda stage: stage.count if stage.name else None),
        ("bytes", "bytes", lambda stage: stage.bytes),
        ("rate", "bytes_per_s", lambda stage: stage.rate),
        ("spent on", "text", _spent_on),
    )


def _spent_on(stage: Stage) -> str | None:
    parts = [f"{part.name} {percent(part.share)}" for part in stage.categories if part.share >= 10 * _SHOWN]
    return ", ".join(parts[:_MOST_PARTS]) or None


def locks(explained: Explained) -> Table:
    """A row a lock, those that threads waited for longest first."""
    return table_of(
        explained.locks,
        ("lock", "text", lambda lock: shortened(lock.called)),
        ("waited for", "seconds", lambda lock: lock.waited_s),
        ("threads", "count", lambda lock: lock.threads),
        ("samples", "count", lambda lock: lock.scans),
        ("held meanwhile by", "text", lambda lock: held_by(lock, len(lock.holders)) or None),
        ("process", "text", lambda lock: str(lock.process)),
    )


def pauses(explained: Explained) -> Table:
    """A row for each kind of pause of a Java, Go or Node program, those that took longest first."""
    return table_of(
        explained.pauses,
        ("pauses", "text", lambda at: clean(at.called, most=60) + (" (at least)" if at.is_least else "")),
        ("process", "text", lambda at: str(at.process)),
        ("times", "count", lambda at: at.times),
        ("time", "seconds", lambda at: at.seconds),
        ("of wall time", "text", lambda at: percent(at.seconds / explained.wall_s)),
        ("longest seen", "seconds", lambda at: at.longest_s),
    )


def calls(explained: Explained) -> Table:
    """A row for all calls of one kind, those first that took longest."""
    return table_of(
        explained.calls.of if explained.calls else (),
        ("system call", "text", lambda call: call.name),
        ("times", "count", lambda call: call.times),
        ("time in it", "seconds", lambda call: call.seconds),
        ("mean", "seconds", lambda call: call.seconds / call.times),
        ("longest", "seconds", lambda call: call.longest_s),
        ("errors", "text", lambda call: returned(call, len(call.errors)) or None),
    )


def calls_on(explained: Explained) -> Table:
    """A row for all calls on one file, pipe, socket or device, those first that took longest."""
    return table_of(
        explained.calls.on if explained.calls else (),
        ("file, pipe, socket or device", "text", called_on),
        ("process", "text", lambda on: f"{clean(on.process_name, most=24)} ({on.process})"),
        ("times", "count", lambda on: on.times),
        ("time in them", "seconds", lambda on: on.seconds),
        ("longest", "seconds", lambda on: on.longest_s),
        ("read", "bytes", lambda on: on.read_bytes or None),
        ("written", "bytes", lambda on: on.written_bytes or None),
        ("errors", "text", lambda on: returned(on, len(on.errors)) or None),
    )


def critical_path(explained: Explained) -> Table:
    """A row for who did what on it."""
    return table_of(
        explained.steps,
        ("who", "text", lambda step: clean(step.called, most=60)),
        ("doing", "text", lambda step: step.doing),
        ("share", "text", lambda step: percent(step.share)),
        ("time", "seconds", lambda step: step.seconds),
    )


def ended_waits(explained: Explained) -> Table:
    """A row for who ended whose waits."""
    return table_of(
        explained.ended_waits,
        ("who waited", "text", lambda wait: clean(wait.called, most=60)),
        ("for", "text", lambda wait: wait.category),
        ("ended by", "text", lambda wait: clean(wait.ended_by, most=60)),
        ("time", "seconds", lambda wait: wait.seconds),
        ("times", "count", lambda wait: wait.count),
    )


def processes(explained: Explained) -> Table:
    """A row a process."""

    def waits(process: Process) -> str | None:
        return ", ".join(f"{part.name} {percent(part.share)}" for part in process.waits[:3]) or None

    return table_of(
        explained.processes,
        ("process", "text", lambda each: f"{clean(each.name, most=40)} ({each.pid})"),
        ("parent", "text", lambda each: str(each.parent) if each.parent else None),
        ("was there", "seconds", lambda each: each.wall_s),
        ("ran or was ready", "text", lambda each: percent(each.running)),
        ("waited for", "text", waits),
    )


def places(explained: Explained) -> list[tuple[str, Table]]:
    """Functions and source lines, of Python code and of compiled code; some may have no rows."""
    found: list[tuple[str, Table]] = []
    python = explained.python
    if python is not None:
        found += [("Python functions", _python(python.functions)), ("Lines of Python", _python(python.lines))]
    lines = [row for row in explained.lines[:_MOST_PLACES] if row.line]
    found += [
        ("Functions", _compiled(explained.symbols[:_MOST_PLACES], lambda row: clean(row.name, most=80))),
        ("Source lines", _compiled(lines, lambda row: _where(row.file, row.line, row.function))),
    ]
    return [(f"{title}: share of wall time", table) for title, table in found]


def _compiled(rows: Iterable[_Code], where: Callable[[_Code], str]) -> Table:
    return table_of(
        rows,
        ("where", "text", where),
        *_SHARE,
        ("of CPU time", "text", lambda row: percent(row.cpu_share)),
        ("category", "text", counts_as),
        ("in", "text", lambda row: clean(row.object, most=60)),
    )


def _python(rows: tuple[PythonPlace, ...]) -> Table:
    return table_of(
        rows[:_MOST_PLACES],
        ("where", "text", lambda row: _where(row.file, row.line, row.name)),
        *_SHARE,
        ("with what it calls", "text", lambda row: percent(row.within)),
        ("running or ready", "text", lambda row: percent(row.busy_share)),
    )


def _where(file: str | None, line: int | None, name: str) -> str:
    if not file:
        return clean(name, most=80)
    return f"{clean(name, most=60)} ({shortened(PurePath(file).name)}{f':{line}' if line else ''})"


def files(explained: Explained) -> Table:
    """A row a file, those with the most bytes first."""
    known = [row for row in explained.files.rows if row.read is not None or row.written is not None]
    process: _Column = ("process", "text", lambda row: f"{clean(row.process_name, most=24)} ({row.process})")
    return table_of(
        known[:_MOST_FILES],
        ("file", "text", lambda row: shortened(row.name)),
        *((process,) if len(explained.processes) > 1 else ()),
        ("read", "bytes", lambda row: row.read.bytes if row.read else None),
        ("bytes a call", "bytes", lambda row: row.read.block_bytes if row.read else None),
        ("while it moved", "bytes_per_s", lambda row: row.read.rate if row.read else None),
        ("written", "bytes", lambda row: row.written.bytes if row.written else None),
        ("bytes a call", "bytes", lambda row: row.written.block_bytes if row.written else None),
        ("while it moved", "bytes_per_s", lambda row: row.written.rate if row.written else None),
        ("descriptor", "text", lambda row: ", ".join(map(str, row.descriptors))),
        ("note", "text", _note),
    )


def _note(row: File) -> str | None:
    notes = []
    if any(moved is not None and moved.inferred > 0.5 * moved.bytes for moved in (row.read, row.written)):
        notes.append("inferred")
    if row.seeks:
        notes.append(f"{format_count(row.seeks)} seeks seen")
    if row.round_trip_s:
        notes.append(f"round trip {format_ns(1e9 * row.round_trip_s)}")
    if row.sent_again:
        notes.append(f"{format_count(row.sent_again)} segments retransmitted")
    if row.opened > 1:
        notes.append(f"found open {format_count(row.opened)} times")
    return "; ".join(notes) or None


def files_sentence(explained: Explained) -> str:
    """How much of what was read and written the table explains."""
    files = explained.files
    parts, lacking = [], []
    for share, of, verb in (
        (files.read_share, files.counted_read_bytes, "read"),
        (files.written_share, files.counted_written_bytes, "written"),
    ):
        if share is not None and of:
            parts.append(f"{percent(share)} of the {format_bytes(of)} {verb}")
            lacking += [f"{percent(1 - share)} of what was {verb}"] if 1 - share >= _SHOWN else []
    if not parts:
        return "The kernel's counts of bytes could not be read, or there were none."
    rest = (
        f" {' and '.join(lacking)} has no file here: the file was closed between two scans, or its "
        "position did not move."
        if lacking
        else ""
    )
    return f"The table explains {' and '.join(parts)}.{rest}"


def files_statements(explained: Explained) -> tuple[str, ...]:
    """How the table came about, and what it cannot show."""
    files, counters = explained.files, explained.counters
    apart = f", every {format_ns(1e9 * files.every_s)} on average" if files.every_s else ""
    lines = [
        f"Source: {files.scans:,} scans of descriptor positions in /proc{apart}. Files that were "
        "open for less than the time between two scans may be missing, as may the last bytes before a "
        "file was closed.",
        "Bytes a call come from times in which the process used nothing else. Inferred: no position "
        "moved, and threads were seen waiting on no other descriptor. Bytes, round trips and "
        "retransmits of TCP connections are the kernel's figures.",
    ]
    if files.by_position:
        lines.append(
            "This kernel does not report which descriptors share a position (kcmp is refused): "
            "descriptors of one file at the same position count as one, even where two are there by "
            "chance."
        )
    unknown = [row for row in files.rows if row.read is None and row.written is None]
    if unknown:
        names = dict.fromkeys(shortened(row.name) for row in unknown)
        listed = ", ".join(list(names)[:_MOST_NAMED])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        lines.append(f"Open, with unknown bytes: {listed}{more}.")
    if counters.device_read_bytes:
        lines.append(
            f"{format_bytes(counters.device_read_bytes)} came from a disk; reads through a mapping "
            "(mmap) make no call and are in no row."
        )
    if files.left_out:
        lines.append(f"{files.left_out:,} more are not listed.")
    if files.refused:
        lines.append(
            "The descriptors or counters of some process could not be read: another user's, or protected."
        )
    return tuple(lines)
