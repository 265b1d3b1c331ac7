"""Two programs on one screen: the verdict, what each run took, and each program against itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.units import format_bytes, format_count, format_factor, format_ns, format_percent, format_span

if TYPE_CHECKING:
    from latlab.compare.verdict import Kind, Verdict
    from latlab.duet import Duet
    from latlab.duet.judge import Figure, Unit

#: Of figures; each program against itself is judged by the same four.
_WORDS: Final[dict[Kind, str]] = {
    "changed": "changed",
    "same": "the same",
    "cannot-tell": "cannot tell",
    "not-comparable": "not comparable",
}
_NARROWEST: Final = 12


def duet_lines(found: Duet, screen: Screen) -> list[Line]:
    """The whole."""
    lines = screen.wrapped(found.says, rest="  ", style="bold")
    for mark, side in (("A", found.a), ("B", found.b)):
        lines += screen.wrapped(f"{mark}: {side.command}", rest="   ")
    lines += [Line(), *_table(found, screen), Line()]
    for note in found.notes:
        lines += screen.wrapped(note, rest="  ")
    return lines


def _table(found: Duet, screen: Screen) -> Iterator[Line]:
    cells = [("", "A", "B", "ratio", ""), *_rows(found)]
    fitted = [[screen.fit(cell) for cell in row] for row in cells]
    widths = [max(len(row[column]) for row in fitted) for column in range(4)]
    widths[0] = max(widths[0], _NARROWEST)
    for number, (name, a, b, ratio, verdict) in enumerate(fitted):
        text = (
            f" {name.ljust(widths[0])}  {a.rjust(widths[1])}  {b.rjust(widths[2])}  {ratio.ljust(widths[3])}"
        )
        line = Line(f"{text}  {verdict}".rstrip())
        yield styled(line.text, "dim") if number == 0 else line
        if verdict.startswith(_WORDS["changed"]):
            line.mark(len(text) + 2, len(line.text), "bold")


def _rows(found: Duet) -> Iterator[tuple[str, ...]]:
    parts = [each for each in found.figures if each.is_category]
    for figure in found.figures:
        if parts and figure is parts[0]:
            yield ("wall time by category", "", "", "wall time by it alone", "")
        name = f"  {figure.name}" if figure.is_category else figure.name
        a, b = (_value(value, figure.unit) for value in (figure.a, figure.b))
        yield (name, a, b, _ratio(figure), _verdict(figure))
    for mark, own in zip("AB", found.itself, strict=True):
        if own is not None:
            ratio = f"{format_factor(own.ratio, 3)} ({_ends(own.verdict)})"
            yield (f"{mark} against itself", "", "", ratio, _reported(own.verdict.kind, own.verdict))


def _value(value: float | None, unit: Unit) -> str:
    if unit == "s":
        return format_ns(None if value is None else 1e9 * value)
    return format_bytes(value) if unit == "bytes" else format_count(value)


def _ends(verdict: Verdict) -> str:
    return format_span(verdict.low, verdict.high, lambda end: format_factor(end, 3))


def _ratio(figure: Figure) -> str:
    """`0.865 (0.851–0.879)`; of a category `+8.1 % (7.0–9.2 %)`."""
    ratio, verdict = figure.ratio, figure.verdict
    if ratio is None or verdict is None:
        return "–"
    if not figure.is_category:
        return f"{format_factor(ratio, 3)} ({_ends(verdict)})"
    ends = [_signed(end - 1) for end in (verdict.low, verdict.high)]
    return f"{_signed(ratio - 1)} ({' to '.join(ends)})"


def _signed(share: float) -> str:
    return f"{'+' if share > 0 else ''}{format_percent(share)}"


def _verdict(figure: Figure) -> str:
    return f"{_WORDS[figure.kind]}: {figure.why}" if figure.why else _reported(figure.kind, figure.verdict)


def _reported(kind: Kind, verdict: Verdict | None) -> str:
    below = kind == "cannot-tell" and verdict is not None
    return (
        f"{_WORDS[kind]} below {format_percent(verdict.smallest_visible)}"
        if below and verdict
        else _WORDS[kind]
    )
