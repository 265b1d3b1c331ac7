"""What stands first of a run, on a screen and in a report: how far to trust it, and what it means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from latlab.run.textbook import USUAL
from latlab.topics import ladder
from latlab.units import (
    format_bytes,
    format_count,
    format_factor,
    format_ns,
    format_percent,
    format_rate,
    format_span,
)
from latlab.view.topic import Chart

if TYPE_CHECKING:
    from latlab.run.run import Run
    from latlab.run.rung import Rung

#: What stands on page one of a terminal, by the ladder's keys; a level has its own name.
ROWS: Final = {
    "L1": "",
    "L2": "",
    "L3": "",
    "RAM": "",
    "malloc": "malloc + free",
    "syscall": "system call",
    "page-fault": "page fault",
    "context-switch": "context switch",
    "thread": "start of a thread",
    "loopback": "round trip on loopback",
    "file-create": "new small file",
    "disk-read": "disk, random 4 KiB read",
    "disk-sync": "disk, durable 4 KiB write",
}
#: The operations on the first screen of a report, with names that a phone has room for.
_TEN: Final = {
    "syscall": "system call",
    "page-fault": "page fault",
    "context-switch": "context switch",
    "loopback": "loopback round trip",
    "disk-read": "disk read, 4 KiB",
    "disk-sync": "durable write, 4 KiB",
}
#: Where more blocks than this were disturbed, figures may be the disturbance's.
_NOISY: Final = 0.05
#: Ranges as shares of their figures: what is good, and what says little.
_NARROW: Final = 0.1
_WIDE: Final = 0.5
#: A figure departs from the published one by so much where it is named; so many are.
_APART: Final = 1.5
_NAMED: Final = 2
#: Of a sentence on a screen.
_WORDS: Final = 25


def facts(run: Run) -> tuple[str, ...]:
    """Who was measured, when and how: short phrases."""
    started = run.header.started.replace("T", " ")[:16]
    return (*machine_facts(run), started, f"profile {run.settings.profile}", run.made_of)


def machine_facts(run: Run) -> tuple[str, ...]:
    """Who was measured: short phrases."""
    machine = run.machine
    cpu, arch = machine.text("cpu.model_name"), machine.text("cpu.microarchitecture")
    cpus = machine.integer("cpu.logical_cpus")
    memory = machine.integer("memory.total_bytes")
    virtual = machine.text("virtualisation.hypervisor") if machine.flag("virtualisation.guest") else None
    system = " ".join(part for part in (machine.text("os.name"), machine.text("os.kernel_release")) if part)
    found = [
        f"{cpu or 'unknown processor'}{f' ({arch})' if arch else ''}",
        f"{cpus} {'CPU' if cpus == 1 else 'CPUs'}" if cpus else "",
        format_bytes(memory) if memory else "",
        f"{system} in a virtual machine ({virtual})" if virtual else system,
    ]
    return tuple(fact for fact in found if fact)


def short(rung: Rung) -> str:
    """`RAM`, `context switch`."""
    return f"{ROWS[rung.key]} {rung.size_text}".rstrip() if ROWS.get(rung.key) else rung.short


def trust(run: Run, rungs: Sequence[Rung]) -> tuple[str, str]:
    """A verdict, by how wide the ranges are and by how many blocks something else disturbed, and why."""
    disturbed, blocks = run.disturbed_blocks
    if not blocks:
        return "Trust: unknown.", "Nothing was measured in blocks."
    share = disturbed / blocks
    widths = [
        (rung.interval[1] - rung.interval[0]) / rung.latency_p50_ns
        for rung in rungs
        if rung.interval is not None and rung.latency_p50_ns
    ]
    width = statistics.median(widths) if widths else None
    good = share <= _NOISY and width is not None and width <= _NARROW
    verdict = "good" if good else "poor" if width is not None and width > _WIDE else "usable with care"
    ranges = "No figure has a range" if width is None else f"Ranges are {format_percent(width)} wide (median)"
    text = f"{ranges}; {format_percent(share)} of the blocks were disturbed"
    names = [short(rung) for rung in rungs if "disturbed" in rung.flags]
    text += f", with them {', '.join(names)}" if 0 < len(names) <= _NAMED else ""
    return f"Trust: {verdict}.", f"{text}."


def beside(rungs: Sequence[Rung], year: int) -> str:
    """What departs most from the published figures of a year; empty where nothing does."""
    factors = {
        short(rung): rung.latency_p50_ns / rung.textbook_ns
        for rung in rungs
        if rung.latency_p50_ns and rung.textbook_ns
    }
    apart = sorted(factors.items(), key=lambda each: -abs(math.log(each[1])))
    parts = [
        f"{name} {_times(factor, 'slower', 'faster')}"
        for name, factor in apart[:_NAMED]
        if max(factor, 1 / factor) >= _APART
    ]
    return f"Compared with the textbook of {year}: {'; '.join(parts)}." if parts else ""


def parted(text: str) -> tuple[str, str]:
    """What fits on a screen and the rest: the first sentence, of a long one what stands before `: `."""
    first, _, rest = text.partition(". ")
    if len(first.split()) <= _WORDS:
        return f"{first.removesuffix('.')}.", rest
    first, _, rest = text.partition(": ")
    return (f"{first}.", f"{rest[:1].upper()}{rest[1:]}") if rest else (text, "")


def _times(factor: float, more: str, less: str) -> str:
    return f"{format_factor(max(factor, 1 / factor), 2)} times {more if factor > 1 else less}"


# ------------------------------------------------------------------------------------------------- four cards


@dataclass(frozen=True, slots=True)
class Card:
    """One figure, large.

    Attributes:
        title: `RAM latency`.
        figure: `98.5 ns`; `–` where it was not measured.
        ends: Its range, `88.6–110 ns`, or why it has none.
        beside: `3.0 times faster than the textbook's 150 µs (2012)`; empty where there is no such figure.
        meaning: What it means for a program; of a figure that was not measured, why.
    """

    title: str
    figure: str
    ends: str
    beside: str
    meaning: str


def cards(rungs: Mapping[str, Rung]) -> Iterator[Card]:
    """Of a ladder: RAM latency, RAM bandwidth, a random read of the disk and a durable write."""
    yield _timed("RAM latency", rungs.get("RAM"), 1_000_000, "Following {} pointers through RAM takes {}.")
    yield _bandwidth(rungs.get("RAM"))
    yield _timed(
        "Random disk read, 4 KiB", rungs.get("disk-read"), 10_000, "{} reads, one after another, take {}."
    )
    yield _timed(
        "Durable write, 4 KiB",
        rungs.get("disk-sync"),
        1_000,
        "Saving {} records durably, one by one, takes {}.",
    )


def _timed(title: str, rung: Rung | None, times: int, meaning: str) -> Card:
    if rung is None or rung.latency_p50_ns is None:
        return _missing(title, rung)
    value, published = rung.latency_p50_ns, rung.textbook_ns
    departs = published and _departs(value / published, "slower", "faster", format_ns(published, digits=2))
    ends = format_span(*rung.interval) if rung.interval else rung.why_no_interval
    low, high = (times * end for end in rung.interval or (value, value))
    taken = format_span(low, high) if low < high else format_ns(low, digits=2)
    return Card(title, format_ns(value), ends, departs or "", meaning.format(format_count(times), taken))


def _bandwidth(ram: Rung | None) -> Card:
    """Of one thread."""
    title = "RAM bandwidth, 1 thread"
    if ram is None or not ram.bandwidth:
        return _missing(title, None)
    published = USUAL.get("read_1mb_memory")
    usual = 1e6 / published * 1e9 if published else None
    departs = usual and _departs(ram.bandwidth / usual, "faster", "slower", format_rate(usual, digits=2))
    ends = format_span(*ram.bandwidth_ends, format_rate) if ram.bandwidth_ends else ram.why_no_interval
    low, high = (10e18 / end for end in reversed(ram.bandwidth_ends or (ram.bandwidth, ram.bandwidth)))
    seconds = format_span(low, high) if low < high else format_ns(low, digits=2)
    return Card(
        title, format_rate(ram.bandwidth), ends, departs or "", f"Reading 10 GB in memory takes {seconds}."
    )


def _missing(title: str, rung: Rung | None) -> Card:
    why = rung.note.removeprefix("not measured: ") if rung is not None else "it was not part of this run"
    return Card(title, "–", "", "", f"Not measured: {why}.")


def _departs(factor: float, more: str, less: str, published: str) -> str:
    textbook = f"the textbook's {published} ({USUAL.year})"
    near = max(factor, 1 / factor) < _APART
    return f"Like {textbook}" if near else f"{_times(factor, more, less)} than {textbook}"


# ------------------------------------------------------------------------------------------------ its picture


def _ten(run: Run) -> ladder.Shown | None:
    rungs = [
        rung for rung in ladder.bars(run) if rung.key in _TEN or (rung.key in ROWS and rung.group == "levels")
    ]
    named = [replace(rung, level=_TEN.get(rung.key, rung.short), size_text="") for rung in rungs]
    return ladder.Shown(named, rungs, [], legend=False) if rungs else None


def answer(run: Run) -> str:
    """The picture's title: `From 1.08 ns (L1) to 896 µs (durable write, 4 KiB): 830,000 times`."""
    found = _ten(run)
    times = {rung.level: rung.latency_p50_ns or 0.0 for rung in found.bars} if found else {}
    if len(times) < 2:  # noqa: PLR2004 - nothing to compare
        return FIRST.title
    low, high = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
    factor = format_count(float(f"{times[high] / times[low]:.2g}"))
    return f"From {format_ns(times[low])} ({low}) to {format_ns(times[high])} ({high}): {factor} times"


FIRST: Final = Chart(
    id="first",
    title="What does one access cost here?",
    caption=f"Each grid line is ten times the one before. Diamond: the textbook of {USUAL.year}. "
    "Lines reach to the slow end: of individual operations (circle), or of means over many (square).",
    probe="memory.load.dependent",
    measured=_ten,
    picture=ladder.picture,
    table=ladder.table,
)
