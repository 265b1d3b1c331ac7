"""The same file read again and again, or kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.units import format_digits, format_ns
from latlab.view.points import quantile
from latlab.view.table import Listing, listed
from latlab.view.topic import Topic

PROBE: Final = "storage.reread"


def _ways(records: Sequence[Record]) -> list[tuple[str, Record | None, Record | None]]:
    """Each size of file, read again and kept."""
    sizes: dict[int, dict[str, Record]] = {}
    for record in records:
        sizes.setdefault(record.point.file_bytes or 0, {})[record.point.operation or ""] = record
    return [(disk.file_name(size), own.get("reread"), own.get("kept")) for size, own in sorted(sizes.items())]


def _times(again: Record | None, kept: Record | None) -> float | None:
    return again.value / kept.value if again and kept and again.value and kept.value else None


def prose(run: Run) -> Iterator[str]:
    """Of the largest file."""
    for file, again, kept in reversed(_ways(disk.sound(run, disk.timed(run, PROBE)))):
        times = _times(again, kept)
        if again and kept and times is not None:
            yield (
                f"Scanning {file} takes {format_ns(again.value)} when it is read again from the page "
                f"cache and {format_ns(kept.value)} when it was kept in memory: "
                f"{format_digits(times, 3)} times as long."
            )
            return


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "Once through all bytes",
        _ways(disk.timed(run, PROBE)),
        ("file", "text", lambda at: at[0]),
        ("read again, warm", "ns", lambda at: quantile(at[1], "p50")),
        ("p99", "ns", lambda at: quantile(at[1], "p99")),
        ("kept in memory", "ns", lambda at: quantile(at[2], "p50")),
        ("p99", "ns", lambda at: quantile(at[2], "p99")),
        ("times", "number", lambda at: _times(at[1], at[2])),
    )


TOPIC: Final = Topic(
    id="storage_reread",
    title="Is it worth keeping a file's contents in memory?",
    probes=(PROBE,),
    shown=lambda run: disk.timed(run, PROBE),
    prose=prose,
    listings=_listings,
    notices=lambda run: disk.notices(run, PROBE),
    evidence=lambda run: (*disk.evidence(run, PROBE), *disk.commands(disk.timed(run, PROBE)[:1])),
)
