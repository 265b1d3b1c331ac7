"""Which records have a long tail, for all that is shown of it."""

from __future__ import annotations

from typing import Final

from latlab.run.disturbances import PROBE as LISTENING
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.view.distribution import PROBE as POKES
from latlab.view.distribution import size_name
from latlab.view.points import drawable

#: Fewer operations have no tail to speak of: p99 has ten samples beyond it.
LEAST_SAMPLES: Final = 1_000


def record_of(run: Run) -> Record | None:
    """The read pokes of the largest array; else the record with most operations."""
    records = long_ones(run)
    pokes = [r for r in records if r.probe == POKES and r.point.operation == "read"]
    if pokes:
        return max(pokes, key=lambda r: r.point.working_set_bytes or 0)
    return max(records, key=lambda r: r.samples, default=None)


def long_ones(run: Run) -> list[Record]:
    """Records of single operations, enough of them for a tail, whose proofs held.

    Gaps of a thread that listens are no operations: nobody asked for them.
    """
    return [
        record
        for record in run.records
        if record.kind == "per_op"
        and record.probe != LISTENING
        and record.histogram is not None
        and record.samples >= LEAST_SAMPLES
        and record.value is not None
        and record.summary is not None
        and drawable(record.summary.mean)
    ]


def name_of(record: Record) -> str:
    """`read pokes in 1 GB`, or the record's label."""
    if record.probe == POKES:
        return f"{record.point.operation or ''} pokes in {size_name(record)}".replace(
            "pokes in empty poke", "empty pokes"
        ).strip()
    return record.label


def why_absent(run: Run) -> str:
    """Why there is no tail to show."""
    reason = next((r.error.text for r in run.records if r.probe == POKES and r.error is not None), None)
    return reason or f"no record of this run holds {LEAST_SAMPLES:,} single operations"


def steps_between(left: float, right: float, number: int) -> tuple[float, ...]:
    """Values evenly on a logarithmic axis, both ends included."""
    return tuple(left * (right / left) ** (step / number) for step in range(number + 1))
