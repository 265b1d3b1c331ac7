"""A lesson's template: sentences, tables and pictures; what would be said of an absent figure is not said.

`lesson.md.j2` is Markdown with places for figures (Jinja). Sections, each of which may be missing where
a machine has no figure for it:

    It takes {{ ns(made) }} here.                 the answer, a sentence a paragraph
    ## Why                                        - a reason
    ## What misled the source                     - **What it says.** What was found.
    ## What else it asks                          - **Its question?** The answer.
    ## Exercises                                  - **A question to the reader.** The command that answers it.
    ## Next                                       - what to try
    ## Charts                                     - the name of a chart of the Rust probe's run
    ## Tables
    ### name: What it shows                       `name*`: the source's; `name!`: stays without rows
    | first heading | column: Its heading |
    | row: Its title | {{ figure }} |             an empty cell has no figure and no reason
    A note.
    ## Pictures
    ### name: The question that it answers
    axis: what the values are                     and other fields of a `Picture`
    | label | series | {{ figure }} | x |          bars of one series: the same series in all
    A caption.

A paragraph or an item disappears with a figure of it, a mark with its figure, a table with its last row, a
picture with its last mark. In a table an absent figure stays, with its reason. A name that a mapping or a
value does not have is an absent figure, whatever is made of it; a name that the template was not given is a
mistake.

`Times` are written as their figure. Functions of a figure, of times (their median) or of a number: `ns` (of
seconds: `1.2 µs`), `plain` (two digits), `count`, `percent`, `size`, `decimal` (a size, too), `rate`. Of a
figure: `times` (`1.2 times (1.1 – 1.3)`), `figure` (without its spread). Of a figure whose spread is twofold,
a sentence has the spread alone. `nothing(unit, why, published)` is
an absent one. `SPREAD` says what the brackets of a median hold.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from typing import Any, Final

import jinja2
import jinja2.meta

from latlab.lessons import words
from latlab.lessons.bench import Times, nothing
from latlab.lessons.figures import Cell, Column, Mark, Picture, Published, Row, Series, Table
from latlab.lessons.model import Answer, Exercise, Misled, Reported
from latlab.units import format_bytes, format_count, format_ns, format_percent

_ABSENT: Final = "\0"
#: The place of a figure in the text, by its number.
_FIGURE: Final = re.compile("\1([0-9]+)\2")
_PAIR: Final = re.compile(r"\*\*(.+?)\*\* (.+)")
Figures = list[Cell | Published]


class Absent(jinja2.ChainableUndefined):
    """What is not there, and all that is made of it."""

    def __str__(self) -> str:
        return _ABSENT

    def _same(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - whatever was asked for
        return self

    __call__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __truediv__ = __rtruediv__ = __pow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _same


def reported(lesson: str, series: tuple[Series, ...] = (), /, **values: object) -> Reported:
    """What a lesson says.

    Args:
        lesson: Whose template: the name of its package. The template also has the constants and functions of
            the package and of its modules.
        series: Values that are kept one by one.
        values: Figures, and what else the template names.

    Raises:
        KeyError: the template names what it was not given.
    """
    template, names = _template(lesson)
    modules = sorted((name for name in sys.modules if f"{name}.".startswith(f"{lesson}.")), reverse=True)
    values = {
        name: each
        for module in modules
        for name, each in vars(sys.modules[module]).items()
        if name.isupper() or getattr(each, "__module__", "") == module
    } | values
    if missing := names - values.keys():
        raise KeyError(f"{lesson}: {', '.join(sorted(missing))}")
    figures: Figures = []
    text = template.render(values | {"figures": figures})
    parts = dict(_parts(text, "## "))

    def items(title: str) -> tuple[str, ...]:
        return tuple(_sentences(re.split(r"^- ", parts.get(title, ""), flags=re.MULTILINE), figures))

    def pairs(title: str) -> Iterator[tuple[str, str]]:
        for item in items(title):
            pair = _PAIR.fullmatch(item)
            assert pair is not None, item  # noqa: S101 - a mistake in the template
            yield pair[1], pair[2]

    tables = (_table(*part, figures) for part in _parts(parts.get("Tables", ""), "### ") if part[0])
    pictures = (_picture(*part, figures) for part in _parts(parts.get("Pictures", ""), "### ") if part[0])
    return Reported(
        answer=tuple(_sentences(parts[""].split("\n\n"), figures)),
        tables=tuple(table for table in tables if table is not None),
        pictures=tuple(picture for picture in pictures if picture.marks),
        reasons=items("Why"),
        misled=tuple(Misled(*pair) for pair in pairs("What misled the source")),
        answers=tuple(Answer(*pair) for pair in pairs("What else it asks")),
        exercises=tuple(Exercise(*pair) for pair in pairs("Exercises")),
        further=items("Next"),
        charts=items("Charts"),
        series=series,
    )


# --------------------------------------------------------------------------------------
# before it is rendered


@jinja2.pass_context
def _finalize(context: jinja2.runtime.Context, value: object) -> object:
    if isinstance(value, Times):
        value = value.cell()
    if isinstance(value, Cell | Published):
        figures: Figures = context["figures"]
        figures.append(value)
        return f"\1{len(figures) - 1}\2"
    return _ABSENT if value is None or (isinstance(value, float) and math.isnan(value)) else value


@functools.cache
def _template(lesson: str) -> tuple[jinja2.Template, frozenset[str]]:
    """A lesson's template, and the names that it must be given."""
    environment = jinja2.Environment(
        undefined=Absent,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - its text is escaped by whatever shows it
    )
    environment.globals |= _FUNCTIONS
    text = resources.files(lesson).joinpath("lesson.md.j2").read_text(encoding="utf-8")
    names = jinja2.meta.find_undeclared_variables(environment.parse(text)) - environment.globals.keys()
    return environment.from_string(text), frozenset(names)


