"""Accesses that cross a cache line or a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.findings import findings, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view.plot import yes_or_no
from latlab.view.points import is_disturbed, median_and_ends, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Topic

PROBE: Final = "memory.alignment"
_LINE, _PAGE = 64, 4096
_CROSSED: Final = {"line": "across two lines", "page": "across two pages"}


def records(run: Run) -> list[Record]:
    """By where an access begins."""
    return sorted(
        with_figures(run, PROBE, "batch_mean"),
        key=lambda r: (r.point.operation or "", r.point.working_set_bytes or 0, r.point.offset_bytes or 0),
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


def _access(record: Record) -> str | None:
    point = record.point
    return f"{point.operation} of {format_bytes(point.size_bytes)}" if point.size_bytes else point.operation


def prose(run: Run) -> Iterator[str]:
    """Of loads and of stores."""
    found = findings(run, PROBE)
    for operation in ("load", "store"):
        aligned = positive(found, f"{operation}.aligned_ns")
        line, page = (positive(found, f"{operation}.{name}_crossing_ns") for name in ("line", "page"))
        if aligned is not None and line is not None:
            two_pages = f", one across two pages {format_ns(page)}" if page is not None else ""
            yield (
                f"An aligned {operation} costs {format_ns(aligned)}, one across two lines"
                f" {format_ns(line)}{two_pages}."
            )


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "Independent accesses by the byte at which they begin",
        records(run),
        ("access", "text", _access),
        ("begins at byte", "count", lambda record: record.point.offset_bytes or 0),
        ("which", "text", _crosses),
        ("array", "bytes", lambda record: record.point.working_set_bytes),
        *median_and_ends("ns", "one access, median"),
        ("disturbed", "text", lambda record: yes_or_no(is_disturbed(record))),
    )


TOPIC: Final = Topic(
    id="alignment",
    title="What does an access across two cache lines, or two pages, cost?",
    probes=(PROBE,),
    shown=records,
    prose=prose,
    listings=_listings,
)
