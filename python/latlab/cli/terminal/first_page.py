"""Page one of a run: how far to trust it, one table, what it means here. `latlab show -v` has the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.ladder_table import (
    Column,
    access,
    fitting,
    plain_ns,
    span,
    tail_value,
)
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.predict import usual
from latlab.topics.front import ROWS, beside, parted, short, trust
from latlab.topics.storage_blocks import READ, WRITE, lines
from latlab.topics.surprises import surprises
from latlab.units import format_rate

if TYPE_CHECKING:
    from latlab.run.run import Run
    from latlab.run.rung import Rung

_NONE: Final = "–"


def page_lines(run: Run, rungs: Sequence[Rung], screen: Screen, textbook_year: int) -> list[Line]:
    """The page without its header and without what was not measured.

    Args:
        run: Any run.
        rungs: Its ladder.
        screen: Where it is shown.
        textbook_year: Year of the published figures.
    """
    measured = {rung.key: rung for rung in rungs if rung.measured}
    shown = [measured[key] for key in ROWS if key in measured] or list(measured.values())
    unusual = next((each.text for each in surprises(run) if each.id != "neighbours-were-heard"), "")
    first = [
        " ".join(trust(run, shown)),
        beside(shown, textbook_year),
        f"Unusual here: {parted(unusual)[0]}" if unusual else "",
    ]
    last = [_rates(run, measured), _here(run)]
    lines = [line for text in first for line in screen.wrapped(text, rest="  ")]
    if shown:
        ranges = "Range: 95 % interval over the rounds." if any(rung.interval for rung in shown) else ""
        note = f"{ranges} Textbook: {textbook_year}.".strip()
        lines += [Line(), *_table(shown, screen), styled(screen.fit(f" {note}"), "dim")]
    lines += [Line()] if any(last) else []
    return lines + [line for text in last for line in screen.wrapped(text, rest="  ")]


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


def _name(rung: Rung) -> str:
    return short(rung) if ROWS.get(rung.key) else rung.name


def _slow(rung: Rung) -> str:
    """What one operation of a thousand takes at least; of means over windows that is not known."""
    tail = rung.tail
    if tail is None or tail.quantile != "p99.9" or tail.kind != "single accesses":
        return _NONE
    return tail_value(tail)


def _rates(run: Run, rungs: Mapping[str, Rung]) -> str:
    """What one thread moves in a second."""
    ram = rungs.get("RAM")
    reported = [] if ram is None or not ram.bandwidth else [f"RAM read {format_rate(ram.bandwidth)}"]
    for probe, verb in ((READ, "read"), (WRITE, "written")):
        spots = lines(run, probe).get("direct")
        if spots:
            reported.append(f"disk {verb} {format_rate(max(spot.value for spot in spots))}")
    return f"Bandwidth, one thread: {', '.join(reported)}." if reported else ""


def _here(run: Run) -> str:
    reported = [f"{what} {time}" for what, time in usual(run)]
    return f"Here: {'; '.join(reported)}." if reported else ""
