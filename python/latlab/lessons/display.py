"""A lesson in a notebook's cell: tables and sentences without scripts, so that saved notebooks keep it."""

from __future__ import annotations

from html import escape

from latlab.lessons.model import Result, Table
from latlab.text import clean


def html(result: Result) -> str:
    """The answer, the tables, the reasons and what is missing."""
    parts = [f"<h3>{_safe(result.question)}</h3>", f"<p>{_safe(' '.join(result.answer))}</p>"]
    if result.plain:
        parts.append("<p><b>Less evidence</b>: only the plain-Python arm was run.</p>")
    parts += [_table(table) for table in result.tables]
    parts += [
        _list("Why", result.reasons),
        _list("Where the document misleads", [f"{each.says} {each.found}" for each in result.misled]),
        _list("Also", [f"{each.question} {each.answer}" for each in result.answers]),
        _list("Not measured", [f"{each.what}: {each.why}" for each in result.missing]),
        _list("Next", result.further),
    ]
    return "".join(parts)


def _table(table: Table) -> str:
    heads = "".join(f"<th>{_safe(title)}</th>" for title in table.headings())
    rows = "".join(
        "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in table.lines()
    )
    note = f"<p><small>{_safe(table.note)}</small></p>" if table.note else ""
    return f"<h4>{_safe(table.title)}</h4><table><tr>{heads}</tr>{rows}</table>{note}"


def _list(title: str, lines: list[str] | tuple[str, ...]) -> str:
    if not lines:
        return ""
    return f"<h4>{title}</h4><ul>" + "".join(f"<li>{_safe(line)}</li>" for line in lines) + "</ul>"


def _safe(text: str) -> str:
    return escape(clean(text))
