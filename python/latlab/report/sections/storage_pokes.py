"""Pokes at a file."""

from __future__ import annotations

from latlab.charts import storage_pokes as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.disk import (
    commands,
    device_times,
    disk_evidence,
    file_name,
    notices,
    path_name,
    sound,
    tail_words,
)
from latlab.units import format_digits, format_ns
from latlab.view.table import Column, Listing, Table

_CAPTION = (
    "A poke goes to a random place, reads one byte and writes one byte there. Warm: the page cache holds the"
    " file; cold: it holds nothing of it; direct: past the page cache, the aligned block that holds the byte."
    " The empty file does no I/O: it is the experiment's zero."
)
_COLUMNS = (
    Column("file"),
    Column("path"),
    Column("pokes", "count"),
    Column("mean", "ns"),
    Column("std. deviation", "ns"),
    Column("median", "ns"),
    Column("p99", "ns"),
    Column("p99.9", "ns"),
    Column("slowest", "ns"),
)


def section(run: Run, probes: Probes) -> Section:
    """Distributions by path and size."""
    records = [record for own in chart.pokes(run).values() for record in own]
    rows = []
    for record in records:
        s = record.summary
        figures = (s.mean, s.std, s.p50, s.p99, s.p999, s.max) if s else (None,) * 6
        rows.append(
            (file_name(record.point.file_bytes), path_name(record.point.path), record.samples, *figures)
        )
    doubts = notices(run, chart.PROBE)
    return Section(
        id="storage_pokes",
        title=chart.TITLE,
        sentences=_sentences(sound(run, records)),
        listings=(
            *((Listing("Pokes at files", Table(_COLUMNS, tuple(rows))),) if rows else ()),
            *_times(run),
            *device_times(run, chart.PROBE),
        ),
        figures=figure(run, chart.ID, _CAPTION),
        notices=doubts,
        evidence=(
            *(words for record in _largest(records) for words in _tail(record)),
            *disk_evidence(run, chart.PROBE),
            *commands(_largest(records)),
            *(
                ("fio reads and writes at different places: the poke is the sum of its two medians.",)
                if records
                else ()
            ),
        ),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _tail(record: Record) -> tuple[str, ...]:
    """Who had a part in the slowest pokes that asked the disk."""
    asked = record.point.path in {"buffered-cold", "direct"}
    return tuple(f"{record.point.label()}: {words}" for words in tail_words(record)) if asked else ()


def _times(run: Run) -> tuple[Listing, ...]:
    """What the disk costs against the page cache, by size."""
    rows = tuple(
        (file_name(int(size)), entry.number("cold_over_warm"), entry.number("direct_over_warm"))
        for entry in findings(run, chart.PROBE).sections("sizes")
        if (size := entry.number("file_bytes")) is not None
    )
    columns = (Column("file"), Column("cold", "number"), Column("direct", "number"))
    return (Listing("Times as long as a warm poke (medians)", Table(columns, rows)),) if rows else ()


def _largest(records: list[Record]) -> list[Record]:
    most = max((record.point.file_bytes or 0 for record in records), default=0)
    return [record for record in records if record.point.file_bytes == most]


def _sentences(records: list[Record]) -> tuple[str, ...]:
    """Of the largest file that was poked at both in the page cache and beyond it."""
    both = {
        size: (warm, beyond)
        for size in {record.point.file_bytes or 0 for record in records}
        for by_path in [{r.point.path: r for r in records if r.point.file_bytes == size}]
        if (warm := by_path.get("buffered-warm"))
        and (beyond := by_path.get("buffered-cold") or by_path.get("direct"))
    }
    if not both:
        return ()
    warm, cold = both[max(both)]
    if not warm.value or not cold.value:
        return ()
    name = file_name(warm.point.file_bytes)
    times = cold.value / warm.value
    return (
        f"A poke at a file of {name} takes {format_ns(warm.value)} when the page cache holds it and"
        f" {format_ns(cold.value)} when the disk has to be asked: {format_digits(times, 3)} times as long.",
    )
