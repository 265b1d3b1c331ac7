"""What a history says of its figures, in words: for the screen, pictures and the page."""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from latlab.compare.series import LEAST
from latlab.units import format_factor, format_percent, format_value

if TYPE_CHECKING:
    from latlab.compare.history import Change, Figure, History
    from latlab.run.model import Unit

#: Spikes that are listed.
_MOST: Final = 5
#: What changes of the environment are called on an axis, in the order of time.
_MARKS: Final = string.digits[1:] + string.ascii_lowercase


class Mark(NamedTuple):
    """A change of the environment.

    Attributes:
        run: Place of the first run after it.
        sign: What it is called on an axis; `*` where there are too many.
        text: `2026-11-10 10:00 kernel: 6.1 to 6.18`.
    """

    run: int
    sign: str
    text: str


def headline(found: History) -> str:
    """The first line: `2 of 12 figures changed by more than 10 % in 40 runs, 2026-11-01 10:00 to ...`."""
    runs = found.runs
    changed = sum(bool(figure.changes) for figure in found.figures)
    return (
        f"{changed} of {len(found.figures)} figures changed by more than {format_percent(found.same)} in"
        f" {len(runs):,} {'run' if len(runs) == 1 else 'runs'}, {runs[0].date} to {runs[-1].date}"
    )


def marks(found: History) -> list[Mark]:
    """All changes of the environment."""
    moments = [(place, run) for place, run in enumerate(found.runs) if run.environment]
    return [
        Mark(
            place, _MARKS[number] if number < len(_MARKS) else "*", f"{run.date} {'; '.join(run.environment)}"
        )
        for number, (place, run) in enumerate(moments)
    ]


def ends(figure: Figure) -> str:
    """The first and the last value: `98.5 ns → 131 ns`."""
    points = [each for each in figure.points if each.kind == "measured"] or figure.points
    first, last = (format_value(points[place].value, figure.unit) for place in (0, -1))
    return f"{first} → {last}" if len(points) > 1 else first


def details(figure: Figure, found: History) -> Iterator[str]:
    """Changes and what cannot be compared in the order of time, then spikes."""
    texts: list[tuple[int, str]] = []
    for change in figure.changes:
        then = f"; {'; '.join(change.environment)}" if change.environment else ""
        texts.append((change.run, f"{changed(change, figure.unit)}{then}"))
    texts += [(each.run, f"not comparable with earlier runs: {each.why}") for each in figure.breaks]
    for run, text in sorted(texts):
        yield f"{found.runs[run].date} {text}"
    sound = sum(each.kind != "disturbed" for each in figure.points)
    if sound < 2 * LEAST:
        noun = "run" if sound == 1 else "runs"
        yield f"not judged: {sound} undisturbed {noun}, at least {2 * LEAST} needed"
    spikes = [each for each in figure.points if each.kind == "spike"]
    if spikes:
        shown = [
            f"{found.runs[each.run].date} ({format_value(each.value, figure.unit)})"
            for each in spikes[-_MOST:]
        ]
        more = f" and {len(spikes) - _MOST} earlier" if len(spikes) > _MOST else ""
        yield f"{'spike' if len(spikes) == 1 else 'spikes'}: {', '.join(shown)}{more}"


def changed(change: Change, unit: Unit) -> str:
    """`1.30 times slower (1.28–1.33)`."""
    more, less = ("slower", "faster") if unit == "ns" else ("faster", "slower")
    factors = (change.factor, change.low, change.high)
    if change.factor < 1:
        more, factors = less, (1 / change.factor, 1 / change.high, 1 / change.low)
    times, low, high = (format_factor(each, 3) for each in factors)
    return f"{times} times {more} ({low}–{high})"
