"""What it costs to be sure that something is on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from latlab.run.findings import findings, found
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.units import format_digits, format_ns
from latlab.view.points import quantiles
from latlab.view.prose import Notice, sentence
from latlab.view.table import Listing, listed
from latlab.view.topic import Topic

PROBE: Final = "storage.sync"
_OPERATIONS: Final = {
    "overwrite": "4 KiB over old ones",
    "append": "4 KiB at the end",
    "create": "a new file of 4 KiB",
}
_SYNCS: Final = {
    "fsync": "write, fsync",
    "fdatasync": "write, fdatasync",
    "o_dsync": "write with O_DSYNC",
    "direct-fdatasync": "direct write, fdatasync",
    "f_fullfsync": "write, F_FULLFSYNC",
}
#: A growing file's writes take so many times as long before it is worth a word.
_LONGER: Final = 1.25


def _records(run: Run) -> list[Record]:
    def place(record: Record) -> tuple[int, ...]:
        pairs = ((_OPERATIONS, record.point.operation), (_SYNCS, record.point.sync))
        return tuple(list(known).index(own) if own in known else len(known) for known, own in pairs)

    return sorted(disk.timed(run, PROBE), key=place)


def _usual(records: list[Record], operation: str) -> Record | None:
    """That made durable as databases do it."""
    by = {(record.point.operation, record.point.sync): record for record in records}
    return by.get((operation, "fdatasync")) or by.get((operation, "fsync"))


def prose(run: Run) -> Iterator[str]:
    """Old blocks, new ones, a new file."""
    own = disk.sound(run, _records(run))
    over, end, new = (usual and usual.value for usual in (_usual(own, each) for each in _OPERATIONS))
    if not over:
        return
    text = f"An overwrite of 4 KiB is durable after {format_ns(over)}"
    text += f", at the end of a file after {format_ns(end)}" if end else ""
    text += f", in a new file after {format_ns(new)}" if new else ""
    yield f"{text}."
    times = findings(run, PROBE).number("append_over_overwrite")
    if end and times and times >= _LONGER:
        yield (
            f"Appending takes {format_digits(times, 2)} times as long as overwriting: a log whose "
            "file is written in advance avoids that."
        )


def _listings(run: Run) -> Iterator[Listing]:
    own = _records(run)
    yield from listed(
        "Durable writes",
        own,
        ("what is written", "text", lambda r: _called(_OPERATIONS, r.point.operation)),
        ("how it is made durable", "text", lambda r: _called(_SYNCS, r.point.sync)),
        ("median", "ns", lambda r: r.value),
        ("of it the flush", "ns", lambda r: found(r).number("sync_p50_ns")),
        ("95 % from", "ns", lambda r: r.ends[0]),
        ("95 % to", "ns", lambda r: r.ends[1]),
        *quantiles("mean", "p99", "p999", "max"),
        ("writes", "count", lambda r: r.samples),
    )
    yield from disk.device_times(run, PROBE)


def _called(names: Mapping[str, str], word: str | None) -> str | None:
    return names.get(word or "", word)


def _notices(run: Run) -> Iterator[Notice]:
    """With whether the flush is one: nobody can know it without pulling the plug."""
    yield from disk.notices(run, PROBE)
    own = findings(run, PROBE)
    if verdict := own.text("verdict"):
        why = " ".join(sentence(text[:1].upper() + text[1:]) for text in own.texts("evidence"))
        plausible = verdict.startswith("durable")
        yield Notice("note" if plausible else "caution", f"The flush: {verdict}", why)


def _evidence(run: Run) -> Iterator[str]:
    own = _records(run)
    yield from disk.tail_words(_usual(own, "overwrite"))
    yield from disk.evidence(run, PROBE)
    yield from disk.commands(record for record in own if record.point.sync in {"fdatasync", None})


TOPIC: Final = Topic(
    id="storage_sync",
    title="What does a durable write cost?",
    probes=(PROBE,),
    shown=_records,
    prose=prose,
    listings=_listings,
    notices=_notices,
    evidence=_evidence,
)
