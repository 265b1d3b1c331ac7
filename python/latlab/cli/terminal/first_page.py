"""Page one of a run: how far to trust it, one table, what it means here. `latlab show -v` has the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.ladder_table import Column, access, fitting, level_and_size, plain_ns, span
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.topics.jobs import jobs
from latlab.topics.storage_blocks import READ, WRITE, lines
from latlab.topics.surprises import surprises
from latlab.units import format_ns, format_percent, format_rate

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


def page_lines(run: Run, rungs: Sequence[Rung], screen: Screen, textbook_year: int) -> list[Line]:
    """The page without its header and without what was not measured.

    Args:
        run: Any run.
        rungs: Its ladder.
        screen: Where it is shown.
        textbook_year: Year of the published figures.
    """
    by_key = {rung.key: rung for rung in rungs}
    disturbed = [_name(rung) for rung in by_key.values() if rung.key in _ROWS and "disturbed" in rung.flags]
    found = [*screen.wrapped(_trust(run, disturbed), rest="  ")]
    unusual = next((each.text for each in surprises(run) if each.id != "neighbours-were-heard"), "")
    if unusual:
        found += screen.wrapped(f"Unusual here: {_sentence(unusual)}", rest="  ")
    table = _table(by_key, screen)
    if table:
        ranges = any(rung.interval for rung in rungs)
        note = f"{'Range: 95 % interval over the rounds of this run. ' * ranges}Textbook: of {textbook_year}."
        dim = [styled(line.text, "dim") for line in screen.wrapped(note, first=" ", rest=" ")]
        found += [Line(), *table, *dim]
    facts = [_rates(run, by_key), _here(run, by_key)]
    found += [Line()] if any(facts) else []
    for fact in filter(None, facts):
        found += screen.wrapped(fact, rest="  ")
    return found


def _trust(run: Run, rows: Sequence[str]) -> str:
    """How many of its blocks something else disturbed, and which rows."""
    blocks = [block for record in run.records for block in record.blocks]
    disturbed = sum(block.disturbed for block in blocks)
    if not blocks:
        return "Trust: nothing was measured in blocks, so nothing says whether it was disturbed."
    share = disturbed / len(blocks)
    if share <= _NOISY:
        named = f", with them {', '.join(rows)}" if rows else ""
        return f"Trust: quiet. {disturbed:,} of {len(blocks):,} blocks were disturbed{named}."
    return (
        f"Trust: busy. Something else used the machine during {format_percent(share)} of the blocks,"
        " and figures may be higher than its own."
    )


def _sentence(text: str) -> str:
    return f"{text.partition('. ')[0].removesuffix('.')}."


def _table(rungs: Mapping[str, Rung], screen: Screen) -> list[Line]:
    """Typical, range, slow, textbook of what was measured; of all there is where nothing of page one was."""
    measured = {key: rung for key, rung in rungs.items() if rung.measured}
    shown = [measured[key] for key in _ROWS if key in measured] or list(measured.values())
    columns = [
        Column(("", "operation"), _name, left=True),
        Column(("", "typical"), access),
        Column(("", "range"), span, given_up=1),
        Column(("slow", "(1 in 1,000)"), _slow, given_up=3),
        Column(("", "textbook"), lambda rung: plain_ns(rung.textbook_ns), given_up=2),
    ]
    return fitting(shown, columns, screen)


def _name(rung: Rung) -> str:
    return _ROWS.get(rung.key) or level_and_size(rung)


def _slow(rung: Rung) -> str:
    """What one operation of a thousand takes at least; of means over windows that is not known."""
    tail = rung.tail
    if tail is None or tail.quantile != "p99.9" or tail.kind != "single accesses":
        return _NONE
    return f"{'≤' if tail.is_bound else ''}{format_ns(tail.value_ns)}"


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
