"""What the slow operations of a run are made of, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latlab.text import clean
from latlab.units import format_count, format_ns, format_percent

if TYPE_CHECKING:
    from latlab.run.model import Record

UNEXPLAINED = "unexplained"
#: Fewer samples have no shares worth telling.
_FEWEST = 10


@dataclass(frozen=True, slots=True)
class Causes:
    """How many slow samples have which cause.

    Attributes:
        counts: By name, the most frequent first and what nothing explains last; names as people write them.
        samples: Their sum.
        level: The least that could be seen of any of them.
    """

    counts: tuple[tuple[str, int], ...]
    samples: int
    level: str

    def shares(self) -> str:
        """`61 % timer tick, 25 % host tick, 14 % unexplained`."""
        return ", ".join(f"{format_percent(count / self.samples)} {name}" for name, count in self.counts)


#: The rungs of evidence, least first.
LEVELS = ("time stamps", "counters", "interrupt flag", "rseq", "perf records", "tracepoints")
#: Causes whose names in files would say too little in a sentence.
_NAMES = {
    "interrupt": "some interrupt",
    "ipi": "interrupt from another CPU",
    "nmi": "NMI",
    "outside": "outside this kernel",
}
#: How people call the parts of an operation that waits; on a disk the waiting is the disk's.
_PARTS = {
    "waiting": "asleep until its request was answered",
    "run-queue-delay": "waiting for a CPU",
    "context-switch": "another thread on its CPU",
    "page-fault": "first touch of memory",
    "throttled": "the CPU quota",
}
_DISK = "the disk"
#: The waiting where requests were recorded: while the device had one, and the way there and back.
_DEVICE, _WAY = "device", "way"
#: Parts of the disk's slow operations that are told even when they are none.
_ASKED = ("waiting", "run-queue-delay", "page-fault")


_NOT_APART = "; the disk's part could not be divided into device and path"


@dataclass(frozen=True, slots=True)
class Parts:
    """What the time of slow operations that wait was spent with.

    Attributes:
        samples: How many there are.
        of: Among how many.
        least_ns: The shortest of them.
        points: How many points they are of; each has a threshold of its own.
        total_ns: Their time together.
        named: Name and ns of each part, the largest first.
        unexplained_ns: The rest: this thread's own work on its CPU, and what nothing explains.
        cpu_more_ns: At most so much more of it was waiting for a CPU; 0 where all of it is known.
        level: What could be seen.
        device_ns: Of the disk's part where requests were recorded, the time in which the device had one.
        way_ns: The rest of it: the software before, the interrupt, the wake-up.
    """

    samples: int
    of: int
    least_ns: float
    points: int
    total_ns: float
    named: tuple[tuple[str, float], ...]
    unexplained_ns: float
    cpu_more_ns: float
    level: str
    device_ns: float = 0.0
    way_ns: float = 0.0

    @property
    def text(self) -> str:
        """One sentence: how slow, how many, and what of their time was whose."""
        shares = [f"{format_percent(ns / self.total_ns)} {name}" for name, ns in self.named]
        shares.append(f"{format_percent(self.unexplained_ns / self.total_ns)} own work or unexplained")
        more = (
            f"; up to {format_percent(self.cpu_more_ns / self.total_ns)} more of it was waiting for a CPU"
            if self.cpu_more_ns > 0.005 * self.total_ns
            else ""
        )
        slowest = (
            f"The slowest {format_count(self.samples)} of {format_count(self.of)} took"
            f" {format_ns(self.least_ns)} or longer"
            if self.points == 1
            else f"The slowest of each of {format_count(self.points)} points, {format_count(self.samples)} of"
            f" {format_count(self.of)} operations"
        )
        return f"{slowest}; of their time: {', '.join(shares)}{more} (seen by {self.level}){self._apart}."

    @property
    def _apart(self) -> str:
        """What the disk's part was, where that is known."""
        seen = self.device_ns + self.way_ns
        if seen > 0:
            device = format_percent(self.device_ns / seen)
            way = format_percent(self.way_ns / seen)
            return (
                f"; of the disk's part, where requests were recorded, {device} was the device and "
                f"{way} the path to it and back"
            )
        if any(name == _DISK for name, _ in self.named):
            return _NOT_APART
        return ""


def slow_parts(records: Iterable[Record]) -> Parts | None:
    """Parts of the slow operations of records that wait, taken together.

    None where fewer than ten are known.
    """
    named: dict[str, float] = {}
    levels = set()
    samples = of = points = 0
    total = more = 0.0
    least = float("inf")
    on_disk = True
    for record in records:
        causes = record.tail_causes
        if causes is None or not causes.parts:
            continue
        counted = sum(row.count for row in causes.causes)
        if not counted:
            continue
        levels.add(causes.level)
        samples += counted
        of += record.samples
        points += 1
        total += sum(row.ns for row in causes.causes)
        least = min(least, causes.threshold_ns)
        on_disk &= record.probe.startswith("storage.")
        for part in causes.parts:
            named[part.cause] = named.get(part.cause, 0.0) + part.ns
            more += part.at_most_more_ns or 0.0
    if samples < _FEWEST or not 0 < total < float("inf"):
        return None
    for cause in _ASKED if on_disk else ():
        named.setdefault(cause, 0.0)
    device, way = named.pop(_DEVICE, 0.0), named.pop(_WAY, 0.0)
    if device + way > 0:
        named["waiting"] = named.get("waiting", 0.0) + device + way
    rows = sorted(named.items(), key=lambda row: -row[1])
    return Parts(
        samples=samples,
        of=of,
        least_ns=least,
        points=points,
        total_ns=total,
        named=tuple((_part(cause, on_disk=on_disk), ns) for cause, ns in rows if ns > 0 or cause in _ASKED),
        unexplained_ns=max(total - sum(named.values()), 0.0),
        cpu_more_ns=min(more, total),
        level=_least(levels),
        device_ns=device,
        way_ns=way,
    )


def _part(cause: str, *, on_disk: bool) -> str:
    if on_disk and cause == "waiting":
        return _DISK
    return _PARTS.get(cause) or clean(cause, most=40).replace("-", " ")


def _least(levels: set[str]) -> str:
    known = [level for level in LEVELS if level in levels]
    return known[0] if known else clean(min(levels), most=40)


def slow_causes(records: Iterable[Record], least_ns: float) -> Causes | None:
    """Causes of the time-stamped samples of at least `least_ns`.

    None where fewer than ten were kept, or where causes were not looked for in all of these records: shares
    of some of them would be read as shares of all.
    """
    counts: Counter[str] = Counter()
    levels = set()
    for record in records:
        if record.tail_causes is None:
            return None
        levels.add(record.tail_causes.level)
        counts.update(
            clean(sample.cause or UNEXPLAINED, most=40) for sample in record.tail if sample.value >= least_ns
        )
    samples = counts.total()
    if samples < _FEWEST:
        return None
    named = [(name, count) for name, count in counts.most_common() if name != UNEXPLAINED]
    # Never folded away, and never left out: that nothing stays unexplained is an answer too.
    rows = [*named, (UNEXPLAINED, counts[UNEXPLAINED])]
    return Causes(
        counts=tuple((_NAMES.get(name) or name.replace("-", " "), count) for name, count in rows),
        samples=samples,
        level=_least(levels),
    )
