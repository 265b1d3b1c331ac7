"""What some jobs of a program would take on this machine, by the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.topics.storage_blocks import READ, lines
from latlab.units import format_ns, format_seconds, format_span

if TYPE_CHECKING:
    from latlab.run.run import Run
    from latlab.run.rung import Rung

_BYTES: Final = 30e9
_FILES: Final = 100_000
_CALLS: Final = 1_000_000
_LONG_S: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    Attributes:
        what: `reading 30 GB from the disk`.
        low_s: What it takes at least, seconds: by the fastest of what was repeated.
        high_s: By the slowest.
    """

    what: str
    low_s: float
    high_s: float

    @property
    def time(self) -> str:
        """`11.2–12.6 s`."""
        if self.high_s >= _LONG_S:
            low, high = format_seconds(self.low_s), format_seconds(self.high_s)
            return low if low == high else f"{low} – {high}"
        low, high = format_ns(self.low_s * 1e9), format_ns(self.high_s * 1e9)
        return low if low == high else format_span(self.low_s * 1e9, self.high_s * 1e9)


def jobs(run: Run, rungs: Mapping[str, Rung]) -> Iterator[Job]:
    """Those whose figures the run has.

    Args:
        run: Any run.
        rungs: Its ladder, by key.
    """
    curves = lines(run, READ)
    # Through an empty page cache, as most programs read; where nobody could empty it, past the cache.
    spots = curves.get("cold cache") or curves.get("direct")
    if spots:
        best = max(spots, key=lambda spot: spot.value)
        yield Job("reading 30 GB from the disk", _BYTES / best.high, _BYTES / best.low)
    for record in run.select("storage.files", engine="psync", operation="write", files=1000):
        means = record.finding("block_means_ns")
        found = [mean for mean in means if isinstance(mean, int | float)] if isinstance(means, list) else []
        if record.point.sync is None and record.value is not None and found:
            yield Job(
                "writing 100,000 files of 10 kB, not flushed,",
                *(_FILES * end / 1e9 for end in (min(found), max(found))),
            )
    call = rungs.get("syscall")
    if call is not None and call.latency_p50_ns is not None:
        low, high = call.interval or (call.latency_p50_ns, call.latency_p50_ns)
        yield Job("a million system calls", _CALLS * low / 1e9, _CALLS * high / 1e9)
