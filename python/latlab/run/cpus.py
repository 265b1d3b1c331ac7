"""Figures that another CPU has otherwise, in words.

Which these are and why is decided where figures are made: the core's fold, `fold/cpus.rs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.run.rung import on_cpus
from latlab.text import listed

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run

#: Why the fastest CPU differs from the slowest, and what to do, by what the fold names it.
_REASONS: Final = {
    "disk_interrupts": (
        "CPU {fast} handles the disk's interrupts",
        "pin the program to CPU {fast}, or move the interrupts where the driver allows it",
    ),
    "core_kind": ("The CPUs are of different kinds", "pin the program to CPU {fast} or one of its kind"),
    "numa_node": ("The CPUs belong to different NUMA nodes", "pin the program to the node of CPU {fast}"),
    "last_cache": ("The CPUs do not share their last-level cache", "pin the program to CPU {fast}"),
}
_UNKNOWN: Final = ("The reason is unknown", "repeat the run before pinning the program to CPU {fast}")


@dataclass(frozen=True, slots=True)
class Differing:
    """The figure that differs most between CPUs, of the ladder if one does, and how many more do.

    Attributes:
        figures: `70.1 µs on CPU 1, 98.0 µs on CPU 0`.
        named: `disk, random 4 KiB read`.
        more: `; 4 more of storage`; empty where no other figure differs.
        why: `CPU 1 handles the disk's interrupts`.
        remedy: `pin the program to CPU 1`.
        ratio: How many times as long the slowest CPU takes.
    """

    figures: str
    named: str
    more: str
    why: str
    remedy: str
    ratio: float

    @property
    def title(self) -> str:
        """In a line."""
        return f"times depend on the CPU: {self.figures} ({self.named}{self.more})"


def differing(run: Run) -> Differing | None:
    """What to report of a run's CPUs; None where they differ within run-to-run variation."""
    apart = [record for record in run.records if record.apart]
    if not apart:
        return None
    rungs = {rung.by_cpu: rung.level for rung in run.ladder() if rung.by_cpu}
    first = max(apart, key=lambda record: (record.apart in rungs, _ratio(record)))
    fast = first.apart[0].cpu
    why, remedy = _REASONS.get(first.spread.differ or "" if first.spread else "", _UNKNOWN)
    tiers = [record.probe.partition(".")[0] for record in apart if record is not first]
    counts = [f"{tiers.count(tier)} more of {tier}" for tier in dict.fromkeys(tiers)]
    return Differing(
        figures=on_cpus(first.apart, first.unit),
        named=rungs.get(first.apart, first.label),
        more=f"; {listed(counts)}" if counts else "",
        why=why.format(fast=fast),
        remedy=remedy.format(fast=fast),
        ratio=_ratio(first),
    )


def _ratio(record: Record) -> float:
    ends = [own.p50 for own in record.apart]
    return max(ends) / min(ends)
