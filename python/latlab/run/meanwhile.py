"""What else happened while a run lasted: what interrupted its thread, and what other programs did.

The first is counted in the run's windows (see `Observed`); for the second the system's counters are read
before and after the run, and what the run itself used is taken off.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from latlab.run.values import Model

if TYPE_CHECKING:
    from latlab.run.machine import Machine
    from latlab.run.model import Record

#: Windows that took less time together have no shares.
_LEAST_NS: Final = 0.1e9
#: The unit of /proc/diskstats, and of blocks in getrusage(2).
_SECTOR_BYTES: Final = 512
#: Of the first line of /proc/stat: user (with guests), nice, system, and interrupts of both kinds.
_BUSY: Final = (1, 2, 3, 6, 7)


class Meanwhile(Model, frozen=True, kw_only=True, omit_defaults=True):
    """What else happened while a run lasted; None = could not be read.

    Attributes:
        delayed: Share of the time of windows in which the measuring thread was ready and waited for a CPU.
        throttled: Share of that time in which a CPU quota stopped it.
        stolen: Share of that time that the host took from its CPU.
        core_ghz: Median frequency of the core.
        other_cpus: CPUs that other programs kept busy, mean over the run.
        other_disk_bytes_per_s: What other programs read from and wrote to the measured disk.
    """

    delayed: float | None = None
    throttled: float | None = None
    stolen: float | None = None
    core_ghz: float | None = None
    other_cpus: float | None = None
    other_disk_bytes_per_s: float | None = None

    @property
    def interrupted(self) -> float | None:
        """Share of the time of windows in which the thread was interrupted, by all of these."""
        # Whom a quota stops waits for a CPU too, for some kernels.
        waited = max((own for own in (self.delayed, self.throttled) if own is not None), default=None)
        if waited is None and self.stolen is None:
            return None
        return min((waited or 0.0) + (self.stolen or 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Counters:
    """What the system has counted.

    Attributes:
        at_s: When, on the monotonic clock.
        busy_s: CPU time of all programs; None where it is not counted.
        own_s: That of this process and of its children that have ended.
        sectors: What was read from and written to each disk, by its name.
        own_sectors: That of this process and its children.
    """

    at_s: float
    busy_s: float | None
    own_s: float
    sectors: Mapping[str, int]
    own_sectors: int

    @classmethod
    def now(cls, proc: Path = Path("/proc")) -> Self:
        """Reads them; takes a fraction of a millisecond."""
        used = os.times()
        return cls(
            time.monotonic(),
            _busy_s(_text(proc / "stat")),
            used.user + used.system + used.children_user + used.children_system,
            _sectors(_text(proc / "diskstats")),
            _own_sectors(),
        )


def meanwhile(
    lines: Sequence[Record], machine: Machine, before: Counters, after: Counters
) -> Meanwhile | None:
    """What else happened between two readings; None where nothing of it is known.

    Args:
        lines: What was measured meanwhile.
        machine: Where.
        before: The counters when it began.
        after: The counters when it had ended.
    """
    clocks = [block.core_ghz for line in lines for block in line.blocks if block.core_ghz is not None]
    seconds = after.at_s - before.at_s
    disk = machine.text("dir.file_system.disk") or ""
    found = Meanwhile(
        delayed=_share(lines, "run_queue_delay_ns"),
        throttled=_share(lines, "throttled_ns"),
        stolen=_share(lines, "steal_ns"),
        core_ghz=round(statistics.median(clocks), 3) if clocks else None,
        other_cpus=_rate(before.busy_s, after.busy_s, after.own_s - before.own_s, seconds, 3),
        other_disk_bytes_per_s=_rate(
            before.sectors.get(disk),
            after.sectors.get(disk),
            after.own_sectors - before.own_sectors,
            seconds / _SECTOR_BYTES,
            0,
        ),
    )
    return None if found == Meanwhile() else found


def _share(lines: Sequence[Record], name: str) -> float | None:
    """Of the time of windows in which one thread had to run."""
    known = [
        (value, sum(block.duration_ns for block in line.blocks))
        for line in lines
        if line.kind == "batch_mean"
        # Where it gives up its CPU, others work or it waits for a device.
        and (line.observed.voluntary_switches or 0) < len(line.blocks)
        and (value := getattr(line.observed, name)) is not None
    ]
    whole = sum(duration for _, duration in known)
    return min(round(sum(value for value, _ in known) / whole, 4), 1.0) if whole >= _LEAST_NS else None


def _rate(before: float | None, after: float | None, own: float, seconds: float, digits: int) -> float | None:
    """What others did, a second."""
    if before is None or after is None or seconds <= 0:
        return None
    return round(max(after - before - own, 0.0) / seconds, digits)


def _busy_s(stat: str) -> float | None:
    words = stat.partition("\n")[0].split()
    if len(words) <= max(_BUSY) or words[0] != "cpu":
        return None
    return sum(int(words[place]) for place in _BUSY) / os.sysconf("SC_CLK_TCK")


def _sectors(diskstats: str) -> dict[str, int]:
    # Major, minor, name; of reads: how many, merged, sectors, ms; the same of writes.
    rows = [line.split() for line in diskstats.splitlines()]
    return {row[2]: int(row[5]) + int(row[9]) for row in rows if len(row) > 9}  # noqa: PLR2004 - see above


def _own_sectors() -> int:
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return 0
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(own.ru_inblock + own.ru_oublock for own in both)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
