"""Figures over time on a screen: a line each, and below it when and by how much it changed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.compare.series import LEAST
from latlab.units import format_factor, format_percent, format_value

if TYPE_CHECKING:
    from latlab.compare.history import Change, Figure, History, Point
    from latlab.run.model import Unit

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = "_.-~=+*#"
#: How a point that is no part of a level is drawn: a spike upwards and downwards, a disturbed run.
_UP, _DOWN, _DISTURBED = "^", "v", "x"
#: Columns of a sparkline, and of a figure's name.
_SPARK: Final = (10, 60)
_NAME: Final = (12, 40)
#: Spikes and environment changes that are listed.
_MOST: Final = 5


def history_lines(found: History, screen: Screen) -> list[Line]:
    """The whole.

    Args:
        found: What is shown.
        screen: Where it is shown.
    """
    runs = found.runs
    changed = sum(bool(figure.changes) for figure in found.figures)
    lines = [
        styled(line.text, "bold")
        for line in screen.wrapped(
            f"{changed} of {len(found.figures)} figures changed by more than {format_percent(found.same)} in"
            f" {len(runs):,} {'run' if len(runs) == 1 else 'runs'}, {runs[0].date} to {runs[-1].date}.",
            rest="  ",
        )
    ]
    values = [screen.fit(_values(figure)) for figure in found.figures]
    names = [screen.fit(figure.name) for figure in found.figures]
    wide = max(map(len, values))
    name_wide = min(max(map(len, names)), _NAME[1], max(screen.width - wide - _SPARK[0] - 6, _NAME[0]))
    spark = min(max(screen.width - name_wide - wide - 5, _SPARK[0]), _SPARK[1], len(runs))
    for figure, name, text in zip(found.figures, names, values, strict=True):
        cut = name if len(name) <= name_wide else f"{name[: name_wide - 1]}{'…' if screen.unicode else '.'}"
        drawn = sparkline(figure.points, len(runs), spark, found.same, screen)
        lines.append(Line(f" {cut.ljust(name_wide)}  {drawn}  {text}"))
        if figure.changes:
            lines[-1].mark(1, 1 + len(cut), "bold")
        for detail in _details(figure, found):
            lines += screen.wrapped(detail, first="   ", rest="     ")
    for indent, text in _ends(found):
        lines += screen.wrapped(text, first=indent, rest="    ") or [Line()]
    return lines


def sparkline(points: Sequence[Point], runs: int, width: int, same: float, screen: Screen) -> str:
    """A mark a run, on a logarithmic scale; of more runs than columns the median of those of a column.

    Args:
        points: Of one figure.
        runs: How many runs there are, with and without the figure.
        width: Columns, at most one a run.
        same: What is no change fills half of the scale at most.
        screen: Where it is shown.
    """
    levels = _BLOCKS if screen.unicode else _ASCII
    # Spikes do not set the scale.
    sound = [each for each in points if each.kind == "measured"] or points
    logs = [math.log(each.value) for each in sound]
    middle = (min(logs) + max(logs)) / 2
    half = max((max(logs) - min(logs)) / 2, math.log1p(same))
    columns: list[list[Point]] = [[] for _ in range(width)]
    for point in points:
        columns[point.run * width // runs].append(point)
    return "".join(_mark(column, middle, half, levels) for column in columns)


def _mark(column: Sequence[Point], middle: float, half: float, levels: str) -> str:
    if not column:
        return " "
    for each in column:
        if each.kind == "spike":
            return _UP if math.log(each.value) > middle else _DOWN
    logs = [math.log(each.value) for each in column if each.kind == "measured"]
    if not logs:
        return _DISTURBED
    share = (statistics.median(logs) - middle + half) / (2 * half)
    return levels[min(max(int(share * len(levels)), 0), len(levels) - 1)]


def _values(figure: Figure) -> str:
    """The first and the last value: `98.5 ns → 131 ns`."""
    points = [each for each in figure.points if each.kind == "measured"] or figure.points
    first, last = (format_value(points[place].value, figure.unit) for place in (0, -1))
    return f"{first} → {last}" if len(points) > 1 else first


def _details(figure: Figure, found: History) -> Iterator[str]:
    """Changes and what cannot be compared in the order of time, then spikes."""
    texts: list[tuple[int, str]] = []
    for change in figure.changes:
        then = f"; {'; '.join(change.environment)}" if change.environment else ""
        texts.append((change.run, f"{_changed(change, figure.unit)}{then}"))
    texts += [(each.run, f"not comparable with earlier runs: {each.why}") for each in figure.breaks]
    for run, text in sorted(texts):
        yield f"{found.runs[run].date} {text}"
    sound = sum(each.kind != "disturbed" for each in figure.points)
    if sound < 2 * LEAST:
        yield f"not judged: {sound} undisturbed {'run' if sound == 1 else 'runs'}, {2 * LEAST} are needed"
    spikes = [each for each in figure.points if each.kind == "spike"]
    if spikes:
        shown = [
            f"{found.runs[each.run].date} ({format_value(each.value, figure.unit)})"
            for each in spikes[-_MOST:]
        ]
        more = f" and {len(spikes) - _MOST} earlier" if len(spikes) > _MOST else ""
        yield f"{'spike' if len(spikes) == 1 else 'spikes'}: {', '.join(shown)}{more}"


def _changed(change: Change, unit: Unit) -> str:
    """`1.30 times slower (1.28–1.33)`."""
    more, less = ("slower", "faster") if unit == "ns" else ("faster", "slower")
    ends = (change.factor, change.low, change.high)
    if change.factor < 1:
        more, ends = less, (1 / change.factor, 1 / change.high, 1 / change.low)
    times, low, high = (format_factor(each, 3) for each in ends)
    return f"{times} times {more} ({low}–{high})"


def _ends(found: History) -> Iterator[tuple[str, str]]:
    """What changed around the figures, and what the marks mean, with their indents."""
    moments = [run for run in found.runs if run.environment]
    if moments:
        yield "", ""
        yield "", "Environment:"
    for run in moments[-_MOST:]:
        yield "  ", f"{run.date} {'; '.join(run.environment)}"
    if len(moments) > _MOST:
        yield "  ", f"and {len(moments) - _MOST} earlier changes: --json has all"
    kinds = {each.kind for figure in found.figures for each in figure.points}
    marks = [f"{_UP} {_DOWN} spike, not a change"] if "spike" in kinds else []
    marks += [f"{_DISTURBED} disturbed, not judged"] if "disturbed" in kinds else []
    if marks:
        yield "", f"Marks: {'; '.join(marks)}."
