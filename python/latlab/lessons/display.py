"""A lesson in a notebook's cell: without scripts, so that saved notebooks keep it; or as its page."""

from __future__ import annotations

from html import escape
from typing import Final

from latlab.lessons.figures import Table
from latlab.lessons.model import Result
from latlab.text import clean

_HEIGHT_PX: Final = 900


class Page:
    """A lesson's page with its pictures, in a frame of its own: it draws them without asking any server."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def _repr_html_(self) -> str:
        from latlab.lessons.document import render  # noqa: PLC0415 - it imports altair

        page = render(self._result, "html").decode("utf-8")
        return (
            f'<iframe title="{_safe(self._result.question)}" sandbox="allow-scripts allow-downloads"'
            f' width="100%" height="{_HEIGHT_PX}" style="border: 0" srcdoc="{escape(page)}"></iframe>'
        )


def html(result: Result) -> str:
    """The answer, the tables, the reasons and what is missing."""
    parts = [f"<h3>{_safe(result.question)}</h3>", f"<p>{_safe(' '.join(result.answer))}</p>"]
    if result.beside:
        parts.append(f"<p>{_safe(result.beside)}</p>")
    if result.plain:
        parts.append("<p><b>Less evidence</b>: only the plain-Python program was run.</p>")
    parts += [_table(table) for table in result.tables]
    parts += [
        _list("Why", result.reasons),
        _list(f"Where {result.cited} misleads", [f"{each.says} {each.found}" for each in result.misled]),
        _list("Also", [f"{each.question} {each.answer}" for each in result.answers]),
        _list("Not measured", [f"{each.what}: {each.why}" for each in result.missing]),
        _list("Where this could be wrong here", result.doubts),
        _list("What do you expect?", [f"{each.question} {each.then}" for each in result.exercises]),
        _list("Next", result.further),
    ]
    return "".join(parts)


def _table(table: Table) -> str:
    heads = "".join(f"<th>{_safe(title)}</th>" for title in table.headings())
    rows = "".join(
        "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in table.lines()
    )
    note = "".join(f"<p><small>{_safe(line)}</small></p>" for line in table.notes)
    return f"<h4>{_safe(table.title)}</h4><table><tr>{heads}</tr>{rows}</table>{note}"


def _list(title: str, lines: list[str] | tuple[str, ...]) -> str:
    if not lines:
        return ""
    return f"<h4>{title}</h4><ul>" + "".join(f"<li>{_safe(line)}</li>" for line in lines) + "</ul>"


def _safe(text: str) -> str:
    return escape(clean(text))