def _number(value: Any) -> float:  # noqa: ANN401 - whatever a template has
    if isinstance(value, Times):
        return value.median
    if isinstance(value, Cell):
        value = value.number
    return math.nan if value is None or isinstance(value, Absent) else float(value)


def _saying(write: Callable[[float], str]) -> Callable[[object], object]:
    """A function of a figure or a number; what it says of an absent one is absent."""

    def say(value: object) -> object:
        number = _number(value)
        return Absent() if math.isnan(number) else write(number)

    return say


def _saying_of_cell(write: Callable[[Cell], str]) -> Callable[[object], object]:
    return lambda cell: write(cell) if isinstance(cell, Cell) and cell.number is not None else Absent()


_FUNCTIONS: Final[dict[str, object]] = {
    "ns": _saying(lambda seconds: format_ns(seconds * 1e9)),
    "times": _saying_of_cell(words.ratio),
    "plain": _saying(words.plain),
    "count": _saying(format_count),
    "percent": _saying(format_percent),
    "size": _saying(format_bytes),
    "decimal": _saying(lambda size: format_bytes(size, decimal=True)),
    "rate": _saying(words.rate),
    "figure": _saying_of_cell(words.figure),
    "nothing": nothing,
    "SPREAD": "smallest – largest; with nine repeats or more, the 95 % interval",
    "Cell": Cell,
    "Published": Published,
    "max": max,
    "min": min,
}


# --------------------------------------------------------------------------------------
# after it was rendered


def _parts(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """Title and text of each part that begins with a line of that mark; first what stands before them."""
    before, *others = re.split(rf"^{mark}(.+)$", text, flags=re.MULTILINE)
    yield "", before
    yield from zip(others[::2], others[1::2], strict=True)


def _sentences(parts: Iterable[str], figures: Figures) -> Iterator[str]:
    """Those whose figures are all there."""

    def shown(place: re.Match[str]) -> str:
        figure = figures[int(place[1])]
        if isinstance(figure, Published):
            return figure.text
        return _ABSENT if figure.value is None else words.said(figure)

    for part in parts:
        said = _FIGURE.sub(shown, re.sub(r"[ \n]+", " ", part).strip())
        if said and _ABSENT not in said:
            yield said


def _rows(text: str) -> tuple[list[list[str]], str]:
    """The cells of each line of a table, and what stands around it."""
    lines = text.splitlines()
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    return rows, "\n".join(line for line in lines if not line.startswith("|"))


def _named(text: str, figures: Figures) -> tuple[str, str]:
    name, _, title = text.partition(": ")
    return name, next(_sentences([title], figures), "")


def _figure(text: str, figures: Figures) -> Cell | Published | None:
    place = _FIGURE.fullmatch(text)
    if place is None:
        assert text in {"", _ABSENT}, text  # noqa: S101 - a mistake in the template
        return None
    return figures[int(place[1])]


def _table(heading: str, text: str, figures: Figures) -> Table | None:
    name, title = _named(heading, figures)
    (head, *rows), note = _rows(text)
    if not (rows or name.endswith("!")):
        return None
    columns = tuple(Column(*_named(each, figures)) for each in head[1:])
    return Table(
        name.rstrip("*!"),
        title,
        head[0],
        columns,
        tuple(
            Row(
                *_named(row[0], figures),
                {
                    column.name: cell
                    for column, each in zip(columns, row[1:], strict=True)
                    if isinstance(cell := _figure(each, figures), Cell)
                },
            )
            for row in rows
        ),
        original=name.endswith("*"),
        note=" ".join(_sentences(note.split("\n\n"), figures)),
    )


def _picture(heading: str, text: str, figures: Figures) -> Picture:
    fields, _, rest = text.strip().partition("\n\n")
    rows, caption = _rows(rest)
    options: dict[str, Any] = dict(line.split(": ", 1) for line in fields.splitlines())
    options |= {name: options[name] == "yes" for name in ("log", "x_log") if name in options}
    if "stepped" in options:
        options["stepped"] = tuple(options["stepped"].split("; "))
    marks = []
    for label, series, figure, *x in rows:
        place = float(x[0]) if x else None
        cell = _figure(figure, figures)
        if isinstance(cell, Published):
            marks.append(Mark(label, cell.value, series, place))
        elif cell is not None and cell.number is not None:
            marks.append(cell.mark(label, series, place))
    name, title = _named(heading, figures)
    options.setdefault("kind", "lines" if "x_axis" in options else "bars")
    return Picture(
        name,
        title,
        marks=tuple(marks),
        caption=" ".join(_sentences(caption.split("\n\n"), figures)),
        **{"unit": "s"} | options,
    )
