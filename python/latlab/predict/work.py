"""Which parts a job has, by what a run has measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NoReturn

from latlab.predict import figures
from latlab.predict.answer import Gain, Prediction, Refused, answered
from latlab.predict.figures import READ, SYNC, WRITE, Rate
from latlab.predict.job import BLOCK, Job
from latlab.predict.model import Part, together
from latlab.predict.place import Limits
from latlab.run.run import Run
from latlab.units import format_bytes_as_asked

#: What TCP sends before the first answer, bytes (RFC 6928: ten of 1,460); then twice as much each round.
_FIRST_WINDOW: Final = 14_600
#: Less gain is none.
_LEAST_GAIN: Final = 1.2


class NotMeasuredError(Exception):
    """A figure that a job needs is not in the run: what it is of, and the probe that measures it."""

    def __init__(self, what: str, probe: str) -> None:
        super().__init__(what)
        self.what, self.probe = what, probe


def predict(job: Job, run: Run, limits: Limits, cached: int | None = None) -> Prediction:
    """How long a job takes.

    Args:
        job: What is done.
        run: What was measured.
        limits: What bounds the page cache here.
        cached: Bytes of what it reads that are in the page cache; None where that is unknown.
    """
    try:
        return _ANSWERS[job.kind](job, run, limits, cached)
    except NotMeasuredError as missing:
        return Prediction(
            job,
            (),
            Refused(f"the run has no figure of {missing.what}", f"latlab measure --only {missing.probe}"),
        )


def _missing(what: str, probe: str) -> NoReturn:
    raise NotMeasuredError(what, probe)


def _curve(run: Run, probe: str, path: str, what: str) -> list[Rate]:
    return figures.rates(run, probe, path) or _missing(what, probe)


def _cold(run: Run, block: int) -> Rate:
    """Reading what is not in the page cache; past the cache where only that is known."""
    curve = figures.rates(run, READ, "buffered-cold")
    if curve:
        return figures.at_block(curve, block)
    direct = figures.rates(run, READ, "direct")
    # The kernel reads ahead in large pieces whatever the block.
    return figures.best_block(direct) if direct else _missing("reading from the disk", READ)


def _warm(run: Run, block: int) -> Rate:
    return figures.at_block(_curve(run, READ, "buffered-warm", "reading from the page cache"), block)


def _reads(job: Job, run: Run, limits: Limits, cached: int | None) -> list[tuple[str, list[Part]]]:
    """The cases of reading a stream."""
    block, size, options = job.options.block or BLOCK, job.bytes, job.options
    if options.direct:
        curve = _curve(run, READ, "direct", "reading past the page cache")
        return [("", [figures.at_block(curve, block).part("reading past the page cache", size)])]
    cold = _cold(run, block).part("reading from the disk", size)
    if options.cache == "cold":
        return [("", [cold])]
    if options.cache == "cached":
        return [("", [_warm(run, block).part("reading from the page cache", size)])]
    warm = _warm(run, block)
    if cached is not None:
        known = [warm.part("reading from the page cache", cached)] if cached else []
        rest = size - cached
        if rest:
            known.append(_cold(run, block).part("reading from the disk", rest))
        return [("", known)]
    if size > limits.memory:
        return [("", [cold])]
    return [
        ("if it is in the page cache", [warm.part("reading from the page cache", size)]),
        ("if not", [cold]),
    ]


def _read(job: Job, run: Run, limits: Limits, cached: int | None) -> Prediction:
    notes = []
    if job.options.cache is None and not job.options.direct and cached is None and job.bytes > limits.memory:
        notes.append(
            f"more than the page cache holds ({format_bytes_as_asked(limits.memory)}): it comes from the disk"
        )
    return answered(
        job, _reads(job, run, limits, cached), gains=tuple(_block_gains(job, run, READ)), notes=tuple(notes)
    )


def _block_gains(job: Job, run: Run, probe: str) -> Iterator[Gain]:
    """A block size that moves more, past the page cache: through it the kernel chooses."""
    if not job.options.direct:
        return
    curve = figures.rates(run, probe, "direct")
    own = figures.at_block(curve, job.options.block or BLOCK)
    best = figures.best_block(curve)
    if best.rate > _LEAST_GAIN * own.rate:
        part = best.part("", job.bytes)
        yield Gain(f"--block {_as_typed(best.block)}", together([part]), best.rate / own.rate)


def _as_typed(block: int) -> str:
    return format_bytes_as_asked(block).replace(" ", "")


def _flushes(run: Run, count: int) -> Part:
    """So many flushes of what was appended."""
    for how in ("fsync", "fdatasync"):
        for operation in ("append", "overwrite"):
            part = figures.operation(run, SYNC, "making it durable", operation=operation, sync=how)
            if part is not None:
                return part.times(count)
    _missing("making a write durable", SYNC)


def _to_disk(run: Run) -> Rate:
    """Writing a stream to the disk: with a flush at its end, or past the cache."""
    for path in ("buffered-fsync-end", "direct"):
        curve = figures.rates(run, WRITE, path)
        if curve:
            return figures.best_block(curve)
    _missing("writing to the disk", WRITE)


def _written(job: Job, run: Run, limits: Limits) -> list[Part]:
    """Writing a stream, in the order in which it takes its time."""
    size, options = job.bytes, job.options
    block = options.block or BLOCK
    if options.fsync == "each":
        calls = math.ceil(size / block)
        return [_to_disk(run).part("writing to the disk", size), _flushes(run, calls)]
    if options.direct:
        curve = _curve(run, WRITE, "direct", "writing past the page cache")
        parts = [figures.at_block(curve, block).part("writing past the page cache", size)]
        return [*parts, _flushes(run, 1)] if options.fsync == "end" else parts
    if options.fsync == "end":
        return [_to_disk(run).part("writing to the disk", size), _flushes(run, 1)]
    memory = figures.at_block(_curve(run, WRITE, "buffered", "writing into the page cache"), block)
    held = min(size, limits.dirty if limits.dirty is not None else size)
    parts = [memory.part("writing into the page cache", held)]
    if size > held:
        parts.append(_to_disk(run).part("writing to the disk", size - held))
    return parts


def _write(job: Job, run: Run, limits: Limits, _cached: int | None) -> Prediction:
    notes: tuple[str, ...] = ()
    if not job.options.direct and job.options.fsync in {None, "none"}:
        notes = ("without a flush the disk goes on writing afterwards: --fsync end waits for it",)
    return answered(
        job, [("", _written(job, run, limits))], gains=tuple(_block_gains(job, run, WRITE)), notes=notes
    )


def _copy(job: Job, run: Run, limits: Limits, cached: int | None) -> Prediction:
    """One thread reads a piece and writes it: the times add."""
    writing = _written(job, run, limits)
    return answered(job, [(when, [*parts, *writing]) for when, parts in _reads(job, run, limits, cached)])


def _small(run: Run, what: str, size: int, count: int) -> list[Part]:
    own = figures.small_file(run, what)
    if own is None:
        _missing(
            "many small files" if what == "write" else f"reading many small files ({what})", figures.FILES
        )
    rest, moving = own
    # Below a page a file costs as much as one of a page.
    return [rest.times(count), moving.times(count * max(size, 4096) / figures.FILE_BYTES)]


def _files(job: Job, run: Run, limits: Limits, _cached: int | None) -> Prediction:
    count, size, options = job.count, job.size, job.options
    if not options.reading:
        parts = _small(run, "write", size, count)
        if options.fsync == "each":
            parts.append(_flushes(run, count))
        elif options.fsync == "end":
            parts.append(_to_disk(run).part("writing to the disk", job.bytes))
        return answered(job, [("", parts)])
    warm = _small(run, "read-warm", size, count)
    cases = []
    if options.cache != "cold" and job.bytes <= limits.memory:
        cases.append(("if they are in the page cache", warm))
    if options.cache != "cached":
        # Their names are known; a read of the content, and one of the inode for every few files.
        disk = figures.operation(
            run, figures.RANDOM, "reading from the disk", block_bytes=4096, queue_depth=1, path="direct"
        )
        if disk is None:
            _missing("single reads from the disk", figures.RANDOM)
        stream = _cold(run, BLOCK).part("their bytes from the disk", job.bytes)
        cases.append(("if not, and their names are", [*warm, disk.times(count), stream]))
    return answered(job, cases if len(cases) > 1 else [("", own) for _, own in cases])


def _scan(job: Job, run: Run, limits: Limits, _cached: int | None) -> Prediction:
    if job.bytes > limits.memory:
        return Prediction(
            job,
            (),
            Refused(
                f"it does not fit into memory: {format_bytes_as_asked(limits.memory)} may be used",
                f"latlab predict scan {_as_typed(limits.memory // 2)}",
            ),
        )
    part = (
        figures.memory_pokes(run, job.bytes) if job.options.random else figures.memory_stream(run, job.bytes)
    )
    if part is None:
        _missing("memory", figures.LOAD if job.options.random else figures.BANDWIDTH)
    return answered(job, [("", [part])])


def _syscalls(job: Job, run: Run, _limits: Limits, _cached: int | None) -> Prediction:
    call = figures.operation(run, figures.CALL, "system calls", operation="getppid")
    if call is None:
        _missing("a system call", figures.CALL)
    return answered(job, [("", [call.times(job.count)])])


def _transfers(job: Job, run: Run, _limits: Limits, _cached: int | None) -> Prediction:
    options = job.options
    if options.rtt_s is None:
        return Prediction(
            job,
            (),
            Refused("the distance to the server is not given", "latlab predict … --rtt 20ms (ping says it)"),
        )
    if job.kind == "transfers" and options.rate is None:
        return Prediction(
            job,
            (),
            Refused("the rate of the path is not given", "latlab predict … --rate 200 (10^6 bits a second)"),
        )
    own = figures.operation(
        run,
        "network.transfer",
        "work of client and server",
        path="loopback",
        connections="new",
        concurrency=1,
        protocol="http/1.1",
        engine="latlab",
    )
    if own is None:
        _missing("transfers", "network.transfer")
    rounds = 0
    window, sent = _FIRST_WINDOW, _FIRST_WINDOW
    while sent < job.size:
        window *= 2
        sent += window
        rounds += 1
    turns = math.ceil(job.count / options.at_once)
    bytes_s = job.bytes / options.rate if options.rate else 0.0
    cases = []
    for when, trips in (("with a new connection for each", 2), ("with kept connections", 1)):
        waiting = turns * (trips + (rounds if trips == 2 else 0)) * options.rtt_s  # noqa: PLR2004 - new
        path = Part(
            "waiting for the path", max(waiting + bytes_s / options.at_once, bytes_s), 0.05, 3, own.source
        )
        cases.append((when, [path, own.times(job.count / options.at_once)]))
    return answered(job, cases)


_ANSWERS: Final = {
    "read": _read,
    "write": _write,
    "copy": _copy,
    "files": _files,
    "scan": _scan,
    "syscalls": _syscalls,
    "transfers": _transfers,
    "requests": _transfers,
}
