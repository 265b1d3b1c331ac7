"""Pokes at a file: how often reading and writing one byte takes how long, by file size and path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from latlab.run.findings import findings
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.units import format_digits, format_ns
from latlab.view.plot import Stair, Stairs
from latlab.view.points import quantiles
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, StairsOfSeveral, Topic

PROBE: Final = "storage.poke"
_MOST_SIZES: Final = 6
#: From the nearest to the farthest.
_NEAREST: Final = ("buffered-warm", "buffered-cold", "direct")


def pokes(run: Run) -> list[Record]:
    """Records with their distribution, by path, smallest file first."""
    records = [
        r for r in disk.timed(run, PROBE) if r.histogram is not None and r.point.file_bytes is not None
    ]
    drawn = sorted({_bytes(record) for record in records})[:_MOST_SIZES]
    return sorted((r for r in records if _bytes(r) in drawn), key=lambda r: (*_place(r), _bytes(r)))


def _place(record: Record) -> tuple[int, str]:
    path = record.point.path or ""
    return (_NEAREST.index(path), path) if path in _NEAREST else (len(_NEAREST) + len(path), path)


def _bytes(record: Record) -> int:
    return record.point.file_bytes or 0


def _file(record: Record) -> str:
    return disk.file_name(record.point.file_bytes)


def _path(record: Record) -> str:
    return disk.path_name(record.point.path)


def stairs(own: Sequence[Record]) -> Stairs:
    """One panel a path: what moves to the right is slower."""
    return Stairs(
        [Stair(_path(r), _file(r), f"{_file(r)}, {_path(r)}", r) for r in own],
        x="a poke takes at least",
        y="share of pokes",
        about="Staircase charts, both axes logarithmic: share of pokes that take at least a time, by file"
        " and path.",
        names=[disk.file_name(size) for size in sorted(set(map(_bytes, own)))],
    )


def _largest(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if _bytes(record) == max(map(_bytes, records))]


def prose(run: Run) -> Iterator[str]:
    """Of the largest file that was poked at both in the page cache and beyond it."""
    by_size: dict[int, dict[str | None, Record]] = {}
    for record in disk.sound(run, pokes(run)):
        by_size.setdefault(_bytes(record), {})[record.point.path] = record
    for _, own in sorted(by_size.items(), reverse=True):
        warm, cold = own.get("buffered-warm"), own.get("buffered-cold") or own.get("direct")
        if warm is None or cold is None:
            continue
        if warm.value and cold.value:
            yield (
                f"A poke at a file of {_file(warm)} takes {format_ns(warm.value)} from the page "
                f"cache and {format_ns(cold.value)} from the disk: "
                f"{format_digits(cold.value / warm.value, 3)} times as long."
            )
        return


def _listings(run: Run) -> Iterator[Listing]:
    """The distributions, and what the disk costs against the page cache, by size."""
    yield from listed(
        "Pokes at files",
        pokes(run),
        ("file", "text", _file),
        ("path", "text", _path),
        ("pokes", "count", lambda r: r.samples),
        *quantiles("mean", "std", "p50", "p99", "p999", "max"),
    )
    yield from listed(
        "Times as long as a warm poke (medians)",
        [s for s in findings(run, PROBE).sections("sizes") if s.number("file_bytes") is not None],
        ("file", "text", lambda s: disk.file_name(int(s.number("file_bytes") or 0))),
        ("cold", "number", lambda s: s.number("cold_over_warm")),
        ("direct", "number", lambda s: s.number("direct_over_warm")),
    )
    yield from disk.device_times(run, PROBE)


def _evidence(run: Run) -> Iterator[str]:
    """With who had a part in the slowest pokes that asked the disk."""
    records = pokes(run)
    largest = _largest(records)
    for record in largest:
        if record.point.path in {"buffered-cold", "direct"}:
            yield from (f"{record.point.label()}: {words}" for words in disk.tail_words(record))
    yield from disk.evidence(run, PROBE)
    yield from disk.commands(largest)
    if records:
        yield "fio reads and writes at different places: the poke is the sum of its two medians."


TOPIC: Final = Topic(
    Chart(
        id="storage_pokes",
        title="What does a poke at a file cost?",
        caption="A poke goes to a random place, reads one byte and writes one byte there. Warm: the page"
        " cache holds the file; cold: it holds nothing of the file; direct: past the page cache, the "
        "aligned block that holds the byte. The empty file does no I/O: it is the baseline.",
        probe=PROBE,
        measured=pokes,
        picture=stairs,
        table=lambda own: stairs(own).table("a poke takes"),
        several=StairsOfSeveral(
            lambda run: {f"{_path(r)}, {_file(r)}": r for r in pokes(run)},
            "a poke takes at least this long",
        ),
    ),
    prose=prose,
    listings=_listings,
    notices=lambda run: disk.notices(run, PROBE),
    evidence=_evidence,
)
