"""Gates on one screen: what is broken first, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.compare.alarms import TIMES
from latlab.compare.outcome import VERDICTS
from latlab.units import format_change, format_count, format_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latlab.compare.alarms import Alarms
    from latlab.compare.outcome import Check


def gate_lines(checked: Check, screen: Screen) -> list[Line]:
    """The whole."""
    lines = screen.wrapped(checked.summary, rest="  ", style="bold")
    found = checked.found
    known = found.known_from(found.b, found.a)
    lines += screen.wrapped(f"{found.b.label} against {found.a.label}: {known}.", rest="  ")
    for each in sorted(checked.outcomes, key=lambda each: VERDICTS.index(each.verdict)):
        words = each.word
        first = f" {words:<10} "
        wrapped = screen.wrapped(f"{each.name} · {each.why}", first=first, rest=" " * (len(first) + 2))
        if checked.fails(each):
            wrapped[0].mark(1, 1 + len(words), "bold")
        lines += wrapped
    return lines


def alarm_lines(runs: int, found: Sequence[Alarms], screen: Screen) -> list[Line]:
    """What comparisons of a machine with itself said.

    Args:
        runs: So many were assigned to sides.
        found: With few and with many runs a side.
        screen: Where it is shown.
    """
    first = f"{TIMES} comparisons of {runs} runs of this machine, assigned to sides at random."
    lines = screen.wrapped(first, rest="  ", style="bold")
    sides = [f"{each.runs} {'run' if each.runs == 1 else 'runs'} a side" for each in found]
    for side, each in zip(sides, found, strict=True):
        share = format_percent(each.changed / each.figures) if each.figures else "none"
        text = (
            f"False alarms with {side}: {share} of {format_count(each.figures)} figures; a headline figure in"
            f" {each.headline} of {TIMES} comparisons."
        )
        lines += screen.wrapped(text, rest="  ")
    names = list(dict.fromkeys(name for each in found for name in each.visible))
    width = max(map(len, names), default=0)
    heads = "  ".join(f"{side:>14}" for side in sides)
    lines += [Line(), styled(screen.fit(f" {'smallest visible change':<{width}}  {heads}"), "dim")]
    for name in names:
        cells = (format_change(each.visible[name]) if name in each.visible else "–" for each in found)
        lines.append(Line(screen.fit(f" {name:<{width}}  {'  '.join(f'{cell:>14}' for cell in cells)}")))
    return lines
