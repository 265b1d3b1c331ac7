"""What a run has measured of a disk, memory and the kernel, as parts of jobs."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from latlab.predict.model import Part, Source, deviation_of, deviation_of_range
from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run

READ, WRITE, RANDOM = "storage.read.sequential", "storage.write.sequential", "storage.read.random"
FILES, SYNC = "storage.files", "storage.sync"
BANDWIDTH, LOAD, CALL = "memory.bandwidth", "memory.load.dependent", "kernel.syscall"
#: Small files are measured with this size.
FILE_BYTES: Final = 10_000
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """A stream of one block size.

    Attributes:
        block: Bytes a call.
        rate: Bytes a second, all bytes over all calls' time.
        deviation: Standard deviation of its logarithm between repeats.
        repeats: How many.
        measured: Bytes that were moved.
        source: The figure.
    """

    block: int
    rate: float
    deviation: float
    repeats: int
    measured: float
    source: Source

    def part(self, name: str, size: float) -> Part:
        """So many bytes."""
        return Part(
            name, size / self.rate, self.deviation, self.repeats, self.source, size / max(self.measured, 1.0)
        )


def source_of(record: Record) -> Source:
    """The figure of a record."""
    return Source(record.probe, record.point.label())


def rates(run: Run, probe: str, path: str) -> list[Rate]:
    """A curve of a disk: a rate for each block size that was measured, ascending.

    Args:
        run: Any run.
        probe: :data:`READ` or :data:`WRITE`.
        path: `direct`, `buffered-cold`, `buffered-warm`, `buffered`, `buffered-fsync-end`.
    """
    curve = []
    for record in _sound(run, probe):
        rate = positive(found(record), "bytes_per_s")
        if record.point.path != path or not record.point.block_bytes or rate is None:
            continue
        ends = found(record).at("bytes_per_s_between_blocks")
        count = len(record.blocks) or len(record.rounds)
        low, high = ends if isinstance(ends, list) and len(ends) == 2 else (rate, rate)  # noqa: PLR2004
        known = isinstance(low, int | float) and isinstance(high, int | float)
        deviation = deviation_of_range(low, high, count) if known else deviation_of(())
        curve.append(
            Rate(
                record.point.block_bytes,
                rate,
                deviation,
                count,
                float(record.work.bytes),
                source_of(record),
            )
        )
    if not curve:
        return []
    # A few repeats of one block size say little: how far repeats lie apart is said by all of the curve.
    deviation = math.sqrt(statistics.fmean(own.deviation**2 for own in curve))
    repeats = 1 + sum(max(own.repeats - 1, 0) for own in curve)
    return [
        replace(own, deviation=deviation, repeats=repeats) for own in sorted(curve, key=lambda own: own.block)
    ]


def at_block(curve: Sequence[Rate], block: int) -> Rate:
    """The rate at a block size: between two that were measured, on logarithms; beyond them the nearest."""
    for first, second in itertools.pairwise(curve):
        if first.block <= block <= second.block:
            share = math.log(block / first.block) / math.log(second.block / first.block)
            rate = math.exp((1 - share) * math.log(first.rate) + share * math.log(second.rate))
            near = first if share < 0.5 else second  # noqa: PLR2004 - the nearer one
            return Rate(block, rate, near.deviation, near.repeats, near.measured, near.source)
    return min(curve, key=lambda own: abs(math.log(own.block / max(block, 1))))


def best_block(curve: Sequence[Rate]) -> Rate:
    """The block size that moves most."""
    return max(curve, key=lambda own: own.rate)


def operation(run: Run, probe: str, name: str, **point: object) -> Part | None:
    """The mean of one operation whose point has these fields; None where it was not measured."""
    for record in _sound(run, probe):
        fields: Mapping[str, object] = record.point.fields()
        if any(fields.get(field) != value for field, value in point.items()):
            continue
        summary = record.summary
        if summary is None or summary.mean is None or summary.mean <= 0:
            continue
        rounds = [own.p50 for own in record.rounds or () if own.p50]
        deviation = deviation_of(rounds)
        ops = float(record.work.ops or record.samples)
        return Part(name, summary.mean / 1e9, deviation, len(rounds), source_of(record), 1 / max(ops, 1.0))
    return None


def small_file(run: Run, what: str) -> tuple[Part, Part] | None:
    """One small file of :data:`FILE_BYTES`, all but its bytes, and its bytes; None where it was not measured.

    Args:
        run: Any run.
        what: `write`, `read-warm` or `read-cold`.
    """
    for record in _sound(run, FILES):
        if (
            record.point.operation != what
            or record.point.file_bytes != FILE_BYTES
            or (record.point.files or 0) < _MANY
            or record.point.sync is not None
        ):
            continue
        own = found(record)
        mean = positive(own, "mean_ns")
        means = own.at("block_means_ns")
        if mean is None:
            continue
        values = (
            [float(each) for each in means if isinstance(each, int | float)]
            if isinstance(means, list)
            else []
        )
        moving = sum(
            positive(phase, "mean_ns") or 0.0
            for phase in own.sections("phases")
            if phase.text("name") in {"read", "write"}
        )
        ops = float(record.work.ops or record.samples)
        common = (deviation_of(values), len(values), source_of(record), 1 / max(ops, 1.0))
        rest = max(mean - moving, mean / 10)
        return (
            Part(
                "creating and closing files" if what == "write" else "opening and closing files",
                rest / 1e9,
                *common,
            ),
            Part("their bytes", (mean - rest) / 1e9, *common),
        )
    return None


_MANY: Final = 1000


def memory_stream(run: Run, size: float) -> Part | None:
    """Reading memory from front to back with one thread: the largest array that was measured."""
    own = [
        record
        for record in _sound(run, BANDWIDTH)
        if record.point.operation == "read" and record.point.threads == 1 and record.point.working_set_bytes
    ]
    if not own:
        return None
    record = max(own, key=lambda each: each.point.working_set_bytes or 0)
    rounds = [each.p50 for each in record.rounds or () if each.p50]
    per_byte = _seconds_a_byte(record)
    if per_byte is None:
        return None
    return Part(
        "reading memory in order", size * per_byte, deviation_of(rounds), len(rounds), source_of(record)
    )


def _seconds_a_byte(record: Record) -> float | None:
    if record.value is None or record.value <= 0:
        return None
    if record.unit == "bytes_per_s":
        return 1 / record.value
    return None


def memory_pokes(run: Run, size: float) -> Part | None:
    """Reading a byte of each line of memory, each where the one before says."""
    own = [
        record
        for record in _sound(run, LOAD)
        if record.point.pages == "4k" and record.point.order == "random" and record.point.working_set_bytes
    ]
    if not own:
        return None
    record = max(own, key=lambda each: each.point.working_set_bytes or 0)
    summary = record.summary
    mean = (summary.mean if summary else None) or record.value
    if not mean:
        return None
    rounds = [each.p50 for each in record.rounds or () if each.p50]
    return Part(
        "reading memory at random",
        size / _LINE * mean / 1e9,
        deviation_of(rounds),
        len(rounds),
        source_of(record),
    )


def _sound(run: Run, probe: str) -> Iterator[Record]:
    """Measured figures of a probe that no failed proof discards."""
    records: Iterable[Record] = run.records
    for record in records:
        if record.probe == probe and record.value is not None and record.summary is not None:
            yield record
