"""Rules of plain sense that figures of a disk must keep, and what they break: a broken figure is no headline.

Some a probe knows by itself (`sanity` in its conclusions); those that need several probes are here. A rule
that a single point breaks (it names the point) stops the figures of that point and no others'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab import units
from latlab.run.findings import findings

if TYPE_CHECKING:
    from latlab.run.model import Machine, Record
    from latlab.run.run import Run

_DISK = "storage."
_DIRECT = "direct"
#: Ways of a block on which the device has to take part.
_AT_THE_DEVICE: Final = frozenset({"direct", "buffered-cold", "buffered-fsync-each", "buffered-fsync-end"})
_PAIRS: Final = (
    ("read", "storage.read.random", "storage.read.sequential"),
    ("write", "storage.write.random", "storage.write.sequential"),
)
#: Repeats on a busy machine lie so far apart; random blocks that are faster by more are not the disk's.
_FASTER: Final = 1.5
#: No device answers faster, ns; unwritten extents do, in 600 ns.
_FASTEST_DEVICE_NS: Final = 2_000.0
#: The halves of a point's repeats may differ so much.
_HALVES: Final = 2.0
#: Fewer repeats have no halves.
_LEAST_BLOCKS: Final = 6
#: Two figures that were measured apart never agree so well.
_EXACTLY: Final = 1e-6
#: So many block sizes, or their agreement is chance.
_EVERYWHERE: Final = 2


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that figures break.

    Attributes:
        probe: Whose figures.
        rule: What should hold.
        detail: The figures that say that it does not.
        point: The fields of the only point that it concerns; empty when all of the probe's figures are.
    """

    probe: str
    rule: str
    detail: str
    point: tuple[tuple[str, int | str], ...] = ()

    @property
    def text(self) -> str:
        """The rule with its figures."""
        return f"{self.rule}: {self.detail}"

    def concerns(self, record: Record) -> bool:
        """Whether a record's figures are among those that it stops."""
        return record.probe == self.probe and (not self.point or self.point == _fields(record))


def broken(run: Run) -> tuple[Broken, ...]:
    """All rules that a run's figures break, in the order of the rules; `Run.broken` finds them once."""
    return tuple(found for rule in _RULES for found in rule(run))


def broken_rules(run: Run, *probes: str) -> list[Broken]:
    """Those that concern any of these probes."""
    return [found for found in run.broken if found.probe in probes]


def stopped(run: Run, records: Iterable[Record]) -> list[Broken]:
    """Those that stop a headline made of these records."""
    wanted = list(records)
    return [found for found in run.broken if any(found.concerns(record) for record in wanted)]


# ------------------------------------------------------------------------------------------ what probes say


def _reported(run: Run) -> Iterator[Broken]:
    probes = dict.fromkeys(record.probe for record in run.records if record.kind == "derived")
    for probe in probes:
        for entry in findings(run, probe).sections("sanity"):
            if entry.flag("holds") is not False:
                continue
            point = entry.section("point")
            fields = tuple(
                (name, point[name]) for name in sorted(point) if isinstance(point[name], int | str)
            )
            yield Broken(probe, entry.text("rule") or "a rule", entry.text("detail") or "broken", fields)


# ---------------------------------------------------------------------------------------- across the probes


def _random_beats_sequential(run: Run) -> Iterator[Broken]:
    """One request at a time against one request at a time: several under way may well do more a second."""
    for verb, random_probe, in_order_probe in _PAIRS:
        in_order = _alone(run, in_order_probe)
        for size, record in _alone(run, random_probe).items():
            other = in_order.get(size)
            if other is None or not record.value or not other.value:
                continue
            apart = _ends(record)[1] < _ends(other)[0]
            if not apart or other.value < _FASTER * record.value:
                continue
            detail = (
                f"blocks of {units.format_bytes(size)}, direct, one at a time:"
                f" {units.format_ns(record.value)} at"
                f" random, {units.format_ns(other.value)} in order; something other than the disk answered"
            )
            rule = f"random {verb}s are not faster than sequential ones"
            yield Broken(random_probe, rule, detail, _fields(record))
            yield Broken(in_order_probe, rule, detail)


def _faster_than_a_device(run: Run) -> Iterator[Broken]:
    for record in _timed(run):
        if record.point.path == _DIRECT and record.value is not None and record.value < _FASTEST_DEVICE_NS:
            detail = f"{record.point.label()}: median {units.format_ns(record.value)}; only memory is so fast"
            yield Broken(record.probe, "a direct transfer takes device time", detail, _fields(record))


def _faster_than_its_link(run: Run) -> Iterator[Broken]:
    known = link(run)
    if known is None:
        return
    name, most = known
    for record, rate in _rates(run):
        if rate > most:
            detail = (
                f"{record.point.label()}: {units.format_rate(rate)} over {name}, which carries"
                f" {units.format_rate(most)}"
            )
            yield Broken(record.probe, "the disk is not faster than its link", detail, _fields(record))


def _faster_than_memory(run: Run) -> Iterator[Broken]:
    """What comes from a disk is written into memory first, what goes there is read from it."""
    reads = [
        record
        for record in run.records
        if record.probe == "memory.bandwidth"
        and record.point.operation == "read"
        and record.value is not None
    ]
    largest = max((record.point.working_set_bytes or 0 for record in reads), default=0)
    most = max(
        (record.value or 0.0 for record in reads if record.point.working_set_bytes == largest), default=0.0
    )
    if not most:
        return
    for record, rate in _rates(run):
        if rate > most:
            detail = (
                f"{record.point.label()}: {units.format_rate(rate)}; memory reads {units.format_rate(most)}"
            )
            yield Broken(record.probe, "the disk is not faster than memory", detail, _fields(record))


