"""Two sides on one screen: the verdict, what changed, and what remains unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.compare import words
from latlab.text import aligned, cut_apart
from latlab.units import format_factor, format_value

if TYPE_CHECKING:
    from latlab.compare import Comparison, Figure
    from latlab.compare.tails import Tail

#: Changed figures on the screen, and those whose slow operations are told.
_MOST: Final = 10
_TAILS: Final = 3
#: Characters of a side's label in the heading of a column, and of a figure's name at least.
_LABEL: Final = 9
_NAME: Final = 20


def comparison_lines(found: Comparison, screen: Screen, *, verbose: bool = False) -> list[Line]:
    """The whole; with `verbose` a row for every figure."""
    lines = screen.wrapped(words.verdict(found), rest="  ", style="bold")
    for text in words.circumstances(found):
        lines += screen.wrapped(text, rest="  ")
    shown = [each for each in found.figures if verbose or each.headline or each.kind == "changed"]
    others = [each for each in shown if not each.headline]
    labels = (found.a.label, found.b.label)
    if found.headline:
        lines += [Line(), *table([each for each in shown if each.headline], labels, screen)]
    if others:
        cut = others if verbose else others[:_MOST]
        lines += [Line(), styled(screen.fit(" other figures"), "bold"), *table(cut, labels, screen)]
    lines += _tails(found.tails if verbose else found.tails[:_TAILS], screen)
    lines.append(Line())
    hidden = 0 if verbose else len(others) - _MOST
    untold = 0 if verbose else len(found.tails) - _TAILS
    if hidden > 0:
        lines += screen.wrapped(f"{hidden} more figures changed: -v lists them.", rest="  ")
    if untold > 0:
        lines += screen.wrapped(f"The slow operations of {untold} more p99: -v has them.", rest="  ")
    for text in _rest(found, verbose=verbose):
        lines += screen.wrapped(text, rest="  ")
    return lines


def table(figures: Sequence[Figure], labels: tuple[str, str], screen: Screen) -> list[Line]:
    """A row for each figure."""
    heads = ("figure", *cut_apart(labels, _LABEL), "ratio", "verdict")
    rows = [heads, *(_row(each) for each in figures)]
    fitted = [[screen.fit(cell) for cell in row] for row in rows]
    others = (max(len(row[column]) for row in fitted) for column in range(1, 5))
    room, ellipsis = max(screen.width - sum(others) - 9, _NAME), "…" if screen.unicode else "."
    cut = [(name if len(name) <= room else f"{name[: room - 1]}{ellipsis}", *rest) for name, *rest in fitted]
    lines = []
    for number, row in enumerate(aligned(cut)):
        text = f" {row}"
        lines.append(styled(text, "dim") if number == 0 else Line(text))
        if number and figures[number - 1].kind == "changed":
            lines[-1].mark(len(text) - len(fitted[number][-1]), len(text), "bold")
    return lines


def _tails(tails: Sequence[Tail], screen: Screen) -> list[Line]:
    """What slow operations are made of where p99 changed."""
    if not tails:
        return []
    lines = [Line(), styled(screen.fit(" slow operations where p99 changed"), "bold")]
    for tail in tails:
        lines += screen.wrapped(f"{tail.figure.title}: {tail.words}", first=" ", rest="   ")
    return lines


def _row(figure: Figure) -> tuple[str, ...]:
    values = ("–" if own is None else format_value(own.value, figure.unit) for own in (figure.a, figure.b))
    ratio = "–" if figure.ratio is None else format_factor(figure.ratio, 3)
    return (figure.title, *values, ratio, words.of_figure(figure))


def _rest(found: Comparison, *, verbose: bool) -> Iterator[str]:
    others = Counter(each.kind for each in found.figures if not each.headline)
    if others:
        parts = ", ".join(f"{count} {words.KINDS[kind]}" for kind, count in sorted(others.items()))
        yield f"Other figures: {parts}.{'' if verbose else ' -v lists each.'}"
    yield from words.more_runs(found)
