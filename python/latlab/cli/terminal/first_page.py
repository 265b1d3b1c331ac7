"""Page one of a run: how far to trust it, one table, what it means here. `latlab show -v` has the rest."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.ladder_table import (
    Column,
    access,
    fitting,
    level_and_size,
    plain_ns,
    short_level,
    span,
    tail_value,
)
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.topics.jobs import jobs
from latlab.topics.storage_blocks import READ, WRITE, lines
from latlab.topics.surprises import surprises
from latlab.units import format_factor, format_percent, format_rate

if TYPE_CHECKING:
    from latlab.run.run import Run
    from latlab.run.rung import Rung

#: What stands on page one, by the ladder's keys; a level with its size, an operation in short.
_ROWS: Final = {
    "L1": "",
    "L2": "",
    "L3": "",
    "RAM": "",
    "malloc": "malloc + free, 32 B",
    "syscall": "system call",
    "page-fault": "page fault",
    "context-switch": "context switch",
    "thread": "start of a thread",
    "loopback": "round trip on loopback",
    "file-create": "new small file",
    "disk-read": "disk, random 4 KiB read",
    "disk-sync": "disk, durable 4 KiB write",
}
_NONE: Final = "–"
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


def page_lines(run: Run, rungs: Sequence[Rung], screen: Screen, textbook_year: int) -> list[Line]:
    """The page without its header and without what was not measured.

    Args:
        run: Any run.
        rungs: Its ladder.
        screen: Where it is shown.
        textbook_year: Year of the published figures.
    """
    measured = {rung.key: rung for rung in rungs if rung.measured}
    shown = [measured[key] for key in _ROWS if key in measured] or list(measured.values())
    unusual = next((each.text for each in surprises(run) if each.id != "neighbours-were-heard"), "")
    first = [
        _trust(run, shown),
        _beside(shown, textbook_year),
        f"Unusual here: {_sentence(unusual)}" if unusual else "",
    ]
    last = [_rates(run, measured), _here(run, measured)]
    lines = [line for text in first for line in screen.wrapped(text, rest="  ")]
    if shown:
        ranges = "Range: 95 % interval over the rounds." if any(rung.interval for rung in shown) else ""
        note = f"{ranges} Textbook: {textbook_year}.".strip()
        lines += [Line(), *_table(shown, screen), styled(screen.fit(f" {note}"), "dim")]
    lines += [Line()] if any(last) else []
    return lines + [line for text in last for line in screen.wrapped(text, rest="  ")]


def _trust(run: Run, rungs: Sequence[Rung]) -> str:
    """A verdict by how wide the ranges are, and by how many blocks something else disturbed."""
    disturbed, blocks = run.disturbed_blocks
    if not blocks:
        return "Trust: unknown. Nothing was measured in blocks."
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
    told = f"Trust: {verdict}. {ranges}; {format_percent(share)} of the blocks were disturbed"
    names = [_short(rung) for rung in rungs if "disturbed" in rung.flags]
    return f"{told}, with them {', '.join(names)}." if 0 < len(names) <= _NAMED else f"{told}."


def _beside(rungs: Sequence[Rung], year: int) -> str:
    """What departs most from the published figures."""
    factors = {
        _short(rung): rung.latency_p50_ns / rung.textbook_ns
        for rung in rungs
        if rung.latency_p50_ns and rung.textbook_ns
    }
    apart = sorted(factors.items(), key=lambda each: -abs(math.log(each[1])))
    told = [
        f"{name} {format_factor(max(factor, 1 / factor), 2)} times {'slower' if factor > 1 else 'faster'}"
        for name, factor in apart[:_NAMED]
        if max(factor, 1 / factor) >= _APART
    ]
    return f"Beside the textbook of {year}: {'; '.join(told)}." if told else ""


def _sentence(text: str) -> str:
    """The first one; of a long one what stands before its details."""
    first = text.partition(". ")[0].removesuffix(".")
    return f"{first if len(first.split()) <= _WORDS else first.partition(': ')[0]}."


def _table(rungs: Sequence[Rung], screen: Screen) -> list[Line]:
    """Typical, range, slow, textbook."""
    columns = [
        Column(("", "operation"), _name, left=True),
        Column(("", "typical"), access),
        Column(("", "range"), span, given_up=1),
        Column(("slow", "(1 in 1,000)"), _slow, given_up=3),
        Column(("", "textbook"), lambda rung: plain_ns(rung.textbook_ns), given_up=2),
    ]
    return fitting(rungs, columns, screen)


def _short(rung: Rung) -> str:
    return _ROWS.get(rung.key) or short_level(rung)


def _name(rung: Rung) -> str:
    return _ROWS.get(rung.key) or level_and_size(rung)


def _slow(rung: Rung) -> str:
    """What one operation of a thousand takes at least; of means over windows that is not known."""
    tail = rung.tail
    if tail is None or tail.quantile != "p99.9" or tail.kind != "single accesses":
        return _NONE
    return tail_value(tail)


def _rates(run: Run, rungs: Mapping[str, Rung]) -> str:
    """What one thread moves in a second."""
    ram = rungs.get("RAM")
    told = [] if ram is None or not ram.bandwidth else [f"RAM read {format_rate(ram.bandwidth)}"]
    for probe, verb in ((READ, "read"), (WRITE, "written")):
        spots = lines(run, probe).get("direct")
        if spots:
            told.append(f"disk {verb} {format_rate(max(spot.value for spot in spots))}")
    return f"Bandwidth, one thread: {', '.join(told)}." if told else ""


def _here(run: Run, rungs: Mapping[str, Rung]) -> str:
    told = [f"{job.what} {job.time}" for job in jobs(run, rungs)]
    return f"Here: {'; '.join(told)}." if told else ""
