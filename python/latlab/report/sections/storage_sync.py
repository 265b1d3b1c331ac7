"""What it costs to be sure that something is on the disk."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.run.findings import findings, found
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.disk import commands, device_times, disk_evidence, notices, sound, tail_words, timed
from latlab.units import format_digits, format_ns
from latlab.view.points import why_absent
from latlab.view.prose import Notice, sentence
from latlab.view.table import Cell, Column, Listing, Table

PROBE = "storage.sync"
_OPERATIONS = {
    "overwrite": "4 KiB over old ones",
    "append": "4 KiB at the end",
    "create": "a new file of 4 KiB",
}
_SYNCS = {
    "fsync": "write, fsync",
    "fdatasync": "write, fdatasync",
    "o_dsync": "write with O_DSYNC",
    "direct-fdatasync": "direct write, fdatasync",
    "f_fullfsync": "write, F_FULLFSYNC",
}
_COLUMNS = (
    Column("what is written"),
    Column("how it is made durable"),
    Column("median", "ns"),
    Column("of it the flush", "ns"),
    Column("95 % from", "ns"),
    Column("95 % to", "ns"),
    Column("mean", "ns"),
    Column("p99", "ns"),
    Column("p99.9", "ns"),
    Column("slowest", "ns"),
    Column("writes", "count"),
)


#: A growing file's writes take so many times as long before it is worth a word.
_LONGER = 1.25


def section(run: Run, probes: Probes) -> Section:
    """The table, and whether a flush can have been one."""
    records = _records(run)
    table = Table(_COLUMNS, tuple(_row(record) for record in records))
    doubts = notices(run, PROBE)
    return Section(
        id="storage_sync",
        title="What does it cost to be sure that a write is on the disk?",
        sentences=_sentences(run, sound(run, records)),
        listings=(Listing("Durable writes", table), *device_times(run, PROBE)) if records else (),
        notices=(*doubts, *_verdict(run)),
        evidence=(
            *tail_words(_usual(records)),
            *disk_evidence(run, PROBE),
            *commands(record for record in records if record.point.sync in {"fdatasync", None}),
        ),
        methods=probes.methods_of(PROBE),
        absence="" if records else why_absent(run, PROBE),
    )


def _records(run: Run) -> list[Record]:
    def place(record: Record) -> tuple[int, int]:
        point = record.point
        known, ways = list(_OPERATIONS), list(_SYNCS)
        return (
            known.index(point.operation) if point.operation in known else len(known),
            ways.index(point.sync) if point.sync in ways else len(ways),
        )

    return sorted(timed(run, PROBE), key=place)


def _row(record: Record) -> tuple[Cell, ...]:
    point, s = record.point, record.summary
    low, high = record.ends
    figures = (s.mean, s.p99, s.p999, s.max) if s else (None,) * 4
    return (
        _OPERATIONS.get(point.operation or "", point.operation),
        _SYNCS.get(point.sync or "", point.sync),
        record.value,
        found(record).number("sync_p50_ns"),
        low,
        high,
        *figures,
        record.samples,
    )


def _usual(records: list[Record]) -> Record | None:
    """An overwrite made durable as databases do it."""
    by = {(record.point.operation, record.point.sync): record for record in records}
    return by.get(("overwrite", "fdatasync")) or by.get(("overwrite", "fsync"))


def _sentences(run: Run, records: list[Record]) -> tuple[str, ...]:
    by = {(record.point.operation, record.point.sync): record.value for record in records}
    over = by.get(("overwrite", "fdatasync")) or by.get(("overwrite", "fsync"))
    if not over:
        return ()
    text = f"4 KiB over old ones are durable after {format_ns(over)}"
    end = by.get(("append", "fdatasync")) or by.get(("append", "fsync"))
    new = by.get(("create", "fdatasync")) or by.get(("create", "fsync"))
    if end:
        text += f", at the end of a file after {format_ns(end)}"
    if new:
        text += f", in a new file after {format_ns(new)}"
    times = findings(run, PROBE).number("append_over_overwrite")
    if not end or not times or times < _LONGER:
        return (f"{text}.",)
    return (
        f"{text}.",
        f"A file that grows takes {format_digits(times, 2)} times as long as one that has its size: a log"
        " that is laid out before it is written saves that.",
    )


def _verdict(run: Run) -> tuple[Notice, ...]:
    """Whether the flush is one: nobody can know it without pulling the plug."""
    own = findings(run, PROBE)
    verdict = own.text("verdict")
    if not verdict:
        return ()
    why = " ".join(sentence(text[:1].upper() + text[1:]) for text in own.texts("evidence"))
    plausible = verdict.startswith("durable")
    return (Notice("note" if plausible else "caution", f"The flush: {verdict}", why),)
