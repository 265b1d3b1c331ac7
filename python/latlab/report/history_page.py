"""A history as one HTML file, in the form of the report: a panel a figure, those that changed first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from latlab.compare.history_words import details, ends, headline, marks
from latlab.compare.picture import KEY, panel
from latlab.installed import version
from latlab.report.document import Document, Figure, Section, cleaned
from latlab.units import format_percent
from latlab.view.prose import Notice
from latlab.view.table import Column, Listing, Table, table_of

if TYPE_CHECKING:
    from latlab.compare.history import Figure as Series
    from latlab.compare.history import History

#: Panels of a page: a browser draws so many in some seconds.
MOST: Final = 60


def render(found: History) -> bytes:
    """The whole page."""
    from latlab.report import html  # noqa: PLC0415 - takes some time to import

    return html.render(document(found)).encode("utf-8")


def document(found: History) -> Document:
    """The page, ready for a renderer."""
    changed = [figure for figure in found.figures if figure.changes]
    others = [figure for figure in found.figures if not figure.changes]
    shown = others[: max(MOST - len(changed), 0)]
    notices = [Notice("note", "Not all runs", text) for text in found.notes]
    if len(changed[:MOST]) + len(shown) < len(found.figures):
        notices.append(
            Notice(
                "note",
                "Not all figures",
                f"{MOST} of {len(found.figures)} figures are drawn: --json lists all",
            )
        )
    sections = (
        _panels("changed", "What changed?", changed[:MOST], found, 1),
        _panels("unchanged", "What did not?", shown, found, 1 + len(changed)),
        _environment(found),
        Section(id="key", title="How to read it", statements=KEY),
    )
    runs = found.runs
    return cleaned(
        Document(
            title="Figures over time",
            facts=(
                f"{len(runs):,} {'run' if len(runs) == 1 else 'runs'}",
                f"{runs[0].date} to {runs[-1].date}",
                f"changes above {format_percent(found.same)}",
            ),
            notices=tuple(notices),
            sections=tuple(section for section in sections if section is not None),
            colophon=f"latlab {version()} · history",
        )
    )


def _panels(name: str, title: str, figures: Sequence[Series], found: History, first: int) -> Section | None:
    if not figures and name != "changed":
        return None
    drawn = tuple(_panel(figure, found, number) for number, figure in enumerate(figures, first))
    return Section(
        id=name, title=title, sentences=(f"{headline(found)}.",) if name == "changed" else (), figures=drawn
    )


def _panel(figure: Series, found: History, number: int) -> Figure:
    said = [f"{text}." for text in details(figure, found)]
    return Figure(
        name=f"history_{number}",
        title=f"{figure.name}: {ends(figure)}",
        spec=panel(figure, found),
        alt=f"{figure.name} in {len(figure.points)} runs. {' '.join(said)}",
        caption=" ".join(said),
        table=table_of(
            figure.points,
            ("date", "text", lambda each: found.runs[each.run].date),
            ("run", "text", lambda each: found.runs[each.run].id),
            ("median", figure.unit, lambda each: each.value),
            ("95 % from", figure.unit, lambda each: each.ends and each.ends[0]),
            ("95 % to", figure.unit, lambda each: each.ends and each.ends[1]),
            ("kind", "text", lambda each: each.kind),
        ),
    )


def _environment(found: History) -> Section | None:
    table = Table(
        (Column("mark"), Column("what changed")), tuple((mark.sign, mark.text) for mark in marks(found))
    )
    if not table.rows:
        return None
    return Section(
        id="environment",
        title="What changed in the environment?",
        listings=(Listing("Changes of kernel, libraries, settings and latlab", table),),
    )
