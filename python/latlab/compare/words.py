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
    seen = ""
    if found.visible is not None:
        half, most = map(format_change, found.visible)
        seen = f"a change of {half} would have been detected in half of them"
        seen += f", of {most} in all" if most != half else ""
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
        return f"{text} below {format_change(verdict.smallest_visible)}"
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
