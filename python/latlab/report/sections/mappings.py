"""Mappings, and memory set to zero."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.run.findings import findings, stated
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns, format_rate
from latlab.view.evidence import evidence
from latlab.view.points import why_absent, with_figures
from latlab.view.table import Cell, Column, Listing, Table

MAP, ZERO = "vm.map", "vm.zero"
_PAGE = 4096
_CALLS = {
    "map": "map (mmap)",
    "unmap": "unmap (munmap), pages in use",
    "map-populate": "map with all pages (MAP_POPULATE)",
    "protect": "protect (mprotect)",
    "dontneed": "give back (MADV_DONTNEED)",
}
_MAPS = (
    Column("call"),
    Column("fixed part"),
    Column("and a page of 4 KiB"),
    Column("smallest measured"),
    Column("largest measured"),
)
_RATES = (
    Column("set to zero"),
    Column("size", "bytes"),
    Column("bytes a second", "bytes_per_s"),
    Column("4 KiB take", "ns"),
)
_ZEROED = {
    "memset": "memory in use, by memset",
    "memset-fresh": "new memory, by memset: with its page faults",
    "kernel": "new memory, by the kernel",
}


def section(run: Run, probes: Probes) -> Section:
    """Calls, then zeroing."""
    calls, rates = _maps(run), _rates(run)
    listings = []
    if calls:
        listings.append(Listing("Calls that change a mapping", Table(_MAPS, tuple(calls))))
    if rates:
        listings.append(Listing("Setting memory to zero", Table(_RATES, tuple(rates))))
    return Section(
        id="mappings",
        title="What does it cost to map memory, to clear it and to give it back?",
        sentences=_sentences(run),
        listings=tuple(listings),
        evidence=(*evidence(run, MAP), *evidence(run, ZERO)),
        methods=probes.methods_of(MAP, ZERO),
        absence="" if listings else why_absent(run, MAP),
    )


def _sentences(run: Run) -> tuple[str, ...]:
    sentences: list[str] = []
    for entry in findings(run, MAP).sections("operations"):
        page = stated(entry, "per_page_ns")
        if entry.text("operation") == "unmap" and page and not sentences:
            sentences.append(f"Giving back memory that was used costs {page} a page of 4 KiB.")
    rates: dict[str, float] = {}
    for record in _zeroings(run):
        # Ascending in size: the largest stays, which no cache holds.
        if record.point.pages != "huge":
            rates[record.point.operation or ""] = record.value or 0.0
    used, fresh = rates.get("memset"), rates.get("memset-fresh")
    if used is not None and fresh is not None:
        sentences.append(
            f"memset clears {format_rate(used)} of memory in use and {format_rate(fresh)} of new memory."
        )
    return tuple(sentences)


def _maps(run: Run) -> list[tuple[Cell, ...]]:
    concluded = {entry.text("operation"): entry for entry in findings(run, MAP).sections("operations")}
    records = [
        r for kind in ("batch_mean", "per_op") for r in with_figures(run, MAP, kind) if r.point.size_bytes
    ]
    order = list(dict.fromkeys(r.point.operation or "" for r in records))
    rows: list[tuple[Cell, ...]] = []
    for operation in sorted(order, key=lambda name: list(_CALLS).index(name) if name in _CALLS else 99):
        own = sorted(
            (r for r in records if r.point.operation == operation), key=lambda r: r.point.size_bytes or 0
        )
        ends = [f"{format_bytes(r.point.size_bytes)}: {format_ns(r.value)}" for r in (own[0], own[-1])]
        entry = concluded.get(operation)
        parts = [stated(entry, name) if entry else None for name in ("fixed_ns", "per_page_ns")]
        rows.append((_CALLS.get(operation, operation), *parts, *ends))
    return rows


def _zeroings(run: Run) -> list[Record]:
    """Like beside like, ascending in size."""
    order = list(_ZEROED)
    records = [
        record
        for kind in ("batch_mean", "per_op")
        for record in with_figures(run, ZERO, kind)
        if record.unit == "bytes_per_s"
    ]
    return sorted(
        records,
        key=lambda r: (
            order.index(r.point.operation) if r.point.operation in _ZEROED else len(order),
            r.point.pages == "huge",
            r.point.size_bytes or r.point.working_set_bytes or 0,
        ),
    )


def _rates(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for record in _zeroings(run):
        operation, value = record.point.operation or "", record.value or 0.0
        size = record.point.size_bytes or record.point.working_set_bytes
        pages = ", huge pages asked for" if record.point.pages == "huge" else ""
        rows.append((_ZEROED.get(operation, operation) + pages, size, value, _PAGE / value * 1e9))
    return rows
