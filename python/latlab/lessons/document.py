"""A lesson's result as a document of the report's: HTML, Markdown and PDF come from it."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
from altair.utils import schemapi

from latlab.errors import UserError
from latlab.lessons import drawing
from latlab.lessons.figures import Picture, Table
from latlab.lessons.model import Result
from latlab.report.document import Code, Document, Figure, Section, cleaned
from latlab.report.figures import figure
from latlab.units import format_seconds
from latlab.view import table as tables
from latlab.view.drawing import plain_spec
from latlab.view.prose import Notice
from latlab.view.table import Listing
from latlab.view.theme import LIGHT, config


def document(result: Result) -> Document:
    """The whole lesson, ready for any renderer."""
    misled = [f"{each.says} {each.found}" for each in result.misled]
    answers = [f"{each.question} {each.answer}" for each in result.answers]
    missing = [f"{each.what}: {each.why}" for each in result.missing]
    exercises = [f"{each.question} {each.then}" for each in result.exercises]
    sections = (
        Section(
            id="answer",
            title=result.question,
            sentences=(*result.answer, *filter(None, [result.beside])),
            listings=tuple(map(_listing, result.leading)),
            figures=tuple(map(_figure, result.pictures)),
        ),
        _code(result),
        _statements("why", "Why is that so?", result.reasons),
        _statements("misleads", f"Where does {result.cited} mislead?", misled),
        _statements("asks", "What else does it ask or say?", answers),
        _more(result),
        _statements("missing", "What was not measured?", missing),
        _statements("doubts", "Where could this be wrong here?", result.doubts),
        _statements("exercises", "What do you expect?", exercises),
        _statements("next", "What to try next?", result.further),
    )
    machine = result.machine
    facts = (
        machine.get("processor", "unknown processor") if machine else "results of several machines",
        "1 CPU" if machine.get("cpus") == "1" else f"{machine['cpus']} CPUs" if "cpus" in machine else "",
        machine.get("memory", ""),
        machine.get("system", ""),
        machine.get("python", ""),
        machine.get("file_system", ""),
        machine.get("environment", ""),
        f"{result.started.replace('T', ' ')[:16]} UTC",
        f"{result.size} sizes, {format_seconds(result.seconds)}",
    )
    return cleaned(
        Document(
            title=f"Lesson {result.name}",
            facts=tuple(fact for fact in facts if fact),
            notices=_notices(result),
            sections=tuple(section for section in sections if section is not None),
            colophon=f"latlab {result.tool} · lesson {result.name} · after {result.origin}",
        )
    )


def render(result: Result, form: str) -> bytes:
    """The lesson as `html`, `md` or `pdf`, or its first picture as `svg`.

    Raises:
        UserError: PDF or SVG without the extra `latlab[export]`; SVG of a lesson that has drawn nothing.
    """
    if form == "svg":
        return _first_picture(result)
    from latlab.report import html, markdown, pdf  # noqa: PLC0415 - each takes some time to import

    made = document(result)
    if form == "pdf":
        return pdf.render(made)
    return (html.render(made) if form == "html" else markdown.render(made)).encode("utf-8")


def _first_picture(result: Result) -> bytes:
    from latlab.charts.picture import convert  # noqa: PLC0415 - needs the export extra

    if not result.pictures:
        raise UserError(f"the lesson {result.name} has no picture: nothing to draw was measured")
    picture = result.pictures[0]
    drawn = drawing.chart(picture).properties(title=picture.title, description=picture.words)
    drawn.config = alt.Config(**config(LIGHT, background=True))
    return convert(drawn.to_dict(), "svg")


def _code(result: Result) -> Section | None:
    if not result.programs:
        return None
    codes = tuple(Code(program.name, tuple(program.text.splitlines())) for program in result.programs)
    return Section(id="programs", title="What was run?", codes=codes)


def _more(result: Result) -> Section | None:
    others = [table for table in result.tables if table not in result.leading]
    run, charts = result.run, tuple[Figure, ...]()
    if run is not None:
        charts = tuple(each for name in result.charts for each in figure(run, name))
    if not others and not charts:
        return None
    return Section(
        id="figures",
        title="What else was measured?",
        listings=tuple(_listing(table) for table in others),
        figures=charts,
    )


def _statements(name: str, title: str, lines: Sequence[str]) -> Section | None:
    return Section(id=name, title=title, statements=tuple(lines)) if lines else None


def _notices(result: Result) -> tuple[Notice, ...]:
    found = []
    if result.plain:
        found.append(
            Notice(
                "caution",
                "Less evidence: only the plain-Python program was run",
                "Its times include the cost of Python, and nothing proves the state of the caches.",
                "run the lesson without --plain",
            )
        )
    if result.missing:
        found.append(
            Notice(
                "caution",
                f"{len(result.missing)} of its parts could not be measured",
                "They are listed below, with the reasons.",
            )
        )
    return tuple(found)


def _listing(table: Table) -> Listing:
    heads = table.headings()
    columns = tuple(tables.Column(title) for title in heads)
    rows = tuple(tuple(cells) for cells in table.lines())
    return Listing(table.title, tables.Table(columns, rows), table.notes)


def _figure(picture: Picture) -> Figure:
    # Checking it against Vega-Lite's schema takes longer than all the rest; a test does so for every picture.
    with schemapi.debug_mode(False):
        spec = plain_spec(drawing.chart(picture))
    return Figure(
        f"lesson_{picture.name}", picture.title, spec, picture.words, picture.caption, drawing.table(picture)
    )
