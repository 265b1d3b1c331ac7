"""The same file read again and again, or kept."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.disk import commands, disk_evidence, file_name, notices, sound, timed
from latlab.units import format_digits, format_ns
from latlab.view.points import why_absent
from latlab.view.table import Cell, Column, Listing, Table

PROBE = "storage.reread"
_COLUMNS = (
    Column("file"),
    Column("read again, warm", "ns"),
    Column("p99", "ns"),
    Column("kept in memory", "ns"),
    Column("p99", "ns"),
    Column("times", "number"),
)


def section(run: Run, probes: Probes) -> Section:
    """By size."""
    records = timed(run, PROBE)
    rows = _rows(records)
    return Section(
        id="storage_reread",
        title="Is it worth keeping a file's contents in memory?",
        sentences=_sentences(_rows(sound(run, records))),
        listings=(Listing("Once through all bytes", Table(_COLUMNS, tuple(rows))),) if rows else (),
        notices=notices(run, PROBE),
        evidence=(*disk_evidence(run, PROBE), *commands(records[:1])),
        methods=probes.methods_of(PROBE),
        absence="" if rows else why_absent(run, PROBE),
    )


def _rows(records: list[Record]) -> list[tuple[Cell, ...]]:
    sizes: dict[int, dict[str, Record]] = {}
    for record in records:
        sizes.setdefault(record.point.file_bytes or 0, {})[record.point.operation or ""] = record
    rows: list[tuple[Cell, ...]] = []
    for size, own in sorted(sizes.items()):
        again, kept = own.get("reread"), own.get("kept")
        times = again.value / kept.value if again and kept and again.value and kept.value else None
        rows.append((file_name(size), *_figures(again), *_figures(kept), times))
    return rows


def _figures(record: Record | None) -> tuple[float | None, float | None]:
    if record is None:
        return (None, None)
    return (record.value, record.summary.p99 if record.summary else None)


def _sentences(rows: list[tuple[Cell, ...]]) -> tuple[str, ...]:
    for file, again, _, kept, _, times in reversed(rows):
        if isinstance(again, float) and isinstance(kept, float) and isinstance(times, float):
            return (
                f"Going through {file} takes {format_ns(again)} when it is read again from the page cache and"
                f" {format_ns(kept)} when it was kept: {format_digits(times, 3)} times as long.",
            )
    return ()
