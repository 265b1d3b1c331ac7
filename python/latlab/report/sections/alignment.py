"""Accesses that cross a cache line or a page."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view.evidence import evidence
from latlab.view.points import is_disturbed, why_absent, with_figures
from latlab.view.table import Cell, Column, Listing, Table

PROBE = "memory.alignment"
_LINE, _PAGE = 64, 4096
_CROSSED = {"line": "across two lines", "page": "across two pages"}
_COLUMNS = (
    Column("access"),
    Column("begins at byte", "count"),
    Column("which"),
    Column("array", "bytes"),
    Column("one access, median", "ns"),
    Column("95 % from", "ns"),
    Column("95 % to", "ns"),
    Column("disturbed"),
)


def section(run: Run, probes: Probes) -> Section:
    """By where an access begins."""
    records = sorted(
        with_figures(run, PROBE, "batch_mean"),
        key=lambda r: (r.point.operation or "", r.point.working_set_bytes or 0, r.point.offset_bytes or 0),
    )
    table = Table(_COLUMNS, tuple(map(_row, records)))
    return Section(
        id="alignment",
        title="What does it cost when a value lies across two cache lines, or two pages?",
        sentences=_sentences(run),
        listings=(Listing("Independent accesses by the byte at which they begin", table),) if records else (),
        evidence=evidence(run, PROBE),
        methods=probes.methods_of(PROBE),
        absence="" if records else why_absent(run, PROBE),
    )


def _crosses(record: Record) -> str:
    offset, size = record.point.offset_bytes or 0, record.point.size_bytes or 8
    if record.finding("crosses") in _CROSSED:
        return _CROSSED[str(record.finding("crosses"))]
    if offset % _PAGE + size > _PAGE:
        return "across two pages"
    if offset % _LINE + size > _LINE:
        return "across two lines"
    return "aligned" if offset % size == 0 else "within a line"


def _row(record: Record) -> tuple[Cell, ...]:
    point = record.point
    low, high = record.ends
    what = f"{point.operation} of {format_bytes(point.size_bytes)}" if point.size_bytes else point.operation
    doubt = "yes" if is_disturbed(record) else "no"
    place = (point.offset_bytes or 0, _crosses(record), point.working_set_bytes)
    return (what, *place, record.value, low, high, doubt)


def _sentences(run: Run) -> tuple[str, ...]:
    found = findings(run, PROBE)
    sentences = []
    for operation in ("load", "store"):
        aligned = positive(found, f"{operation}.aligned_ns")
        line, page = (positive(found, f"{operation}.{name}_crossing_ns") for name in ("line", "page"))
        if aligned is None or line is None:
            continue
        text = f"An aligned {operation} costs {format_ns(aligned)}, one across two lines {format_ns(line)}"
        text += f", one across two pages {format_ns(page)}" if page is not None else ""
        sentences.append(text + ".")
    return tuple(sentences)
