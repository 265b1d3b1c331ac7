"""Mappings, and memory set to zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.findings import findings, stated
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns, format_rate
from latlab.view.points import place_in, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Topic

MAP, ZERO = "vm.map", "vm.zero"
_PAGE: Final = 4096
_CALLS: Final = {
    "map": "map (mmap)",
    "unmap": "unmap (munmap), pages in use",
    "map-populate": "map with all pages (MAP_POPULATE)",
    "protect": "protect (mprotect)",
    "dontneed": "give back (MADV_DONTNEED)",
}
_ZEROED: Final = {
    "memset": "memory in use, by memset",
    "memset-fresh": "new memory, by memset: with its page faults",
    "kernel": "new memory, by the kernel",
}


def _measured(run: Run, probe: str) -> list[Record]:
    return [record for kind in ("batch_mean", "per_op") for record in with_figures(run, probe, kind)]


def calls(run: Run) -> dict[str, list[Record]]:
    """Records of each call, ascending in size."""
    own: dict[str, list[Record]] = {}
    for record in sorted(_measured(run, MAP), key=lambda r: place_in(_CALLS, r.point.operation)):
        if record.point.size_bytes:
            own.setdefault(record.point.operation or "", []).append(record)
    return {call: sorted(of, key=lambda r: r.point.size_bytes or 0) for call, of in own.items()}


def zeroings(run: Run) -> list[Record]:
    """Like beside like, ascending in size."""
    return sorted(
        (record for record in _measured(run, ZERO) if record.unit == "bytes_per_s"),
        key=lambda r: (place_in(_ZEROED, r.point.operation), r.point.pages == "huge", _size(r) or 0),
    )


def _size(record: Record) -> int | None:
    return record.point.size_bytes or record.point.working_set_bytes


def prose(run: Run) -> Iterator[str]:
    """What giving a page back costs, and how fast memory is cleared."""
    for entry in findings(run, MAP).sections("operations"):
        page = stated(entry, "per_page_ns")
        if entry.text("operation") == "unmap" and page:
            yield f"Giving back used memory costs {page} per 4 KiB page."
            break
    # Ascending in size: the largest stays, which no cache holds.
    rates = {r.point.operation: r.value or 0.0 for r in zeroings(run) if r.point.pages != "huge"}
    used, fresh = rates.get("memset"), rates.get("memset-fresh")
    if used is not None and fresh is not None:
        yield f"memset clears {format_rate(used)} of memory in use and {format_rate(fresh)} of new memory."


def _listings(run: Run) -> Iterator[Listing]:
    concluded = {entry.text("operation"): entry for entry in findings(run, MAP).sections("operations")}

    def part(call: str, name: str) -> str | None:
        return stated(concluded[call], name) if call in concluded else None

    def cost(record: Record) -> str:
        return f"{format_bytes(record.point.size_bytes)}: {format_ns(record.value)}"

    def zeroed(record: Record) -> str:
        pages = ", huge pages asked for" if record.point.pages == "huge" else ""
        return _ZEROED.get(record.point.operation or "", record.point.operation or "") + pages

    yield from listed(
        "Calls that change a mapping",
        list(calls(run).items()),
        ("call", "text", lambda at: _CALLS.get(at[0], at[0])),
        ("fixed part", "text", lambda at: part(at[0], "fixed_ns")),
        ("and a page of 4 KiB", "text", lambda at: part(at[0], "per_page_ns")),
        ("smallest measured", "text", lambda at: cost(at[1][0])),
        ("largest measured", "text", lambda at: cost(at[1][-1])),
    )
    yield from listed(
        "Setting memory to zero",
        zeroings(run),
        ("set to zero", "text", zeroed),
        ("size", "bytes", _size),
        ("bytes a second", "bytes_per_s", lambda record: record.value or 0.0),
        ("4 KiB take", "ns", lambda record: _PAGE / (record.value or 0.0) * 1e9),
    )


TOPIC: Final = Topic(
    id="mappings",
    title="What do mapping, clearing and giving back memory cost?",
    probes=(MAP, ZERO),
    shown=lambda run: calls(run) or zeroings(run),
    prose=prose,
    listings=_listings,
)
