"""What the charts of a disk have in common."""

from __future__ import annotations

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes
from latlab.view.points import Spot, drawable, is_disturbed, with_figures

#: How a block travels, by the point's `path`: the word on a chart.
PATHS = {
    "direct": "direct",
    "buffered-cold": "cold cache",
    "buffered-warm": "warm cache",
    "buffered-fsync-each": "fsync each",
    "buffered-fsync-end": "fsync at the end",
    "buffered": "never flushed",
}
#: What a reader who does not know these words is told.
PATHS_EXPLAINED = (
    "direct: past the page cache; cold: through it, with nothing of the file in it; warm: answered by it;"
    " fsync: made durable after each block, or once at the end"
)


def timed(run: Run, probe: str) -> list[Record]:
    """The probe's records with a figure in ns, one by one or in windows."""
    records = [*with_figures(run, probe, "per_op"), *with_figures(run, probe, "batch_mean")]
    return [record for record in records if record.unit == "ns"]


def path_name(path: str | None) -> str:
    """A path as charts call it."""
    return PATHS.get(path or "", path or "?")


def latency(record: Record, x: float, quantile: str = "p50") -> Spot | None:
    """One quantile of a record as a point of a curve, ns; nothing when it had too few samples."""
    if record.summary is None:
        return None
    value = getattr(record.summary, quantile)
    if not drawable(value):
        return None
    own = record.interval if quantile == "p50" else record.summary.intervals.get(quantile)
    ends = [value, *filter(drawable, own or ())]
    return Spot(x, value, min(ends), max(ends), record.samples, is_disturbed(record))


def file_name(size: int | None) -> str:
    """A file by its size, decimal where it was asked for so: `1 GB`."""
    if not size:
        return "empty file (no I/O)"
    return format_bytes(size, decimal=size % 1000 == 0)
