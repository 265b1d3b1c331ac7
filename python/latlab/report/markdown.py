"""The report as Markdown: the same words and tables; a chart is its description and its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from latlab.report.cells import is_number, shown
from latlab.report.document import Code, Document, Figure, Front, Method, Section
from latlab.view.prose import Notice
from latlab.view.table import Table

# What Markdown or the HTML inside it would obey, anywhere in a line.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#!&$])")
# Longer tables are data, not reading: the HTML report has them, and CSV.
_MOST_ROWS = 24


def render(document: Document) -> str:
    """The whole text, ending in a newline."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"# {escaped(document.title)}"
    yield ""
    yield " · ".join(map(escaped, document.facts))
    yield from _notices(document.notices)
    if document.front is not None:
        yield from _front(document.front)
    for section in document.sections:
        yield from _section(section)
    methods = {method.probe: method for section in document.sections for method in section.methods}
    if methods:
        yield ""
        yield "## How was this measured?"
        for method in methods.values():
            yield from _method(method)
    yield ""
    yield "---"
    yield ""
    yield escaped(document.colophon)


def _front(front: Front) -> Iterator[str]:
    yield ""
    yield escaped(" ".join(filter(None, (*front.trust, front.beside))))
    yield ""
    yield "| figure | median | range | against the textbook | what it means |"
    yield "| --- | ---: | --- | --- | --- |"
    for card in front.cards:
        cells = (card.title, card.figure, card.ends, card.beside, card.meaning)
        yield f"| {' | '.join(map(escaped, cells))} |"
    if front.jobs:
        yield ""
        yield "**What this means for you**"
        yield ""
        yield from (f"- {escaped(f'{what}: {time}')}" for what, time in front.jobs)
    if front.surprises:
        yield ""
        yield "**Most surprising here**"
        yield ""
        for number, (first, rest) in enumerate(front.surprises, 1):
            yield f"{number}. {escaped(f'{first} {rest}'.rstrip())}"


def _section(section: Section) -> Iterator[str]:
    yield ""
    yield f"## {escaped(section.title)}"
    if section.sentences:
        yield ""
        yield " ".join(map(escaped, section.sentences))
    if section.absence:
        yield ""
        yield f"No figure: {escaped(section.absence)}"
    yield from _notices(section.notices)
    for listing in section.listings:
        yield ""
        yield f"**{escaped(listing.title)}**"
        yield from _table(listing.table)
        if listing.notes:
            yield ""
            yield from (f"- {escaped(line)}" for line in listing.notes)
    for figure in section.figures:
        yield from _figure(figure, with_table=not section.listings)
    if section.statements:
        yield ""
        yield from (f"- {escaped(line)}" for line in section.statements)
    for code in section.codes:
        yield from _code(code)
    if section.evidence:
        yield ""
        yield from (f"- {escaped(line)}" for line in section.evidence)


def _code(code: Code) -> Iterator[str]:
    yield ""
    yield f"**{escaped(code.title)}**"
    yield ""
    # Indented, so that no line of the program can end the block.
    yield from (f"    {line}".rstrip() for line in code.lines)


def _figure(figure: Figure, *, with_table: bool) -> Iterator[str]:
    yield ""
    yield f"**{escaped(figure.title)}** (chart `{figure.name}`)"
    yield ""
    yield escaped(figure.alt)
    if with_table and len(figure.table.rows) <= _MOST_ROWS:
        yield from _table(figure.table)


def _method(method: Method) -> Iterator[str]:
    yield ""
    yield f"### {escaped(method.title)} ({escaped(method.probe)}, method {method.version})"
    for paragraph in method.paragraphs:
        yield ""
        yield escaped(paragraph)


def _notices(notices: tuple[Notice, ...]) -> Iterator[str]:
    if notices:
        yield ""
    for notice in notices:
        text = f"{notice.title}: {notice.text}" if notice.text else notice.title
        remedy = f" Remedy: {notice.remedy}" if notice.remedy else ""
        yield f"- **{notice.severity}**: {escaped(text + remedy)}"


def _table(table: Table) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(escaped(column.title) for column in table.columns)} |"
    yield f"| {' | '.join('---:' if is_number(column.quantity) else '---' for column in table.columns)} |"
    for row in table.rows:
        cells = (
            escaped(shown(cell, column.quantity)) for cell, column in zip(row, table.columns, strict=True)
        )
        yield f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """A text of which Markdown obeys nothing."""
    return _SPECIAL.sub(r"\\\1", text)
