"""What interrupted a CPU, in words, and what that does to a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from latlab import units
from latlab.run.noise import CauseRow, Explained, Noise, PeriodicInterference, Rung
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run

PROBE: Final = "kernel.noise"
UNEXPLAINED: Final = "unexplained"
NOTICED_NS: Final = 10_000.0
"""Gaps of this length and more are what people notice."""
_WINDOW_NS: Final = 20_000.0
CAUSES: Final = {
    "context-switch": "context switch",
    "throttled": "CPU quota used up",
    "run-queue-delay": "waiting for a CPU",
    "waiting": "waiting for an answer",
    "page-fault": "page fault",
    "timer-tick": "timer tick",
    "ipi": "interrupt from another CPU",
    "device-interrupt": "device interrupt",
    "interrupt": "some interrupt",
    "softirq": "softirq",
    "nmi": "NMI",
    "host-tick": "host's tick",
    "periodic": "periodic",
    "outside": "outside this kernel",
    UNEXPLAINED: "unexplained",
    "busy-stall": "busy stall",
}
EVIDENCE: Final = {
    "switch-record": "switch records",
    "fault-record": "fault records",
    "tracepoint": "tracepoints",
    "rseq-flag": "rseq flag",
    "interrupt-flag": "interrupt flag",
    "comb": "its period",
    "quota-counter": "quota counter",
}
#: Of the time in gaps; less is not worth a word, but for what nothing explains.
_SMALL = 0.005
#: Nobody listens for longer, and no rate or length is larger: what is, is damage.
_LONGEST_S, _LARGEST = 1e5, 1e15


@dataclass(frozen=True, slots=True)
class Standing:
    """A cause that comes as regularly as a clock, whatever runs.

    Attributes:
        cause: Its name, as in files.
        hz: How often a second.
        gap_ns: What it usually takes.
    """

    cause: str
    hz: float
    gap_ns: float

    @property
    def share(self) -> float:
        """Of all time: by so much it makes every mean longer."""
        return min(1.0, self.hz * self.gap_ns / 1e9)

    def one_in(self, operation_ns: float) -> float:
        """One of so many operations of this length meets it, in three digits; at least 1."""
        return max(1.0, float(f"{1e9 / (self.hz * operation_ns):.3g}"))

    def touches_from_ns(self, quantile: float) -> float:
        """Operations of this length or more have it in their `quantile`."""
        return (1 - quantile) / self.hz * 1e9


def cause_name(cause: str) -> str:
    """`timer tick`."""
    return CAUSES.get(cause) or clean(cause.replace("-", " "), most=40)


def heard_in(run: Run) -> tuple[Record, Noise] | None:
    """The record of a run that listened, with its figures; None where nothing was found."""
    for record in reversed(run.records):
        if record.probe != PROBE or record.kind != "per_op" or record.value is None:
            continue
        try:
            noise = msgspec.convert(record.findings, Noise)
        except msgspec.ValidationError:
            continue
        if _can_be(noise):
            return record, noise
    return None


def _can_be(noise: Noise) -> bool:
    sizes = [noise.seconds, noise.gaps_ns, noise.gaps, noise.threshold_ns]
    for row in noise.causes:
        sizes += [row.count, row.per_s, row.ns_per_s, row.median_ns, row.largest_ns, row.share_time]
    for each in _periodic_of(noise):
        sizes += [each.hz, each.period_ns, each.typical_ns, each.ticks, each.hit]
    for explained in noise.explained:
        sizes += [explained.gaps, explained.attributed, explained.by_period]
    return 0 < noise.seconds < _LONGEST_S and all(
        math.isfinite(size) and 0 <= size < _LARGEST for size in sizes
    )


def verdict(noise: Noise) -> str:
    """How often and for which share of its time the CPU was interrupted, and by what."""
    length = units.format_ns_as_asked(noise.threshold_ns)
    if not noise.gaps:
        return f"CPU {noise.cpu} had no gap of {length} or more in {units.format_seconds(noise.seconds)}."
    shares = ", ".join(
        f"{percent(row.share_time)} {cause_name(row.cause)}"
        for row in noise.causes
        if row.share_time >= _SMALL or row.cause == UNEXPLAINED
    )
    return (
        f"CPU {noise.cpu} was interrupted {rate(noise.gaps / noise.seconds)} times a second"
        f" for {length} or more, {percent(noise.lost_share)} of its time: {shares}."
    )


def with_unexplained(rows: tuple[CauseRow, ...]) -> tuple[CauseRow, ...]:
    """What nothing explains is among them even when there is none of it."""
    if any(row.cause == UNEXPLAINED for row in rows):
        return rows
    return (*rows, CauseRow(UNEXPLAINED, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))


def evidence_of(row: CauseRow) -> str:
    """What says that this was the cause."""
    return ", ".join(EVIDENCE.get(name, name) for name in row.evidence) or "none"


def seen_by(levels: Iterable[Rung]) -> str:
    """The evidence that there was, most first."""
    return ", ".join(reversed([rung.level for rung in levels if rung.available]))


def with_causes(explained: Iterable[Explained]) -> str:
    """How many of the noticeable gaps have a cause; empty where there was none.

    `of 430 gaps of 10 µs or more, 94.1 % have a cause, 27 % by their period alone`
    """
    row = next((row for row in explained if row.at_least_ns == NOTICED_NS and row.gaps), None)
    if row is None:
        return ""
    how = ""
    if row.by_period_interrupted:
        how = (
            f", {percent(row.by_period / row.gaps)} by their period"
            f" (an interrupt of this kernel in {percent(row.by_period_interrupted / row.gaps)})"
        )
    elif row.by_period:
        how = f", {percent(row.by_period / row.gaps)} by their period alone"
    if row.by_interrupt:
        how += f", {percent(row.by_interrupt / row.gaps)} some interrupt by the interrupt flag alone"
    if row.outside:
        how += f", {percent(row.outside / row.gaps)} outside this kernel by the same flag"
    return (
        f"of {row.gaps:,} gaps of {units.format_ns_as_asked(row.at_least_ns)} or more,"
        f" {percent(row.attributed / row.gaps, down=True)} have a cause{how}"
    )


def standing_causes(noise: Noise) -> list[Standing]:
    """What comes regularly, most time first.

    Where root's tracepoints name the ticks one by one, their period is that of the same gaps judged without
    them.
    """
    found = [
        Standing(each.cause, each.hz, each.typical_ns)
        for each in _periodic_of(noise)
        if each.hz > 0 and each.typical_ns > 0
    ]
    return sorted(found, key=lambda one: -one.share)


def all_gaps(noise: Noise) -> Standing | None:
    """All of them as one cause with their mean; None where there was none."""
    if not noise.gaps:
        return None
    return Standing("all gaps", noise.gaps / noise.seconds, noise.gaps_ns / noise.gaps)


def _periodic_of(noise: Noise) -> tuple[PeriodicInterference, ...]:
    return noise.periodic if noise.unprivileged is None else noise.unprivileged.periodic


def effect(one: Standing) -> str:
    """What periodic interference does to figures, in one sentence."""
    from_ns = units.format_ns(one.touches_from_ns(0.999), digits=2)
    return (
        f"{cause_name(one.cause)}, {rate(one.hz)} times a second for "
        f"{units.format_ns(one.gap_ns, digits=2)}: affects 1 in "
        f"{units.format_count(one.one_in(100.0))} operations of 100 ns, the p99.9 of operations of "
        f"{from_ns} or more, and {percent(one.share)} of every mean"
    )


def effect_on_windows(one: Standing) -> str:
    """What it does to means over windows of 20 µs, which have no tail of single operations."""
    times = units.format_count(one.one_in(_WINDOW_NS))
    return f"1 in {times} windows of 20 µs that are timed as a whole, by {percent(one.gap_ns / _WINDOW_NS)}"


def rate(per_s: float) -> str:
    """A number a second, with tenths while they matter."""
    return f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.1f}"  # noqa: PLR2004 - see above


def percent(share: float, *, down: bool = False) -> str:
    """`61 %`, `0.3 %`. Rounded `down` where rounding up would claim more than there is: 99.96 is not 100."""
    value = 100 * share
    if value == 0:
        return "0 %"
    if value < 1:
        return f"{value:.2g} %"
    if down:
        value = int(value * 10) / 10
        return f"{value:.0f} %" if value == int(value) else f"{value:.1f} %"
    return f"{value:.0f} %"
