"""A lesson on the terminal: question, answer, the source's tables, pictures, what was run, and the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.lessons.figures import Mark, Picture, Table, written
from latlab.lessons.model import Result
from latlab.text import aligned

if TYPE_CHECKING:
    from latlab.lessons import Lesson

_NARROWEST_BAR = 10
#: Lines of what is shown without --full.
_SCREEN = 40
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
    reported = (
        "latlab lesson NAME runs one, in under a minute; --guess asks first what you expect. "
        "--original uses the published sizes, and prints first how long they take."
    )
    return [*lines, Line(), *screen.wrapped(reported)]


def lesson_lines(result: Result, screen: Screen, *, full: bool = False) -> list[Line]:
    """What was found: on one screen as much as fits of it, or all."""
    lines = screen.wrapped(result.question, style="bold")
    lines += [Line(), *screen.wrapped(" ".join(result.answer))]
    if result.plain:
        lines += screen.wrapped("Less evidence: only the plain-Python program was run (--plain).")
    if result.beside:
        lines += [Line(), *screen.wrapped(result.beside)]
    why = _listed("Why", result.reasons, screen)
    misled = _listed(
        f"Where {result.cited} misleads", [f"{each.says} {each.found}" for each in result.misled], screen
    )
    if not full:
        shown = [_table(table, screen) for table in result.leading[:1]]
        shown += [_picture(picture, screen) for picture in result.pictures[:1]]
        rest = [Line(), *screen.wrapped(_rest(result))]
        return [*lines, *_fitting([*shown, why, misled], _SCREEN - len(lines) - len(rest)), *rest]
    parts = [*(_table(table, screen) for table in result.leading)]
    parts += [_picture(picture, screen) for picture in result.pictures]
    if result.programs:
        parts.append(Part(screen.wrapped("What was run", style="bold"), [_programs(result, screen)]))
    parts += [_table(table, screen) for table in result.tables if table not in result.leading]
    parts += [why, misled]
    for title, texts in (
        ("What else it asks or says", [f"{each.question} {each.answer}" for each in result.answers]),
        ("Not measured", [f"{each.what}: {each.why}" for each in result.missing]),
        ("Where this could be wrong here", result.doubts),
        ("Exercises", [f"{each.question} {each.then}" for each in result.exercises]),
        ("What to try next", result.further),
        # So much stands between that its beginning has left the screen.
        ("In short", result.answer),
    ):
        parts.append(_listed(title, texts, screen))
    for part in parts:
        if part.items:
            lines += [Line(), *part.title, *(line for item in part.items for line in item), *part.notes]
    return lines


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what is shown.

    Attributes:
        title: With the heads of columns.
        items: What may be left out one by one from the end: rows, bars, sentences.
        notes: What must be known to read it.
    """

    title: list[Line]
    items: list[list[Line]]
    notes: list[Line] = field(default_factory=list)


def _fitting(parts: Sequence[Part], room: int) -> list[Line]:
    """As many items of each part as there is room for, one of each in turn; `…` where some are left out."""
    kept = [0] * len(parts)
    open_parts = list(range(len(parts)))
    while open_parts:
        for number in list(open_parts):
            part = parts[number]
            more = kept[number] < len(part.items)
            # Its blank line, its title, and the line that says that some are left out.
            begins = 0 if kept[number] else 1 + len(part.title) + (len(part.items) > 1)
            cost = begins + len(part.items[kept[number]]) if more else 0
            if not more or cost > room:
                open_parts.remove(number)
            else:
                kept[number], room = kept[number] + 1, room - cost
    lines: list[Line] = []
    for part, many in zip(parts, kept, strict=True):
        if many:
            lines += [Line(), *part.title, *(line for item in part.items[:many] for line in item)]
            lines += [Line(" …")] if many < len(part.items) else []
    return lines


def _rest(result: Result) -> str:
    """What else there is, and how it is seen."""
    missing = len(result.missing)
    reported = f"{missing} of its parts could not be measured. " if missing else ""
    return (
        f"{reported}--full shows all tables and pictures, the programs, every reason, what was not "
        "measured, and exercises; -o FILE.html writes them as a page."
    )


def _listed(title: str, texts: Sequence[str], screen: Screen) -> Part:
    items = [screen.wrapped(text, first=" · ", rest="   ") for text in texts]
    return Part(screen.wrapped(title, style="bold"), items)


def _programs(result: Result, screen: Screen) -> list[Line]:
    """The first, which is the experiment itself; the others by their names."""
    first, *others = result.programs
    lines = [Line(screen.fit(f"  {first.name}"))]
    lines += [Line(screen.fit(f"    {text}".rstrip())) for text in first.text.splitlines()]
    if others:
        names = ", ".join(f"{each.name} ({len(each.text.splitlines())} lines)" for each in others)
        reported = f"and {names}: latlab lesson {result.name} --out FILE.html shows them"
        lines += screen.wrapped(reported, first="  ", rest="  ")
    return lines


def _table(table: Table, screen: Screen) -> Part:
    """As columns where they fit, else a row a block."""
    heads, *rows = [[screen.fit(cell) for cell in row] for row in [table.headings(), *table.lines()]]
    widths = [max(len(row[number]) for row in (heads, *rows)) for number in range(len(heads))]
    title, items = screen.wrapped(table.title, style="bold"), []
    if sum(widths) + 2 * len(widths) + 1 <= screen.width:
        head, *lines = (Line(f" {text}") for text in aligned([heads, *rows], left=(0,)))
        title.append(head.mark(0, len(head.text), "dim"))
        items = [[line] for line in lines]
    else:
        for row in rows:
            cells = [
                f"{head}: {cell}"
                for head, cell in zip(heads[1:], row[1:], strict=True)
                if cell not in {"–", "-"}
            ]
            if len(heads) > _MANY:
                cells = [" · ".join(cells)]
            items.append(
                [
                    *screen.wrapped(row[0], first=" ", rest="   "),
                    *(each for cell in cells for each in screen.wrapped(cell, first="     ", rest="       ")),
                ]
            )
    notes = [line for text in table.notes for line in screen.wrapped(text, first="   ", rest="   ")]
    return Part(title, items, notes)


def _picture(picture: Picture, screen: Screen) -> Part:
    """Horizontal bars of one character height; for lines, each point is one."""
    marks = _some(picture)
    axis = f"{picture.axis}{', logarithmic' if picture.log else ''}"
    title = screen.wrapped(f"{picture.title} ({axis})", style="bold")
    names = [screen.fit(_name(picture, mark)) for mark in marks]
    figures = [screen.fit(written(mark.value, picture.unit)) for mark in marks]
    label, figure = max(map(len, names), default=0), max(map(len, figures), default=0)
    room = max(screen.width - label - figure - 4, _NARROWEST_BAR)
    values = [mark.value for mark in marks if mark.value > 0]
    low, high = (min(values, default=1.0) / 2 if picture.log else 0.0), max(values, default=1.0)
    full = "█" if screen.unicode else "#"
    spans = picture.kind == "spans"
    if spans:
        high = max(mark.high or 0.0 for mark in marks)
    items = []
    for mark, name, text in zip(marks, names, figures, strict=True):
        if mark.value <= 0 and picture.kind == "bars" and picture.log:
            # An empty bin of a histogram.
            continue
        length = _length(mark.value, low, high, room, log=picture.log)
        begins = min(round((mark.low or 0.0) / high * room), room - length) if spans else 0
        items.append([Line(f" {name.ljust(label)} {' ' * max(begins, 0)}{full * length} {text}")])
    return Part(title, items)


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
