"""Who had a part in the slowest operations of a disk, as far as the counters beside them go.

The counters belong to a whole record and not to its slow operations: what they say is a bound. Time in
which the thread waited for a CPU (run queue, another guest, a quota) is at most that much of what the slow
ones took beyond the median; what is left is the disk's, or nobody's that was counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.units import format_percent

if TYPE_CHECKING:
    from latlab.run.model import Record

#: Slow operations that a word about them needs.
_LEAST_SLOW: Final = 5
_SHARES: Final = ((0.01, "1 %"), (0.1, "10 %"))


@dataclass(frozen=True, slots=True)
class Split:
    """What the slowest operations of a record took beyond its median, and who may have taken it.

    Attributes:
        slowest: Which: `1 %`, or `10 %` where there are too few operations.
        excess_ns: Their time beyond the median, together.
        cpu: Most of it that can have been waiting for a CPU, 0 to 1.
        faulted: Whether any page was touched for the first time, or fetched, meanwhile.
    """

    slowest: str
    excess_ns: float
    cpu: float
    faulted: bool

    @property
    def text(self) -> str:
        """One sentence, no more than is known."""
        touch = (
            "pages were touched for the first time meanwhile, for how long is not known"
            if self.faulted
            else "none of it was a first touch of memory"
        )
        if self.cpu >= 1:
            rest = "waiting for a CPU can explain all of it, so nothing is known of the disk's part"
        else:
            rest = (
                f"at most {format_percent(self.cpu)} was waiting for a CPU, at least"
                f" {format_percent(1 - self.cpu)} was the disk's or is unexplained"
            )
        return (
            f"Of what the slowest {self.slowest} took beyond the median, {rest}; {touch}"
            " (counted for all operations together, not for each)."
        )


def split(record: Record) -> Split | None:
    """None where operations overlap, are too few, or the counters could not be read."""
    seen, summary = record.observed, record.summary
    delay = seen.run_queue_delay_ns
    if (record.point.queue_depth or 1) != 1 or record.kind != "per_op" or record.value is None:
        return None
    if summary is None or delay is None or seen.minor_faults is None or seen.major_faults is None:
        return None
    chosen = next(((part, name) for part, name in _SHARES if part * record.samples >= _LEAST_SLOW), None)
    if chosen is None:
        return None
    left = int(chosen[0] * record.samples)
    excess = 0.0
    for low, high, count in reversed(record.buckets()):
        taken = min(left, count)
        excess += taken * max((low + high) / 2 - record.value, 0.0)
        left -= taken
        if not left:
            break
    if excess <= 0:
        return None
    waited = delay + (seen.steal_ns or 0) + (seen.throttled_ns or 0)
    return Split(chosen[1], excess, min(waited / excess, 1.0), seen.minor_faults + seen.major_faults > 0)