def _one_figure_under_two_names(run: Run) -> Iterator[Broken]:
    """Bandwidth over rate is exactly the block size everywhere only where one was computed from the other.

    Two phases that were measured apart differ in the fourth digit at least.
    """
    for verb, random_probe, in_order_probe in _PAIRS:
        rates = {size: _found(record, "rate_per_s") for size, record in _alone(run, random_probe).items()}
        bandwidths = {
            size: _found(record, "bytes_per_s") for size, record in _alone(run, in_order_probe).items()
        }
        both = [
            (size, bandwidth / rate)
            for size, bandwidth in bandwidths.items()
            if bandwidth and (rate := rates.get(size))
        ]
        if len(both) >= _EVERYWHERE and all(abs(ratio / size - 1) <= _EXACTLY for size, ratio in both):
            sizes = ", ".join(units.format_bytes(size) for size, _ in both)
            detail = f"bandwidth over {verb}s a second is exactly the block size at {sizes}"
            for probe in (random_probe, in_order_probe):
                yield Broken(probe, "bandwidth and operations a second are two measurements", detail)


def _first_unlike_second(run: Run) -> Iterator[Broken]:
    """The first half of a point's repeats against the second: a cache that filled, a first touch, a burst."""
    reported = {(found.probe, found.point) for found in _reported(run) if found.point}
    for record in _timed(run):
        quiet = [block for block in record.blocks if not block.disturbed] or list(record.blocks)
        quiet.sort(key=lambda block: block.at_ns)
        if record.point.path not in _AT_THE_DEVICE or len(quiet) < _LEAST_BLOCKS:
            continue
        half = len(quiet) // 2
        first, second = _middle(b.p50 for b in quiet[:half]), _middle(b.p50 for b in quiet[-half:])
        if not first or not second or 1 / _HALVES <= second / first <= _HALVES:
            continue
        if (record.probe, _fields(record)) in reported:
            continue
        detail = (
            f"{record.point.label()}: the first half of its repeats took {units.format_ns(first)} each, the"
            f" second {units.format_ns(second)}"
        )
        yield Broken(record.probe, "the first run is like the second", detail, _fields(record))


_RULES: Final[tuple[Callable[[Run], Iterator[Broken]], ...]] = (
    _reported,
    _random_beats_sequential,
    _faster_than_a_device,
    _faster_than_its_link,
    _faster_than_memory,
    _one_figure_under_two_names,
    _first_unlike_second,
)


# ------------------------------------------------------------------------------------------------- the link


def link(run: Run) -> tuple[str, float] | None:
    """What the measured disk hangs on, and the bytes a second that it carries; nothing where not known.

    A guest's links are emulated, whatever they say. Of a device made of others all links must be known.
    """
    machine = run.machine
    if machine.text("virtualisation.hypervisor"):
        return None
    name = machine.text("dir.file_system.disk")
    disks = {disk.text("name"): disk for disk in machine.sections("disks")}
    known = _links(disks.get(name), disks, 0) if name else []
    if not known or any(entry is None for entry in known):
        return None
    links = [entry for entry in known if entry is not None]
    return " and ".join(dict.fromkeys(text for text, _ in links)), sum(rate for _, rate in links)


#: Devices on devices on devices; more is damage.
_DEEPEST: Final = 4


def _links(
    disk: Machine | None, disks: dict[str | None, Machine], depth: int
) -> list[tuple[str, float] | None]:
    if disk is None or depth > _DEEPEST:
        return [None]
    if parts := disk.texts("made_of"):
        return [entry for part in parts for entry in _links(_holding(part, disks), disks, depth + 1)]
    text, rate = disk.text("link"), disk.number("link_bytes_per_s")
    return [(text, rate) if text and rate and rate > 0 else None]


def _holding(part: str, disks: dict[str | None, Machine]) -> Machine | None:
    """The disk of that name, or the one that has a partition of that name."""
    for name, disk in disks.items():
        if name == part or any(own.text("name") == part for own in disk.sections("partitions")):
            return disk
    return None


# ---------------------------------------------------------------------------------------------- the records


def _timed(run: Run) -> Iterator[Record]:
    for record in run.records:
        if (
            record.probe.startswith(_DISK)
            and record.kind == "per_op"
            and record.unit == "ns"
            and record.proved
        ):
            yield record


def _alone(run: Run, probe: str) -> dict[int, Record]:
    """The direct transfers of a probe with nothing else under way, by block size."""
    return {
        record.point.block_bytes: record
        for record in _timed(run)
        if record.probe == probe
        and record.point.path == _DIRECT
        and record.point.queue_depth in {None, 1}
        and record.point.block_bytes
        and record.value
    }


def _rates(run: Run) -> Iterator[tuple[Record, float]]:
    for record in _timed(run):
        rate = _found(record, "bytes_per_s")
        if rate and record.point.path in _AT_THE_DEVICE:
            yield record, rate


def _found(record: Record, name: str) -> float | None:
    value = record.findings.get(name) if isinstance(record.findings, dict) else None
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
    )


def _ends(record: Record) -> tuple[float, float]:
    """How far a point's repeats lie apart, ns."""
    value = record.value or 0.0
    between = record.summary.between_blocks if record.summary else None
    low, high = between or record.interval or (value, value)
    return min(low, value), max(high, value)


def _fields(record: Record) -> tuple[tuple[str, int | str], ...]:
    return tuple(sorted(record.point.fields().items()))


def _middle(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0.0
