"""The tables of the page."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from latlab.explain.answer import interval, percent
from latlab.explain.model import Explained, PythonCode, PythonPlace, Row, SourceLine, Stage, Symbol
from latlab.explain.named import shortened
from latlab.explain.resources import File, Moved
from latlab.explain.table import called_on, counts_as, held_by, returned
from latlab.text import clean
from latlab.units import format_bytes, format_count, format_ns
from latlab.view.table import Cell, Column, Table

_SHOWN: Final = 0.0005
_MOST_PARTS: Final = 6
_MOST_FILES: Final = 40
_MOST_NAMED: Final = 6
_MOST_PLACES: Final = 12


def ledger(explained: Explained) -> Table:
    """A row a category, what of it below it, their sum."""
    columns = (
        Column("category"),
        Column("share"),
        Column("95 % interval"),
        Column("time", "seconds"),
        Column("how"),
        Column("what of it"),
    )
    rows: list[tuple[Cell, ...]] = []
    for row in explained.categories:
        if row.share < _SHOWN and row.name != "unexplained":
            continue
        rows.append((row.name, *_share(row), row.seconds, row.method, _of(row)))
    whole = sum(row.share for row in explained.categories)
    rows.append(("sum", f"{100 * whole:.1f} %", "", explained.wall_s, "", ""))
    return Table(columns, tuple(rows))


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
    columns = (
        Column("stage"),
        Column("share"),
        Column("time", "seconds"),
        Column("times", "count"),
        Column("bytes", "bytes"),
        Column("rate", "bytes_per_s"),
        Column("spent on"),
    )
    return Table(columns, tuple(_stage(stage) for stage in explained.stages))


def _stage(stage: Stage) -> tuple[Cell, ...]:
    parts = [f"{part.name} {percent(part.share)}" for part in stage.categories if part.share >= 10 * _SHOWN]
    return (
        clean(stage.name, most=60) if stage.name else "(outside stages)",
        percent(stage.share),
        stage.seconds,
        stage.count if stage.name else None,
        stage.bytes,
        stage.rate,
        ", ".join(parts[:_MOST_PARTS]) or None,
    )


def locks(explained: Explained) -> Table:
    """A row a lock, those that threads waited for longest first."""
    columns = (
        Column("lock"),
        Column("waited for", "seconds"),
        Column("threads", "count"),
        Column("samples", "count"),
        Column("held meanwhile by"),
        Column("process"),
    )
    rows: list[tuple[Cell, ...]] = []
    for lock in explained.locks:
        held = held_by(lock, len(lock.holders))
        name = shortened(lock.called)
        rows.append((name, lock.waited_s, lock.threads, lock.scans, held or None, str(lock.process)))
    return Table(columns, tuple(rows))


def pauses(explained: Explained) -> Table:
    """A row for each kind of pause of a Java, Go or Node program, those that took longest first."""
    columns = (
        Column("pauses"),
        Column("process"),
        Column("times", "count"),
        Column("time", "seconds"),
        Column("of wall time"),
        Column("longest seen", "seconds"),
    )
    rows = tuple(
        (
            clean(each.called, most=60) + (" (at least)" if each.is_least else ""),
            str(each.process),
            each.times,
            each.seconds,
            percent(each.seconds / explained.wall_s),
            each.longest_s,
        )
        for each in explained.pauses
    )
    return Table(columns, rows)


def calls(explained: Explained) -> Table:
    """A row for all calls of one kind, those first that took longest."""
    columns = (
        Column("system call"),
        Column("times", "count"),
        Column("time in it", "seconds"),
        Column("mean", "seconds"),
        Column("longest", "seconds"),
        Column("errors"),
    )
    of = explained.calls.of if explained.calls else ()
    rows = tuple(
        (
            call.name,
            call.times,
            call.seconds,
            call.seconds / call.times,
            call.longest_s,
            returned(call, len(call.errors)) or None,
        )
        for call in of
    )
    return Table(columns, rows)


def calls_on(explained: Explained) -> Table:
    """A row for all calls on one file, pipe, socket or device, those first that took longest."""
    columns = (
        Column("file, pipe, socket or device"),
        Column("process"),
        Column("times", "count"),
        Column("time in them", "seconds"),
        Column("longest", "seconds"),
        Column("read", "bytes"),
        Column("written", "bytes"),
        Column("errors"),
    )
    rows = tuple(
        (
            called_on(on),
            f"{clean(on.process_name, most=24)} ({on.process})",
            on.times,
            on.seconds,
            on.longest_s,
            on.read_bytes or None,
            on.written_bytes or None,
            returned(on, len(on.errors)) or None,
        )
        for on in (explained.calls.on if explained.calls else ())
    )
    return Table(columns, rows)


def critical_path(explained: Explained) -> Table:
    """A row for who did what on it."""
    columns = (Column("who"), Column("doing"), Column("share"), Column("time", "seconds"))
    rows = tuple(
        (clean(step.called, most=60), step.doing, percent(step.share), step.seconds)
        for step in explained.steps
    )
    return Table(columns, rows)


def ended_waits(explained: Explained) -> Table:
    """A row for who ended whose waits."""
    columns = (
        Column("who waited"),
        Column("for"),
        Column("ended by"),
        Column("time", "seconds"),
        Column("times", "count"),
    )
    rows = tuple(
        (
            clean(wait.called, most=60),
            wait.category,
            clean(wait.ended_by, most=60),
            wait.seconds,
            wait.count,
        )
        for wait in explained.ended_waits
    )
    return Table(columns, rows)


def processes(explained: Explained) -> Table:
    """A row a process."""
    columns = (
        Column("process"),
        Column("parent"),
        Column("was there", "seconds"),
        Column("ran or was ready"),
        Column("waited for"),
    )
    rows = tuple(
        (
            f"{clean(each.name, most=40)} ({each.pid})",
            str(each.parent) if each.parent else None,
            each.wall_s,
            percent(each.running),
            ", ".join(f"{part.name} {percent(part.share)}" for part in each.waits[:3]) or None,
        )
        for each in explained.processes
    )
    return Table(columns, rows)


def places(explained: Explained) -> list[tuple[str, Table]]:
    """Functions and source lines, of Python code and of compiled code; some may have no rows."""
    measured = (Column("share"), Column("95 % interval"))
    found: list[tuple[str, Table]] = []
    if explained.python is not None:
        found += _python(explained.python, measured)
    columns = (Column("where"), *measured, Column("of CPU time"), Column("category"), Column("in"))
    symbols = tuple(
        (
            clean(row.name, most=80),
            *_share(row),
            percent(row.cpu_share),
            counts_as(row),
            clean(row.object, most=60),
        )
        for row in explained.symbols[:_MOST_PLACES]
    )
    lines = tuple(
        (
            _where(row.file, row.line, row.function),
            *_share(row),
            percent(row.cpu_share),
            counts_as(row),
            clean(row.object, most=60),
        )
        for row in explained.lines[:_MOST_PLACES]
        if row.line
    )
    found.append(("Functions: share of wall time", Table(columns, symbols)))
    found.append(("Source lines: share of wall time", Table(columns, lines)))
    return found


def _python(python: PythonCode, measured: tuple[Column, Column]) -> list[tuple[str, Table]]:
    columns = (Column("where"), *measured, Column("with what it calls"), Column("running or ready"))
    found = []
    for title, rows in (("Python functions", python.functions), ("Lines of Python", python.lines)):
        cells = tuple(
            (
                _where(row.file, row.line, row.name),
                *_share(row),
                percent(row.within),
                percent(row.busy_share),
            )
            for row in rows[:_MOST_PLACES]
        )
        found.append((f"{title}: share of wall time", Table(columns, cells)))
    return found


def _share(row: Row | Symbol | SourceLine | PythonPlace) -> tuple[str, str]:
    return percent(row.share), interval(row.low, row.high, " – ")


def _where(file: str | None, line: int | None, name: str) -> str:
    if not file:
        return clean(name, most=80)
    return f"{clean(name, most=60)} ({shortened(PurePath(file).name)}{f':{line}' if line else ''})"


def files(explained: Explained) -> Table:
    """A row a file, those with the most bytes first."""
    several = len(explained.processes) > 1
    columns = [
        Column("file"),
        *([Column("process")] if several else []),
        Column("read", "bytes"),
        Column("bytes a call", "bytes"),
        Column("while it moved", "bytes_per_s"),
        Column("written", "bytes"),
        Column("bytes a call", "bytes"),
        Column("while it moved", "bytes_per_s"),
        Column("descriptor"),
        Column("note"),
    ]
    rows = []
    known = [row for row in explained.files.rows if row.read is not None or row.written is not None]
    for row in known[:_MOST_FILES]:
        process = [f"{clean(row.process_name, most=24)} ({row.process})"] if several else []
        numbers = ", ".join(map(str, row.descriptors))
        rows.append(
            (shortened(row.name), *process, *_moved(row.read), *_moved(row.written), numbers, _note(row))
        )
    return Table(tuple(columns), tuple(rows))


def _moved(moved: Moved | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if moved is None else (moved.bytes, moved.block_bytes, moved.rate)


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
