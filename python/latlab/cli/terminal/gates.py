"""Gates on one screen: what is broken first, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.compare.outcome import VERDICTS

if TYPE_CHECKING:
    from latlab.compare.outcome import Check


def gate_lines(checked: Check, screen: Screen) -> list[Line]:
    """The whole.

    Args:
        checked: The outcomes.
        screen: Where they are shown.
    """
    lines = [styled(line.text, "bold") for line in screen.wrapped(checked.summary, rest="  ")]
    found = checked.found
    lines += [*screen.wrapped(f"{found.b.label} against {found.a.label}: {found.known_from}.", rest="  ")]
    for each in sorted(checked.outcomes, key=lambda each: VERDICTS.index(each.verdict)):
        words = each.word
        first = f" {words:<10} "
        wrapped = screen.wrapped(f"{each.name} · {each.why}", first=first, rest=" " * (len(first) + 2))
        if checked.fails(each):
            wrapped[0].mark(1, 1 + len(words), "bold")
        lines += wrapped
    return lines
