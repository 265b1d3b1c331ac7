"""A lesson's result as a document of the report's: HTML, Markdown and PDF come from it."""

from __future__ import annotations

from latlab.charts import table as tables
from latlab.lessons import drawing
from latlab.lessons.model import Picture, Result, Table
from latlab.report.document import Code, Document, Figure, Listing, Notice, Section, cleaned
from latlab.report.figures import figure
from latlab.units import format_seconds


def document(result: Result) -> Document:
    """The whole lesson, ready for any renderer."""
    sections = (_question(result), _code(result), _more(result), *_texts(result))
    machine = result.machine
    facts = (
        machine.get("processor", "unknown processor"),
        f"{machine.get('cpus', '?')} CPUs",
        machine.get("memory", ""),
        machine.get("system", ""),
        machine.get("python", ""),
        result.started.replace("T", " ")[:16],
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
    """The lesson as `html`, `md` or `pdf`.

    Raises:
        UserError: PDF without the extra `latlab[export]`.
    """
    from latlab.report import html, markdown, pdf  # noqa: PLC0415 - each takes some time to import

    made = document(result)
    if form == "pdf":
        return pdf.render(made)
    return (html.render(made) if form == "html" else markdown.render(made)).encode("utf-8")


def _question(result: Result) -> Section:
    guessed = result.guessed
    lines = (
        (
            f"{guessed.question} Your guess: {guessed.guess}. Here: {guessed.here}."
            f" The document: {guessed.textbook}.",
        )
        if guessed
        else ()
    )
    leading = _leading(result)
    return Section(
        id="answer",
        title=result.question,
        sentences=(*result.answer, *lines),
        listings=tuple(map(_listing, leading)),
        figures=tuple(_figure(picture) for picture in result.pictures),
        statements=tuple(table.note for table in leading if table.note),
    )


def _leading(result: Result) -> list[Table]:
    """The document's own tables; where it has none, the first of ours."""
    return [table for table in result.tables if table.original] or list(result.tables[:1])


def _code(result: Result) -> Section | None:
    if not result.programs:
        return None
    codes = tuple(Code(program.name, tuple(program.text.splitlines())) for program in result.programs)
    return Section(id="programs", title="What was run?", codes=codes)


def _more(result: Result) -> Section | None:
    others = [table for table in result.tables if table not in _leading(result)]
    charts = tuple(each for name in result.charts for each in _native(result, name))
    if not others and not charts:
        return None
    return Section(
        id="figures",
        title="What else was measured?",
        listings=tuple(_listing(table) for table in others),
        figures=charts,
        statements=tuple(f"{table.title}: {table.note}" for table in others if table.note),
    )


def _native(result: Result, name: str) -> tuple[Figure, ...]:
    return () if result.run is None else figure(result.run, name)


def _texts(result: Result) -> list[Section]:
    parts = [
        ("why", "Why is that so?", result.reasons),
        (
            "misleads",
            "Where does the document mislead?",
            tuple(f"{each.says} {each.found}" for each in result.misled),
        ),
        (
            "asks",
            "What else does it ask or say?",
            tuple(f"{each.question} {each.answer}" for each in result.answers),
        ),
        ("missing", "What was not measured?", tuple(f"{each.what}: {each.why}" for each in result.missing)),
        ("next", "What to try next?", result.further),
    ]
    return [Section(id=name, title=title, statements=lines) for name, title, lines in parts if lines]


def _notices(result: Result) -> tuple[Notice, ...]:
    found = []
    if result.plain:
        found.append(
            Notice(
                "caution",
                "Less evidence: only the plain-Python arm was run",
                "Its times hold Python's own cost, and nothing proves what the caches did.",
                "run the lesson without --plain",
            )
        )
    if result.missing:
        found.append(
            Notice(
                "caution",
                f"{len(result.missing)} of its parts could not be measured",
                "They are named below, with the reasons.",
            )
        )
    return tuple(found)


def _listing(table: Table) -> Listing:
    heads = table.headings()
    columns = tuple(tables.Column(title) for title in heads)
    rows = tuple(tuple(cells) for cells in table.lines())
    return Listing(table.title, tables.Table(columns, rows))


def _figure(picture: Picture) -> Figure:
    spec = drawing.chart(picture).to_dict(validate=False)
    spec.pop("config", None)
    spec.pop("$schema", None)
    return Figure(
        f"lesson_{picture.name}", picture.title, spec, picture.words, picture.caption, drawing.table(picture)
    )
