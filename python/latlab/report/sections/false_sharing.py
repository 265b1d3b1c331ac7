"""Two variables on one cache line by accident."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive, stated
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_digits, format_ns
from latlab.view.evidence import evidence
from latlab.view.points import is_disturbed, why_absent, with_figures
from latlab.view.table import Cell, Column, Listing, Table

PROBE = "memory.false_sharing"
_COLUMNS = (
    Column("write"),
    Column("the two variables"),
    Column("threads", "count"),
    Column("one write, median", "ns"),
    Column("95 % from", "ns"),
    Column("95 % to", "ns"),
    Column("disturbed"),
)
_WRITES = {"store": "store", "add": "atomic add"}


def section(run: Run, probes: Probes) -> Section:
    """By distance of the two variables."""
    records = sorted(
        with_figures(run, PROBE, "batch_mean"),
        key=lambda r: (r.point.operation or "", r.point.threads or 1, r.point.offset_bytes or 0),
    )
    table = Table(_COLUMNS, tuple(map(_row, records)))
    return Section(
        id="false_sharing",
        title="What does it cost when two threads write to one cache line by accident?",
        sentences=_sentences(run),
        listings=(Listing("Threads that write, each its own variable", table),) if records else (),
        evidence=evidence(run, PROBE),
        methods=probes.methods_of(PROBE),
        absence="" if records else why_absent(run, PROBE),
    )


def _row(record: Record) -> tuple[Cell, ...]:
    point = record.point
    threads = point.threads or 1
    low, high = record.ends
    apart = f"{format_bytes(point.offset_bytes)} apart" if point.offset_bytes is not None else ""
    where = "one thread alone" if threads == 1 else apart
    doubt = "yes" if is_disturbed(record) else "no"
    called = _WRITES.get(point.operation or "", point.operation)
    return (called, where, threads, record.value, low, high, doubt)


def _sentences(run: Run) -> tuple[str, ...]:
    """The plain store first: it is what programs do without thinking of it."""
    found = []
    for operation, called in (("store", "store to"), ("add", "add atomically to")):
        for entry in findings(run, PROBE).sections("operations"):
            same, own = positive(entry, "same_line_ns"), positive(entry, "own_line_ns")
            times = stated(entry, "slowdown", lambda value: format_digits(value, 2))
            if entry.text("operation") == operation and same is not None and own is not None and times:
                found.append(
                    f"Two threads that {called} variables of their own need {format_ns(same)} a time when"
                    f" these share a line and {format_ns(own)} when they do not: {times} times as long."
                )
    return tuple(found[:2])
