"""What a report says, before it is HTML, Markdown or PDF.

Sections are built from a run by `latlab.report.sections`; renderers walk this model and add nothing. Every
string here is clean: one line, without control characters. Escaping for its own language is each renderer's
duty.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

from latlab.text import clean
from latlab.topics.front import Card
from latlab.view.prose import Notice
from latlab.view.table import Listing, Table


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart.

    Attributes:
        name: The chart's name, which `latlab chart RUN NAME` takes.
        title: The question that it answers.
        spec: Vega-Lite, without colours.
        alt: What it shows, in words.
        caption: How to read it: what shading, crosses and dashes mean.
        table: The figures behind it.
    """

    name: str
    title: str
    spec: dict[str, Any]
    alt: str
    caption: str
    table: Table


@dataclass(frozen=True, slots=True)
class Method:
    """How one probe measures, in the probe's own words."""

    probe: str
    title: str
    version: int
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """A program that was run, line by line."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One question and its answer.

    Attributes:
        id: Anchor.
        title: The question.
        sentences: The answer, two sentences at most.
        listings: Tables to show.
        figures: Charts.
        notices: What to distrust.
        evidence: Why the figures can be believed, a line each.
        methods: How it was measured.
        absence: Why there is no figure; empty when there is one.
        statements: A list of statements, after the tables and charts.
        codes: Programs.
    """

    id: str
    title: str
    sentences: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()
    figures: tuple[Figure, ...] = ()
    notices: tuple[Notice, ...] = ()
    evidence: tuple[str, ...] = ()
    methods: tuple[Method, ...] = ()
    absence: str = ""
    statements: tuple[str, ...] = ()
    codes: tuple[Code, ...] = ()


@dataclass(frozen=True, slots=True)
class Front:
    """What a reader sees first.

    Attributes:
        trust: How far to trust the figures: a verdict, and its reasons.
        beside: What departs most from published figures, a sentence; may be empty.
        cards: Four figures.
        chart: One picture, whose title is its answer; none where nothing was measured.
        jobs: Jobs, and what each takes.
        surprises: The strongest ones: a sentence, and what more there is to say.
    """

    trust: tuple[str, str]
    beside: str
    cards: tuple[Card, ...]
    chart: tuple[Figure, ...]
    jobs: tuple[tuple[str, str], ...]
    surprises: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """Sections that a reader looks for together.

    Attributes:
        id: Anchor.
        title: What they are about.
        group: Under which word the page's list of chapters has it.
        sections: In order.
        answers: Place of the section that answers for it.
        folded: Whether all but its answer is shown only when it is opened.
    """

    id: str
    title: str
    group: str
    sections: tuple[Section, ...]
    answers: int = 0
    folded: bool = True

    @property
    def lead(self) -> Section:
        """The section that answers for it."""
        return self.sections[self.answers]


@dataclass(frozen=True, slots=True)
class Document:
    """A report.

    Attributes:
        title: What it is about.
        facts: Who was measured, when, by what: short phrases.
        notices: What the reader must know first: that the run was cut short.
        sections: In order.
        colophon: Where the figures are from, for the last line.
        front: What stands before the sections, where it is of a run.
        chapters: The same sections, where there are so many that a page folds them.
    """

    title: str
    facts: tuple[str, ...]
    notices: tuple[Notice, ...]
    sections: tuple[Section, ...]
    colophon: str
    front: Front | None = None
    chapters: tuple[Chapter, ...] = ()

    @property
    def groups(self) -> tuple[tuple[str, tuple[Chapter, ...]], ...]:
        """The chapters by the word under which the page's list has them."""
        return tuple((group, tuple(own)) for group, own in groupby(self.chapters, lambda each: each.group))

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All charts, in the order of the page."""
        first = () if self.front is None else self.front.chart
        return (*first, *(figure for section in self.sections for figure in section.figures))


T = TypeVar("T")


def cleaned(part: T) -> T:
    """The same part of a document with every string made safe to show, down to chart data and table cells."""
    return _cleaned(part)  # type: ignore[no-any-return]


def _cleaned(part: Any) -> Any:  # noqa: ANN401 - a walk over every type that a document holds
    if isinstance(part, str):
        return clean(part)
    # Most of a document are numbers of charts.
    if part is None or isinstance(part, float | int):
        return part
    if isinstance(part, dict):
        return {key: _cleaned(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        values = [_cleaned(value) for value in part]
        return values if isinstance(part, list) else tuple(values)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: _cleaned(getattr(part, field.name)) for field in fields(part)})
    return part
