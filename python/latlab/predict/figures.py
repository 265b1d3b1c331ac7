"""What a run has measured of a disk, memory and the kernel, as parts of jobs."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from latlab import _core
from latlab.predict.model import Part, Resource, Source, Spread
from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Records, Run

READ, WRITE = "storage.read.sequential", "storage.write.sequential"
RANDOM, RANDOM_WRITE, STEADY = "storage.read.random", "storage.write.random", "storage.steady"
FILES, SYNC = "storage.files", "storage.sync"
BANDWIDTH, LOAD, CALL = "memory.bandwidth", "memory.load.dependent", "kernel.syscall"
FAULT = "vm.fault"
#: A first touch that takes longer than so many others is of memory that the host had to find (`vm.fault`).
_FOUND: Final = 2.0
_LINE: Final = 64
#: Of smaller new files the file costs more than its bytes.
_LARGE_FILE: Final = 1_000_000
#: From this block on reading ahead decides how fast a cold stream is, and not the call.
AHEAD: Final = 16 << 10
#: Shares of a distribution that single operations are drawn from.
_SHARES: Final = 200


@dataclass(frozen=True, slots=True)
class Rate:
    """A stream of one block size.

    Attributes:
        block: Bytes a call.
        rate: Bytes a second, all bytes over all calls' time.
        measured: Bytes that were moved.
        source: The figure.
        visits: The variation between its visits.
        start_s: What the beginning of a stream takes more than as many bytes later.
        each: The rate in each visit.
    """

    block: int
    rate: float
    measured: float
    source: Source
    visits: Spread
    start_s: float = 0.0
    each: tuple[float, ...] = ()

    def part(self, name: str, size: float, resource: Resource = "disk") -> Part:
        """So many bytes."""
        seconds = size / self.rate
        return Part(name, seconds, self.source, self.visits, size, self.measured, resource)


def where_programs_wait(run: Run) -> Run:
    """The run with those rounds of its disk's figures that ran where the disk interrupts.

    A program that waits for a disk ends up on a CPU that handles the disk's interrupts, since the scheduler
    wakes it there; rounds are pinned, and on other CPUs they wait for the way from one to the other, too.
    Figures without such a round stay as they are, and those of a file of the user's, which may lie on another
    disk than the one that the run describes.
    """
    if run.settings.file is not None:
        return run
    disk = run.machine.text("dir.file_system.disk")
    handling = {
        cpu
        for own in run.machine.sections("disks")
        if own.text("name") == disk and isinstance(found := own.at("interrupt_cpus"), list)
        for cpu in found
    }
    cpus = set(run.rounds.values())
    known = {(line.probe, line.point) for line in run.lines if line.cpu in handling}
    if not known or cpus <= handling:
        return run
    lines = [
        line
        for line in run.lines
        if line.probe.startswith("storage.")
        and (line.cpu in handling or line.cpu is None or (line.probe, line.point) not in known)
    ]
    others = [line for line in run.lines if not line.probe.startswith("storage.")]
    figures = [record for record in run.records if not record.probe.startswith("storage.")]
    figures += Run.of_lines(run.header, lines, run.footer).records
    return Run(run.header, figures, run.footer, lines=(*others, *lines), path=run.path, notes=run.notes)


def source_of(record: Record) -> Source:
    """The figure of a record."""
    return Source(record.probe, record.point.label())


def rates(run: Run, probe: str, path: str, *, alone: bool = False) -> list[Rate]:
    """A curve of a disk: a rate for each block size that was measured, ascending.

    Args:
        run: Any run.
        probe: :data:`READ` or :data:`WRITE`.
        path: `direct`, `buffered-cold`, `buffered-warm`, `buffered`, `buffered-fsync-end`.
        alone: The calls alone, without the flush at the end.
    """
    curve = []
    for record in run.select(probe, path=path).measured():
        rate = positive(found(record), "bytes_per_s")
        if alone:
            mean_s = _mean_s(record)
            rate = (record.point.block_bytes or 0) / mean_s if mean_s else None
        if not record.point.block_bytes or rate is None:
            continue
        done, start_s = float(record.work.bytes), (positive(found(record), "start_ns") or 0.0) / 1e9
        visits = _visits(run, record)
        each = tuple(moved / seconds for moved, seconds in visits if seconds)
        spread = _spread(record, visits)
        curve.append(Rate(record.point.block_bytes, rate, done, source_of(record), spread, start_s, each))
    # A few visits to one block size say little: how far they lie apart is said by all of the curve.
    deviation = math.sqrt(statistics.fmean(own.visits.deviation**2 for own in curve)) if curve else 0.0
    degrees = sum(max(own.visits.visits - 1, 0) for own in curve)
    return [
        replace(own, visits=replace(own.visits, deviation=deviation, degrees=degrees))
        for own in sorted(curve, key=lambda own: own.block)
    ]


def moving_ns(record: Record) -> float:
    """What moving the bytes of one file takes, without opening and closing it; 0 where that is unknown."""
    return sum(
        positive(phase, "mean_ns") or 0.0
        for phase in found(record).sections("phases")
        if phase.text("name") in {"read", "write"}
    )


def new_files(run: Run) -> Rate | None:
    """Writing new files of 1 MB or more into the page cache, at the rate of the fastest size."""
    found_ = []
    for record in run.select(FILES, operation="write", engine="psync", sync=None).measured():
        size, done = record.point.file_bytes or 0, float(record.work.ops or record.samples)
        moving = moving_ns(record)
        if size >= _LARGE_FILE and moving:
            spread = visits_of(run, record)
            found_.append(Rate(size, size / moving * 1e9, size * done, source_of(record), spread))
    return best_block(found_) if found_ else None


def at_block(curve: Sequence[Rate], block: int) -> Rate:
    """The rate at a block size: between two that were measured, by the time of a block; else the nearest."""
    for first, second in itertools.pairwise(curve):
        if first.block <= block <= second.block:
            ends = (first.block, first.block / first.rate), (second.block, second.block / second.rate)
            seconds, nearer = _in_proportion(block, *ends)
            return replace((first, second)[nearer], block=block, rate=block / seconds)
    return min(curve, key=lambda own: abs(math.log(own.block / max(block, 1))))


def _in_proportion(at: float, first: tuple[float, float], second: tuple[float, float]) -> tuple[float, bool]:
    """What lies between two points on the line through them; whether it is nearer to the second.

    The time of a call is a cost of its own and one of each byte.
    """
    share = (at - first[0]) / (second[0] - first[0])
    return (1 - share) * first[1] + share * second[1], at * at >= first[0] * second[0]


def pooled(curve: Sequence[Rate], least: int, most: float = math.inf) -> Rate | None:
    """All blocks of these sizes as one, at the median rate of all visits; None where there is none.

    A disk has slow spells that last longer than a visit, such as the host's while it writes what was written
    before: a job meets one, or none.
    """
    own = [rate for rate in curve if least <= rate.block <= most]
    if not own:
        return None
    moved = sum(rate.measured for rate in own)
    if not moved:
        return best_block(own)
    near = max(own, key=lambda rate: rate.measured)
    visits = replace(near.visits, visits=sum(rate.visits.visits for rate in own))
    each = [visit for rate in own for visit in rate.each] or [rate.rate for rate in own]
    start_s = statistics.fmean(rate.start_s for rate in own)
    return replace(near, rate=statistics.median(each), measured=moved, visits=visits, start_s=start_s)


def best_block(curve: Sequence[Rate]) -> Rate:
    """The block size that moves most."""
    return max(curve, key=lambda own: own.rate)


def operation(run: Run, records: Records, name: str, resource: Resource = "disk") -> Part | None:
    """The mean of one operation, of the first of these records that has it; None where none has."""
    return next(
        (of_record(run, record, name, resource) for record in records.measured() if _mean_s(record)),
        None,
    )


def of_record(run: Run, record: Record, name: str, resource: Resource = "disk") -> Part:
    """One operation of a figure in time, by its mean."""
    ops = float(record.work.ops or record.samples)
    return Part(
        name,
        _mean_s(record) or 0.0,
        source_of(record),
        visits_of(run, record),
        1.0,
        ops,
        resource,
        singles(record) if record.kind == "per_op" else (),
    )


def each_s(record: Record) -> float | None:
    """What one operation of a disk takes, seconds: all time by all operations, else their mean.

    A disk that is held to a rate serves most operations at once and keeps few for long: no median shows that.
    """
    rate = positive(found(record), "bytes_per_s")
    return record.point.block_bytes / rate if rate and record.point.block_bytes else _mean_s(record)


def _mean_s(record: Record) -> float | None:
    mean = record.summary.mean if record.summary is not None else None
    return mean / 1e9 if mean is not None and 0 < mean < math.inf else None


def visits_of(run: Run, record: Record) -> Spread:
    """The variation between the visits of all rounds to a figure; of a run without its lines, its rounds."""
    return _spread(record, _visits(run, record))


def _spread(record: Record, visits: Sequence[tuple[float, float]]) -> Spread:
    if visits:
        return Spread.of(visits)
    ends = found(record).at("bytes_per_s_between_blocks")
    if isinstance(ends, list) and len(ends) == 2:  # noqa: PLR2004 - the lowest, the highest
        low, high = (end if isinstance(end, int | float) else 0.0 for end in ends)
        return Spread.of_range(low, high, len(record.blocks) or len(record.rounds))
    means = found(record).at("block_means_ns")
    if isinstance(means, list):
        return Spread.of([(1.0, mean) for mean in means if isinstance(mean, int | float)])
    return Spread.of([(1.0, own.p50) for own in record.rounds or record.blocks])


def _visits(run: Run, record: Record) -> list[tuple[float, float]]:
    """What each visit to a figure did, bytes or operations, and in how many seconds."""
    visits: list[tuple[float, float]] = []
    for line in run.lines:
        if line.probe != record.probe or line.point != record.point or line.summary is None:
            continue
        rate, mean = positive(found(line), "bytes_per_s"), line.summary.mean
        if rate is not None and line.work.bytes:
            visits.append((line.work.bytes, line.work.bytes / rate))
        elif mean and mean > 0:
            visits.append((line.samples, line.samples * mean / 1e9))
    return visits


def singles(record: Record) -> tuple[float, ...]:
    """Single operations over their mean, at even shares of them: each is the mean of its share."""
    bins = _bins(record)
    total = sum(count for _, count in bins)
    mean = sum(middle * count for middle, count in bins) / total if total else 0.0
    if mean <= 0:
        return ()
    share = total / _SHARES
    found, left, own = [], share, 0.0
    for middle, count in bins:
        rest = float(count)
        while rest > 0:
            taken = min(rest, left)
            own += taken * middle
            rest -= taken
            left -= taken
            if left <= share * 1e-9:
                found.append(own / share / mean)
                left, own = share, 0.0
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Depth:
    """Blocks of one size at random places, at one queue depth.

    Attributes:
        size: Bytes of a block.
        depth: How many are under way.
        part: What one adds to the time of all.
    """

    size: int
    depth: int
    part: Part


def depths(run: Run, probe: str, name: str) -> list[Depth]:
    """Reads or writes at random places, by block and depth: of many under way by their rate together."""
    found_ = []
    for record in run.select(probe, path="direct").measured():
        point, each = record.point, each_s(record)
        if not point.block_bytes or not point.queue_depth or each is None:
            continue
        depth = point.queue_depth
        shape = singles(record) if depth == 1 else ()
        done = float(record.work.ops or record.samples)
        spread = visits_of(run, record)
        own = Part(name, each, source_of(record), spread, 1.0, done, "disk", shape)
        found_.append(Depth(point.block_bytes, depth, own))
    return found_


def between(line: Sequence[Depth], size: int) -> Part:
    """A block of a size between measured ones: in proportion; beyond them by the byte."""
    for first, second in itertools.pairwise(line):
        if first.size <= size <= second.size:
            ends = (first.size, first.part.seconds), (second.size, second.part.seconds)
            seconds, nearer = _in_proportion(size, *ends)
            return replace((first, second)[nearer].part, seconds=seconds)
    if size < line[0].size:
        return line[0].part
    return replace(line[-1].part, seconds=line[-1].part.seconds * size / line[-1].size)


def memory_stream(run: Run, size: float) -> Part | None:
    """Reading memory from front to back with one thread: the largest array that was measured."""
    record = _largest(run.select(BANDWIDTH, operation="read", threads=1))
    if record is None or record.unit != "bytes_per_s" or not record.value:
        return None
    spread = visits_of(run, record)
    name, each = "reading memory in order", size / record.value
    return Part(name, each, source_of(record), spread, size, size, "cpu")


def memory_pokes(run: Run, size: float) -> Part | None:
    """Reading a byte of each line of memory, each where the one before says."""
    record = _largest(run.select(LOAD, pages="4k", order="random"))
    mean_s = record and _mean_s(record)
    if record is None or not mean_s:
        return None
    spread = visits_of(run, record)
    name, each = "reading memory at random", size / _LINE * mean_s
    return Part(name, each, source_of(record), spread, size, size, "cpu")


def found_by_host(run: Run) -> float | None:
    """Seconds for each byte of memory that the host has to find first; None where no touch was of such.

    By the first touches of huge pages, of which a host without memory behind them has to find all.
    """
    for record in run.select(FAULT, operation="first-write", pages="huge").measured():
        usual, size = record.value or 0.0, record.point.size_bytes
        slow = [(bin_ns, count) for bin_ns, count in _bins(record) if bin_ns > _FOUND * usual]
        if slow and size:
            mean = sum(bin_ns * count for bin_ns, count in slow) / sum(count for _, count in slow)
            return (mean - usual) / 1e9 / size
    return None


def _bins(record: Record) -> list[tuple[float, int]]:
    """The middles of a histogram's bins, and their counts; none where it is damaged."""
    if record.histogram is None:
        return []
    try:
        bins = _core.decode_histogram(record.histogram.encoding, record.histogram.data)
    except ValueError:
        return []
    return [((low + high) / 2, count) for low, high, count in bins]


def _largest(records: Records) -> Record | None:
    """The figure of the largest working set."""
    own = [record for record in records.measured() if record.point.working_set_bytes]
    return max(own, key=lambda each: each.point.working_set_bytes or 0, default=None)
