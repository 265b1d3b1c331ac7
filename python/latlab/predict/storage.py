"""Streams on a disk and through the page cache, and single blocks at random places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from latlab.predict import figures
from latlab.predict.cases import Case, Known, missing, split
from latlab.predict.figures import AHEAD, RANDOM, RANDOM_WRITE, READ, SYNC, WRITE, Rate
from latlab.predict.job import BLOCK, Job
from latlab.predict.model import Part

FROM_DISK, FROM_CACHE = "reading from the disk", "reading from the page cache"
STARTING, NEW = "starting to read ahead", "making room in a new file"
PAST_READ, PAST_WRITE = "reading past the page cache", "writing past the page cache"
TO_DISK, TO_CACHE, DURABLE = "writing to the disk", "writing into the page cache", "making it durable"
#: What `storage.sync` writes at once.
_SYNCED = 4096
#: Of what is appended fdatasync writes the new size, too, as fsync does.
_APPENDED = (("append", "fdatasync"), ("append", "fsync"), ("overwrite", "fdatasync"), ("overwrite", "fsync"))
_SMALL, _LARGE = 64 << 10, 4 << 20


def curve(known: Known, probe: str, path: str, what: str) -> list[Rate]:
    """The rates of a path, by block.

    Raises:
        NotMeasuredError: there is none.
    """
    return figures.rates(known.run, probe, path) or missing(what, probe)


def cold(known: Known, block: int) -> Rate:
    """Reading what is not in the page cache; past the cache where only that was measured.

    The kernel reads ahead, in large pieces whatever the block: blocks from 16 KiB to 4 MiB are one figure.
    Below it the calls count; beyond it nothing is read while one is copied.
    """
    own = figures.rates(known.run, READ, "buffered-cold")
    if own:
        stream = figures.pooled(own, AHEAD, _LARGE)
        return stream if stream and AHEAD <= block <= _LARGE else figures.at_block(own, block)
    direct = figures.rates(known.run, READ, "direct")
    return figures.best_block(direct) if direct else missing(FROM_DISK, READ)


def streams(
    known: Known, size: float, block: int = BLOCK, count: float = 1, name: str = FROM_DISK
) -> list[Part]:
    """So many streams of so many bytes together, of files that are not in the page cache.

    Until read-ahead has grown, a stream is as slow as small requests past the cache.
    """
    own = cold(known, block)
    small = figures.rates(known.run, READ, "direct")
    slow = figures.at_block(small, _SMALL).rate if small else own.rate
    start_s = min(own.start_s * count, size * max(1 / slow - 1 / own.rate, 0.0))
    starting = [Part(STARTING, start_s, own.source, own.visits)] if start_s else []
    return [*starting, own.part(name, size)]


def warm(known: Known, block: int) -> Rate:
    """Reading what is in the page cache."""
    return figures.at_block(curve(known, READ, "buffered-warm", FROM_CACHE), block)


def memory(known: Known, block: int) -> Rate:
    """Writing into the page cache of a file that is there."""
    return figures.at_block(_overwriting(known) or missing(TO_CACHE, WRITE), block)


def _overwriting(known: Known) -> list[Rate]:
    """Small blocks on their own, larger ones as before a flush at the end."""
    own = [
        *figures.rates(known.run, WRITE, "buffered"),
        *figures.rates(known.run, WRITE, "buffered-fsync-end", alone=True),
    ]
    return sorted(own, key=lambda each: each.block)


def to_disk(known: Known, block: int) -> Rate:
    """Writing a stream until it is on the disk: with a flush at its end, or past the cache."""
    for path in ("buffered-fsync-end", "direct"):
        own = figures.rates(known.run, WRITE, path)
        if own:
            return figures.pooled(own, _SMALL) or figures.at_block(own, block)
    return missing(TO_DISK, WRITE)


def read(job: Job, known: Known) -> list[Case]:
    """Reading a stream."""
    block, size, options = job.options.block or BLOCK, job.bytes, job.options
    if options.direct:
        rates = curve(known, READ, "direct", PAST_READ)
        return [Case.of([figures.at_block(rates, block).part(PAST_READ, size)])]
    return [
        Case.of(_reading(job, known, share), when)
        for when, share in split(size, known.limits.memory, known.cached, options.cache)
    ]


def _reading(job: Job, known: Known, share: float) -> list[Part]:
    """A stream, of which this share is in the page cache."""
    size, block, parts = job.bytes, job.options.block or BLOCK, []
    if share > 0:
        parts.append(warm(known, block).part(FROM_CACHE, size * share, "cpu"))
    if share < 1:
        parts += streams(known, size * (1 - share), block, max(job.files, 1))
    return parts


def written(job: Job, known: Known) -> list[Part]:
    """Writing a stream, in the order in which it takes its time.

    Without a flush writers fill memory up to the dirty limit; from there on they wait for the disk
    (mm/page-writeback.c, `balance_dirty_pages`).
    """
    size, options = job.bytes, job.options
    block = options.block or BLOCK
    if options.fsync == "each":
        return synced(known, math.ceil(size / block), block)
    if options.direct:
        rates = curve(known, WRITE, "direct", PAST_WRITE)
        parts = [figures.at_block(rates, block).part(PAST_WRITE, size)]
        return [*parts, *synced(known, 1, _SYNCED)] if options.fsync == "end" else parts
    if options.fsync == "end":
        disk = to_disk(known, block).part(TO_DISK, size)
        return [disk, *_new(known, size), *synced(known, 1, _SYNCED)]
    return into_cache(known, size, block)


def into_cache(known: Known, size: float, block: int) -> list[Part]:
    """Writing without a flush: memory up to the dirty limit, the disk beyond it."""
    dirty = known.limits.dirty
    held = min(size, dirty if dirty is not None else size)
    parts = [memory(known, block).part(TO_CACHE, held, "cpu")] if held else []
    if size > held:
        parts.append(to_disk(known, block).part(TO_DISK, size - held))
    return [*parts, *_new(known, size)]


def _new(known: Known, size: float) -> list[Part]:
    """What a new file takes besides: room, and pages that nobody had. Streams overwrite a file.

    By the largest new files of the run, at their fastest: where the host had to find memory first, that is
    another part.
    """
    curve, own = _overwriting(known), figures.new_files(known.run)
    if own is None or not curve:
        return []
    over = figures.best_block(curve)
    seconds = size * (1 / own.rate - 1 / over.rate)
    # They are measured once, and vary as other writing into memory does.
    part = replace(own, visits=over.visits).part(NEW, size, "cpu")
    return [replace(part, seconds=seconds)] if seconds > 0 else []


def synced(known: Known, count: int, block: int) -> list[Part]:
    """So many writes of a block, each made durable."""
    own = durable(known, *_APPENDED)
    parts = [own.times(count)]
    more = count * (block - _SYNCED)
    if more > 0:
        parts.append(to_disk(known, block).part(TO_DISK, more))
    return parts


def durable(known: Known, *ways: tuple[str, str]) -> Part:
    """A write of 4 KiB that is made durable, by the first of these ways that was measured.

    Raises:
        NotMeasuredError: none was.
    """
    for how, sync in ways:
        part = figures.operation(known.run, known.run.select(SYNC, operation=how, sync=sync), DURABLE)
        if part is not None:
            return part
    return missing("making a write durable", SYNC)


def write(job: Job, known: Known) -> list[Case]:
    """Writing a stream."""
    return [Case.of(written(job, known))]


def copy(job: Job, known: Known) -> list[Case]:
    """One thread reads a piece and writes it.

    While it writes into memory the kernel reads ahead, so the disk and the two copies through memory overlap
    in part: what it takes lies halfway between the longer of both and their sum. What has to reach the disk
    comes after.
    """
    size, block = job.bytes, job.options.block or BLOCK
    own = written(job, known)
    cases = []
    for when, share in split(size, known.limits.memory, known.cached, job.options.cache):
        reading = _reading(job, known, share)
        if share < 1 and all(part.resource == "cpu" for part in own):
            copied = warm(known, block).part("copying it out of the page cache", size, "cpu")
            disk = [part for part in reading if part.resource == "disk"]
            cases.append(Case(when, (*disk, copied, *own), partial(_ahead, len(disk))))
        else:
            cases.append(Case.of([*reading, *own], when))
    return cases


def _ahead(count: int, times: Sequence[float]) -> float:
    """The disk, which is the first so many, partly beside everything else."""
    disk, others = sum(times[:count]), sum(times[count:])
    return (max(disk, others) + disk + others) / 2


def blocks(job: Job, known: Known) -> list[Case]:
    """Blocks at random places, each read or written past the page cache, so many under way at once."""
    options, size = job.options, job.size
    probe, name = (RANDOM, "reading blocks") if options.reading else (RANDOM_WRITE, "writing blocks")
    cases = []
    room = known.limits.memory if options.reading else 0
    for when, share in split(job.bytes, room, known.cached, options.cache):
        if share:
            rate = warm(known, size)
            cases.append(Case.of([rate.part(FROM_CACHE, job.bytes, "cpu")], when))
            continue
        cases.append(Case.of([at_depth(known, probe, name, size, options.depth).times(job.count)], when))
    return cases


def at_depth(known: Known, probe: str, name: str, size: int, depth: int) -> Part:
    """One block of this size, when so many are under way at most: what one adds to the time of all.

    Raises:
        NotMeasuredError: no such depth was measured.
    """
    own = figures.depths(known.run, probe, name)
    if not own:
        missing(f"{name} at random places", probe)
    # Of each size the deepest that was measured: large blocks at fewer depths than small ones.
    deepest = {each.size: each for each in sorted(own, key=lambda each: each.depth) if each.depth <= depth}
    if not deepest:
        missing(f"{name} at random places at depth {depth}", probe)
    return figures.between([deepest[each] for each in sorted(deepest)], size)
