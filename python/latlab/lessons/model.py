"""What a lesson found, as plain data: the terminal, the page, JSON and the notebook are renderings of it.

Standard library only: a lesson's plain-Python program runs where the measuring core cannot.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from latlab.lessons.figures import Cell, Column, Picture, Published, Row, Series, Table
from latlab.units import format_bytes

SCHEMA = "latlab.lesson/1"
Size = Literal["small", "default", "original"]
SIZES: tuple[Size, ...] = ("small", "default", "original")


@dataclass(frozen=True, slots=True)
class Program:
    """What was run: short enough to read."""

    name: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Misled:
    """Where the source misleads: what it says or does, and what was found here."""

    says: str
    found: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A question of the source, and the answer that this machine gave."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question to the reader, and the command or the place that answers it."""

    question: str
    then: str


@dataclass(frozen=True, slots=True)
class Missing:
    """What was not measured, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Guess:
    """What the reader is asked beforehand.

    Attributes:
        question: To be answered with a number.
        cell: Name of the cell that answers it: `table.row.column`.
        textbook: What the source says.
    """

    question: str
    cell: str
    textbook: Published


@dataclass(frozen=True, slots=True)
class Original:
    """What a lesson takes with the published sizes.

    Attributes:
        seconds: On two CPUs of a virtual machine with a solid-state disk.
        written: Bytes, to the disk that is measured.
        because: What of it takes so long.
    """

    seconds: float
    written: float
    because: str

    @property
    def announced(self) -> str:
        """To be said before it begins."""
        minutes = math.ceil(self.seconds / 60)
        about = "a minute" if minutes == 1 else f"{minutes} minutes"
        written = f", and up to {format_bytes(self.written, decimal=True)} written" if self.written else ""
        return f"about {about} with the published sizes (longer on a slower machine){written}: {self.because}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the reader is asked beforehand, and its answers as they are shown.

    Attributes:
        question: To be answered with a number.
        guess: The reader's; empty where nobody guessed.
        here: What was measured; `–` where it was not.
        textbook: The source's.
    """

    question: str
    guess: str
    here: str
    textbook: str


@dataclass(frozen=True)
class Reported:
    """What a lesson's own function returns: everything but what the framework knows by itself."""

    answer: tuple[str, ...]
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...] = ()
    reasons: tuple[str, ...] = ()
    misled: tuple[Misled, ...] = ()
    answers: tuple[Answer, ...] = ()
    exercises: tuple[Exercise, ...] = ()
    further: tuple[str, ...] = ()
    charts: tuple[str, ...] = ()
    series: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """A lesson that was run.

    Attributes:
        name: Of the lesson.
        question: The source's opening question.
        origin: Which document.
        size: `small`, `default` or `original`.
        plain: Whether only the plain-Python program was run: less evidence.
        tool: Version of latlab.
        started: When, UTC.
        seconds: How long it took.
        machine: What it ran on; nothing that names a person or a host.
        answer: The short answer, with this machine's figures.
        programs: What was run.
        tables: Figures.
        pictures: Charts as data.
        reasons: Why, with causes measured here.
        misled: Where the source misleads.
        answers: The source's other questions.
        missing: What was not measured.
        doubts: What on this machine could make its figures wrong, by the doctor of the Rust probe's run.
        exercises: What the reader is to predict and then to run, and to explain to somebody.
        further: What to try next.
        series: Values that are kept one by one.
        asked: What the reader is asked beforehand, with its answers; None where the lesson asks nothing.
        charts: Names of charts of `run` that belong to the lesson.
        run: The run of Rust probes (`latlab.Run`), or None; not part of the JSON.
    """

    name: str
    question: str
    origin: str
    size: Size
    plain: bool
    tool: str
    started: str
    seconds: float
    machine: Mapping[str, str]
    answer: tuple[str, ...]
    programs: tuple[Program, ...]
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...] = ()
    reasons: tuple[str, ...] = ()
    misled: tuple[Misled, ...] = ()
    answers: tuple[Answer, ...] = ()
    missing: tuple[Missing, ...] = ()
    doubts: tuple[str, ...] = ()
    exercises: tuple[Exercise, ...] = ()
    further: tuple[str, ...] = ()
    series: tuple[Series, ...] = ()
    asked: Asked | None = None
    schema: str = SCHEMA
    charts: tuple[str, ...] = field(default=(), metadata={"json": False})
    run: Any = field(default=None, repr=False, compare=False, metadata={"json": False})

    def __getitem__(self, name: str) -> Cell:
        """A cell by `table.row.column`, or by `table.row` where the table has one column.

        Raises:
            KeyError: there is none.
        """
        cells = self.cells
        if name in cells:
            return cells[name]
        return self.table(name.partition(".")[0]).cell(name.partition(".")[2])

    @property
    def cells(self) -> dict[str, Cell]:
        """Every cell by `table.row.column`."""
        return {path: cell for path, _, _, _, cell in self.figures()}

    def figures(self) -> Iterator[tuple[str, Table, Row, Column, Cell]]:
        """Every cell with its path, and with the table, the row and the column in which it stands."""
        for table in self.tables:
            for row in table.rows:
                for column in table.columns:
                    if column.name in row.cells:
                        path = f"{table.name}.{row.name}.{column.name}"
                        yield path, table, row, column, row.cells[column.name]

    @property
    def beside(self) -> str:
        """What was asked beforehand, and its answers; empty where the lesson asks nothing."""
        if self.asked is None:
            return ""
        asked, sizes = self.asked, ", of other sizes" if self.size == "small" else ""
        guess = f" Your guess: {asked.guess}." if asked.guess else ""
        return f"{asked.question}{guess} Here: {asked.here}. Published{sizes}: {asked.textbook}."

    @property
    def cited(self) -> str:
        """The source by its title: `“Disk Bandwidth”`; without one, what `origin` has before a colon."""
        title = re.search("“[^”]+”", self.origin)
        return title[0] if title else self.origin.partition(":")[0]

    @property
    def leading(self) -> tuple[Table, ...]:
        """The source's own tables; where it has none, the first of ours."""
        return tuple(table for table in self.tables if table.original) or self.tables[:1]

    def table(self, name: str) -> Table:
        """A table by its name.

        Raises:
            KeyError: there is none.
        """
        for each in self.tables:
            if each.name == name:
                return each
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """What the JSON holds: every cell with its name and unit; `schema/lesson.v1.json` describes it."""
        kept = {
            each.name: getattr(self, each.name) for each in fields(self) if each.metadata.get("json", True)
        }
        plain: dict[str, Any] = _plain(kept)
        return plain

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)

    def _repr_html_(self) -> str:
        from latlab.lessons.display import html  # noqa: PLC0415 - only in a notebook

        return html(self)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a walk over every type of a result
    if isinstance(value, float):
        # JSON has no infinity: such a figure is none.
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return value
