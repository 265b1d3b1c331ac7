"""Figures over time on a screen: a line each, and below it when and by how much it changed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.screen import Line, Screen
from latlab.compare.history_words import details, ends, headline, marks

if TYPE_CHECKING:
    from latlab.compare.history import History, Point

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = "_.-~=+*#"
#: How a point that is no part of a level is drawn: a spike upwards and downwards, a disturbed run.
_UP, _DOWN, _DISTURBED = "^", "v", "x"
#: Columns of a sparkline, and of a figure's name.
_SPARK: Final = (10, 60)
_NAME: Final = (12, 40)
#: Environment changes that are listed.
_MOST: Final = 5


def history_lines(found: History, screen: Screen) -> list[Line]:
    """The whole."""
    runs = found.runs
    lines = screen.wrapped(f"{headline(found)}.", rest="  ", style="bold")
    values = [screen.fit(ends(figure)) for figure in found.figures]
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
        for detail in details(figure, found):
            lines += screen.wrapped(detail, first="   ", rest="     ")
    axis = [" "] * spark
    for mark in marks(found):
        column = mark.run * spark // len(runs)
        axis[column] = mark.sign if axis[column] == " " else "*"
    if "".join(axis).strip():
        lines.append(Line(f" {'environment'.ljust(name_wide)}  {''.join(axis).rstrip()}"))
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


def _ends(found: History) -> Iterator[tuple[str, str]]:
    """What changed around the figures, and what the marks mean, with their indents."""
    moments = marks(found)
    if moments:
        yield "", ""
        yield "", "Environment:"
    for mark in moments[-_MOST:]:
        yield "  ", f"{mark.sign}  {mark.text}"
    if len(moments) > _MOST:
        yield "  ", f"and {len(moments) - _MOST} earlier changes: --json lists all"
    kinds = {each.kind for figure in found.figures for each in figure.points}
    signs = [f"{_UP} {_DOWN} spike, not a change"] if "spike" in kinds else []
    signs += [f"{_DISTURBED} disturbed, not judged"] if "disturbed" in kinds else []
    if signs:
        yield "", f"Marks: {'; '.join(signs)}."
