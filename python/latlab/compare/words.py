"""A comparison in words, for a screen and for a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from latlab.compare.verdict import SHOWN
from latlab.units import format_change, format_factor, format_percent

if TYPE_CHECKING:
    from latlab.compare import Comparison, Figure
    from latlab.compare.verdict import Kind

#: Larger changes are not what anybody asks for: ten times as much.
_FAR: Final = 9.0
#: The verdicts.
KINDS: Final[dict[Kind, str]] = {
    "changed": "changed",
    "same": "the same",
    "cannot-tell": "cannot tell",
    "not-comparable": "not comparable",
}


def verdict(found: Comparison) -> str:
    """The first line: what the headline figures say together."""
    headline = found.headline
    total = sum(each.kind != "not-comparable" for each in headline or found.figures)
    counts = Counter(each.kind for each in headline or found.figures)
    what = "headline figures" if headline else "figures"
    if found.kind == "not-comparable":
        return "Not comparable: no figure was measured the same way on both sides."
    runs = min(len(found.a.runs), len(found.b.runs))
    seen = "" if found.visible is None else would_show(found.visible, "them", runs)
    if found.kind == "changed":
        return (
            f"{counts['changed']} of {total} {what} changed. Of the others, {seen}."
            if seen
            else f"All {total} {what} changed."
        )
    if found.kind == "same":
        return (
            f"The same within {format_percent(found.same)}: all {counts['same']} {what} that can be compared."
        )
    return f"Nothing demonstrably changed in {total} {what}; {seen}."


def would_show(seen: tuple[float, float], what: str, runs: int) -> str:
    """What would have been detected.

    Args:
        seen: The change that would have been in half of the figures, and in all.
        what: What the figures are called.
        runs: Of the side that has fewer.
    """
    half, most = seen
    few = "; one run per side shows little: measure three" if runs == 1 and most > _FAR else ""
    if half > _FAR:
        return f"changes below {format_change(_FAR)} would have been missed in most of {what}{few}"
    text = f"a change of {format_change(half)} would have been detected in half of {what}"
    if most > _FAR:
        return f"{text}, in some only one above {format_change(_FAR)}{few}"
    return text if format_change(most) == format_change(half) else f"{text}, of {format_change(most)} in all"


def below(smallest: float) -> str:
    """`cannot tell below 30 %`; a change that nobody expects is no figure to print."""
    known = smallest <= _FAR
    return f"cannot tell below {format_change(smallest)}" if known else "cannot tell: too few measurements"


def circumstances(found: Comparison) -> Iterator[str]:
    """What the verdict goes by, and what else differs."""
    yield f"{found.a.label} against {found.b.label}: {found.known_from(found.a, found.b)}."
    without = sum(each.kind == "not-comparable" for each in found.headline)
    if without and found.kind != "not-comparable":
        yield f"{without} headline {'figure' if without == 1 else 'figures'} cannot be compared."
    if found.environment:
        yield f"What else differs: {'; '.join(found.environment)}."
    if found.machines:
        yield f"The machines differ ({'; '.join(found.machines[:3])}): --across compares them anyway."


def of_figure(figure: Figure) -> str:
    """`changed (1.12–1.52)`, `cannot tell below 30 %`, `cannot tell: disturbed in A`."""
    text, verdict = KINDS[figure.kind], figure.verdict
    if figure.why:
        return f"{text}: {figure.why}"
    if figure.kind == "changed" and verdict is not None:
        return f"{text} ({format_factor(verdict.low, 3)}–{format_factor(verdict.high, 3)})"
    if figure.kind == "cannot-tell" and verdict is not None:
        return below(verdict.smallest_visible)
    return text


def more_runs(found: Comparison) -> Iterator[str]:
    """How many more runs would show a change that matters."""
    runs = [each.verdict.more_runs for each in found.headline if each.verdict and each.kind == "cannot-tell"]
    known = sorted(number for number in runs if number)
    if known:
        more = known[len(known) // 2]
        yield (
            f"To detect a change of {format_percent(SHOWN * found.same)} in half of these headline "
            f"figures, measure {more} more {'run' if more == 1 else 'runs'} per side."
        )
