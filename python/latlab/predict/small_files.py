"""Many small files, by phase: opening and closing each, its bytes, and making it durable."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from latlab.predict import figures, storage
from latlab.predict.cases import Case, Known, missing, split
from latlab.predict.figures import FILES, RANDOM
from latlab.predict.job import BLOCK, Job
from latlab.predict.model import Part, Resource
from latlab.run.findings import found, positive

#: The probe's small files, and how many there are at least.
_BYTES: Final = 10_000
_MANY: Final = 500
#: What a file system hands out: below it a file costs as much as one of it.
_PAGE: Final = 4096
#: Files that are larger on the average are streams.
STREAM_BYTES: Final = 4 << 20


def phases(known: Known, what: str, sync: str | None = None) -> tuple[Part, Part] | None:
    """One small file of 10 kB: opening and closing it, and moving its bytes; None where it was not measured.

    Args:
        known: What is known.
        what: `write`, `read-warm` or `read-cold`.
        sync: `fsync` where each is flushed.
    """
    for record in known.run.select(
        FILES, operation=what, file_bytes=_BYTES, sync=sync, engine="psync"
    ).measured():
        mean = positive(found(record), "mean_ns")
        if (record.point.files or 0) < _MANY or mean is None:
            continue
        rest = max(mean - figures.moving_ns(record), mean / 10)
        resource: Resource = "disk" if what == "read-cold" or sync else "cpu"
        name = "opening and closing files" if what != "write" else "creating and closing files"
        whole = Part(
            name,
            rest / 1e9,
            figures.source_of(record),
            figures.visits_of(known.run, record),
            1.0,
            float(record.work.ops or record.samples),
            resource,
        )
        if sync:
            whole = replace(whole, name="creating files and making them durable")
        return whole, replace(whole, name="their bytes", seconds=(mean - rest) / 1e9)
    return None


def files(job: Job, known: Known) -> list[Case]:
    """Files that are written, or read."""
    if job.reads:
        return read(job, known, job.count, job.size)
    return [Case.of(written(job, known, job.count, job.size))]


def written(job: Job, known: Known, count: int, size: float) -> list[Part]:
    """Writing files, and making each, or all at the end, durable."""
    flush = job.options.fsync
    each = phases(known, "write", "fsync") if flush == "each" else None
    own = each or phases(known, "write") or missing("many small files", FILES)
    parts = _scaled(own, count, size)
    if flush == "each" and each is None:
        parts += [
            storage.durable(known, ("create", "fsync"), ("append", "fsync"), ("append", "fdatasync")).times(
                count
            )
        ]
    elif flush == "end":
        parts.append(storage.to_disk(known, BLOCK).part(storage.TO_DISK, count * size))
    elif known.limits.dirty is not None and count * size > known.limits.dirty:
        parts.append(storage.to_disk(known, BLOCK).part(storage.TO_DISK, count * size - known.limits.dirty))
    return parts


def read(job: Job, known: Known, count: int, size: float) -> list[Case]:
    """Reading files, whose names and inodes are in memory."""
    cases = []
    total = round(count * size)
    for when, share in split(total, known.limits.memory, known.cached, job.options.cache):
        parts: list[Part] = []
        if share > 0:
            parts += _warm(known, count * share, size)
        if share < 1:
            parts += _cold(known, count * (1 - share), size)
        cases.append(
            Case.of(
                parts,
                when and ("if they are in the page cache" if share else "if only their names are cached"),
            )
        )
    return cases


def _warm(known: Known, count: float, size: float) -> list[Part]:
    own = phases(known, "read-warm") or missing("reading many small files (read-warm)", FILES)
    return _scaled(own, count, size)


def _cold(known: Known, count: float, size: float) -> list[Part]:
    """As it was measured; else each file is a read at a random place, and the rest of it a stream."""
    own = phases(known, "read-cold")
    if own is not None:
        opening, moving = own
        parts = [opening.times(count), moving.times(count)]
        more = size - _BYTES
    else:
        opening, moving = phases(known, "read-warm") or missing("reading many small files (read-cold)", FILES)
        disk = storage.at_depth(known, RANDOM, "reading their first blocks", _PAGE, 1)
        parts = [opening.times(count), disk.times(count)]
        more = size
    if more > 0:
        parts += storage.streams(known, count * more, count=count, name="their bytes from the disk")
    return parts


def _scaled(own: tuple[Part, Part], count: float, size: float) -> list[Part]:
    rest, moving = own
    return [rest.times(count), moving.times(count * max(size, _PAGE) / _BYTES)]


def copy(job: Job, known: Known) -> list[Case]:
    """Reading each file of a folder and writing it."""
    count, size = job.files, job.bytes / job.files
    return [case.then(written(job, known, count, size)) for case in read(job, known, count, size)]
