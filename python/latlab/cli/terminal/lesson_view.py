"""A lesson on the terminal: question, answer, the document's tables, pictures, what was run, and the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.lessons.figures import Mark, Picture, Table, written
from latlab.lessons.model import Result

if TYPE_CHECKING:
    from latlab.lessons import Lesson

_NARROWEST_BAR = 10
#: Cells of rows with more columns stand one after another where the table does not fit.
_MANY = 4
#: Of a line on the terminal, for each series.
_POINTS = 8


def list_lines(lessons: Sequence[tuple[str, Lesson]], screen: Screen) -> list[Line]:
    """Every lesson by its opening question."""
    lines: list[Line] = []
    for name, lesson in lessons:
        lines.append(styled(screen.fit(name), "bold"))
        lines += screen.wrapped(lesson.QUESTION, first="    ", rest="    ")
    told = (
        "latlab lesson NAME runs one, in under a minute; with --guess it asks first what you expect. With"
        " --original it has the document's sizes, and says first how long they take."
    )
    return [*lines, Line(), *screen.wrapped(told)]


def lesson_lines(result: Result, screen: Screen) -> list[Line]:
    """Everything that was found."""
    lines = [_bold(line) for line in screen.wrapped(result.question)]
    lines += [Line(), *screen.wrapped(" ".join(result.answer))]
    if result.plain:
        lines += screen.wrapped("Less evidence: only the plain-Python arm was run (--plain).")
    if result.asked is not None:
        lines += [Line(), *screen.wrapped(f"{result.asked.question} {result.asked.answers}")]
    for table in result.leading:
        lines += [Line(), *_table(table, screen)]
    for picture in result.pictures:
        lines += [Line(), *_picture(picture, screen)]
    if result.programs:
        lines += [Line(), *_titled("What was run", screen), *_programs(result, screen)]
    for table in result.tables:
        if table not in result.leading:
            lines += [Line(), *_table(table, screen)]
    parts = (
        ("Why", result.reasons),
        ("Where the document misleads", [f"{each.says} {each.found}" for each in result.misled]),
        ("What else it asks or says", [f"{each.question} {each.answer}" for each in result.answers]),
        ("Not measured", [f"{each.what}: {each.why}" for each in result.missing]),
        ("Where this could be wrong here", result.doubts),
        ("Exercises", [f"{each.question} {each.then}" for each in result.exercises]),
        ("What to try next", result.further),
        # So much stands between that its beginning has left the screen.
        ("In short", result.answer),
    )
    for title, texts in parts:
        if texts:
            lines += [Line(), *_titled(title, screen)]
            lines += [line for text in texts for line in screen.wrapped(text, first=" · ", rest="   ")]
    return lines


def _bold(line: Line) -> Line:
    return line.mark(0, len(line.text), "bold")


def _titled(text: str, screen: Screen) -> list[Line]:
    return [_bold(line) for line in screen.wrapped(text)]


def _programs(result: Result, screen: Screen) -> list[Line]:
    """The first, which is the experiment itself; the others by their names."""
    first, *others = result.programs
    lines = [Line(screen.fit(f"  {first.name}"))]
    lines += [Line(screen.fit(f"    {text}".rstrip())) for text in first.text.splitlines()]
    if others:
        names = ", ".join(f"{each.name} ({len(each.text.splitlines())} lines)" for each in others)
        told = f"and {names}: latlab lesson {result.name} --out FILE.html shows them"
        lines += screen.wrapped(told, first="  ", rest="  ")
    return lines


def _table(table: Table, screen: Screen) -> list[Line]:
    """As columns where they fit, else a row a block."""
    rows = [[screen.fit(cell) for cell in row] for row in [table.headings(), *table.lines()]]
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    lines = _titled(table.title, screen)
    if sum(widths) + 2 * len(widths) + 1 <= screen.width:
        for number, row in enumerate(rows):
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
            line = Line(f" {'  '.join(cells)}".rstrip())
            lines.append(line if number else line.mark(0, len(line.text), "dim"))
    else:
        heads = rows[0]
        for row in rows[1:]:
            lines += screen.wrapped(row[0], first=" ", rest="   ")
            cells = [
                f"{head}: {cell}"
                for head, cell in zip(heads[1:], row[1:], strict=True)
                if cell not in {"–", "-"}
            ]
            if len(heads) > _MANY:
                cells = [" · ".join(cells)]
            lines += [line for cell in cells for line in screen.wrapped(cell, first="     ", rest="       ")]
    for text in table.notes:
        lines += screen.wrapped(text, first="   ", rest="   ")
    return lines


def _picture(picture: Picture, screen: Screen) -> list[Line]:
    """Horizontal bars of one character height; for lines, each point is one."""
    marks = _some(picture)
    lines = _titled(f"{picture.title} ({picture.axis}{', logarithmic' if picture.log else ''})", screen)
    names = [screen.fit(_name(picture, mark)) for mark in marks]
    figures = [screen.fit(written(mark.value, picture.unit)) for mark in marks]
    label, figure = max(map(len, names), default=0), max(map(len, figures), default=0)
    room = max(screen.width - label - figure - 4, _NARROWEST_BAR)
    values = [mark.value for mark in marks if mark.value > 0]
    if not values:
        return lines
    low, high = (min(values) / 2, max(values)) if picture.log else (0.0, max(values))
    full = "█" if screen.unicode else "#"
    spans = picture.kind == "spans"
    if spans:
        high = max(mark.high or 0.0 for mark in marks)
    for mark, name, text in zip(marks, names, figures, strict=True):
        length = _length(mark.value, low, high, room, log=picture.log)
        begins = min(round((mark.low or 0.0) / high * room), room - length) if spans else 0
        lines.append(Line(f" {name.ljust(label)} {' ' * max(begins, 0)}{full * length} {text}"))
    return lines


def _some(picture: Picture) -> list[Mark]:
    """All bars; of a line with many points, a few from end to end."""
    if picture.kind != "lines":
        return list(picture.marks)
    kept = []
    for series in picture.series:
        own = [mark for mark in picture.marks if mark.series == series]
        step = max(math.ceil(len(own) / _POINTS), 1)
        kept += own[::step]
    return kept


def _length(value: float, low: float, high: float, room: int, *, log: bool) -> int:
    if value <= 0:
        return 0
    share = math.log(value / low) / math.log(high / low) if log else value / high
    return max(round(share * room), 1)


def _name(picture: Picture, mark: Mark) -> str:
    if picture.kind == "spans":
        return mark.label
    if picture.kind == "bars":
        return f"{mark.label}, {mark.series}" if len(picture.series) > 1 else mark.label
    at = written(mark.x or 0.0, picture.x_unit)
    return f"{mark.series}, {at}" if len(picture.series) > 1 else at
