"""Gates on one screen: what is broken first, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.text import listed

if TYPE_CHECKING:
    from latlab.compare.outcome import Check, Held, Outcome

_ORDER: Final[tuple[Held, ...]] = ("broken", "undecided", "held")


def gate_lines(checked: Check, screen: Screen) -> list[Line]:
    """The whole.

    Args:
        checked: The outcomes.
        screen: Where they are shown.
    """
    lines = [styled(line.text, "bold") for line in screen.wrapped(summary(checked), rest="  ")]
    found = checked.found
    lines += [*screen.wrapped(f"{found.b.label} against {found.a.label}: {found.known_from}.", rest="  ")]
    for each in sorted(checked.outcomes, key=lambda each: _ORDER.index(each.verdict)):
        words = _words(each)
        first = f" {words:<10} "
        wrapped = screen.wrapped(f"{each.name} · {each.why}", first=first, rest=" " * (len(first) + 2))
        if checked.fails(each):
            wrapped[0].mark(1, 1 + len(words), "bold")
        lines += wrapped
    return lines


def summary(checked: Check) -> str:
    """`Not passed: 1 broken, 2 undecided and 9 held`, with a full stop."""
    counts = {verdict: len(checked.those(verdict)) for verdict in _ORDER}
    parts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    return f"{'Not passed' if checked.code else 'Passed'}: {listed(parts)}."


def _words(outcome: Outcome) -> str:
    return "warning" if outcome.verdict == "broken" and outcome.level == "warn" else outcome.verdict
