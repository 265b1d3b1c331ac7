"""The report as PDF, typeset without a browser (the extra `latlab[export]`)."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from latlab.charts.picture import convert
from latlab.errors import UserError
from latlab.report.cells import figure_and_spread, is_number, shown
from latlab.report.document import Document, Figure, Front, Section
from latlab.view.table import Listing
from latlab.view.theme import LIGHT, config

# Higher charts are made smaller: with many rows up to half of a page, so that they can still be read.
_HIGHEST_MM = 130
_MM_A_PIXEL = 0.24
#: Title, legend and labels around a chart's plane.
_AXES_PIXELS = 70
#: A cell up to this long stays on one line; the column with the longest cell above it takes what is left.
_ONE_LINE = 26
#: Characters of a line of a table. Where the others leave that column no room, all but short cells wrap.
_LINE = 105
_SHORT = 12


def render(document: Document) -> bytes:
    """The whole report.

    Raises:
        UserError: no extra `latlab[export]`.
    """
    try:
        import typst  # noqa: PLC0415 - only where it was asked for
    except ImportError:
        raise UserError("a PDF needs the extra: pip install 'latlab[export]'") from None
    template = resources.files("latlab.report").joinpath("templates", "report.typ").read_bytes()
    data = json.dumps(_data(document), ensure_ascii=False)
    return bytes(typst.compile(template, format="pdf", sys_inputs={"data": data}))


def _data(document: Document) -> dict[str, Any]:
    methods = {method.probe: method for section in document.sections for method in section.methods}
    return {
        "title": document.title,
        "facts": [_whole(fact, _ONE_LINE) for fact in document.facts],
        "colophon": document.colophon,
        "notices": [_fields(notice, "severity", "title", "text", "remedy") for notice in document.notices],
        "front": _front(document.front) if document.front else None,
        "sections": [_section(section) for section in document.sections],
        "codes": [
            {"title": code.title, "text": "\n".join(code.lines)}
            for section in document.sections
            for code in section.codes
        ],
        "methods": [
            _fields(method, "probe", "title", "version", "paragraphs") for method in methods.values()
        ],
    }


def _front(front: Front) -> dict[str, Any]:
    return {
        "trust": " ".join(filter(None, (*front.trust, front.beside))),
        "cards": [_fields(card, "title", "figure", "ends", "beside", "meaning") for card in front.cards],
        "figures": [_figure(figure) for figure in front.chart],
        "jobs": [f"{what}: {time}" for what, time in front.jobs],
        "surprises": [f"{first} {rest}".rstrip() for first, rest in front.surprises],
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        **_fields(section, "title", "sentences", "evidence", "absence", "statements"),
        "notices": [_fields(notice, "severity", "title", "text", "remedy") for notice in section.notices],
        "listings": [_listing(listing) for listing in section.listings],
        "figures": [_figure(figure) for figure in section.figures],
        "codes": [f"{code.title} ({len(code.lines)} lines)" for code in section.codes],
    }


def _listing(listing: Listing) -> dict[str, Any]:
    columns = listing.table.columns
    rows = [
        [shown(cell, column.quantity) for cell, column in zip(row, columns, strict=True)]
        for row in listing.table.rows
    ]
    lengths = [max((len(row[number]) for row in rows), default=0) for number in range(len(columns))]
    titled = [max(length, len(column.title)) for length, column in zip(lengths, columns, strict=True)]
    crowded = sum(titled) - max(titled) > _LINE - _ONE_LINE
    widest = lengths.index(max(lengths)) if max(lengths) > _ONE_LINE and not crowded else None
    kept = _SHORT if crowded else _ONE_LINE
    return {
        "title": listing.title,
        "columns": [
            {"title": column.title, "number": is_number(column.quantity), "wide": number == widest}
            for number, column in enumerate(columns)
        ],
        "rows": [[_whole(cell, kept) for cell in row] for row in rows],
        "notes": listing.notes,
    }


def _whole(cell: str, longest: int) -> str:
    """The cell with what must not be broken: all of a short one, and a spread."""
    if len(cell) <= longest:
        return _unbroken(cell)
    parts = figure_and_spread(cell)
    return cell if parts is None else " ".join(map(_unbroken, parts))


def _unbroken(text: str) -> str:
    # A dash and a slash allow a break after them, whatever comes then: a word joiner does not.
    return text.replace(" ", "\u00a0").replace("–", "–\u2060").replace("/", "/\u2060")


def _figure(figure: Figure) -> dict[str, Any]:
    svg = convert({**figure.spec, "config": config(LIGHT)}, "svg").decode("utf-8")
    pixels = _pixels(figure.spec)
    return {
        **_fields(figure, "title", "alt", "caption"),
        "svg": svg,
        "height": min(_HIGHEST_MM, (pixels + _AXES_PIXELS) * _MM_A_PIXEL),
    }


def _pixels(spec: dict[str, Any]) -> float:
    """How high the panels are without axes: of those side by side the highest, of those in a column all."""
    if "hconcat" in spec:
        return max(_pixels(panel) for panel in spec["hconcat"])
    if "vconcat" in spec:
        return sum(_pixels(panel) for panel in spec["vconcat"])
    return float(spec.get("height", 0))


def _fields(part: object, *names: str) -> dict[str, Any]:
    return {name: getattr(part, name) for name in names}
