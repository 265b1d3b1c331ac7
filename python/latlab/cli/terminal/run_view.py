"""A run as a person reads it: one page, or with all its details."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latlab.cli.terminal.first_page import page_lines
from latlab.cli.terminal.header import counted, header_lines, trust_lines
from latlab.cli.terminal.ladder_table import ladder_lines
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.doctor import important
from latlab.run.textbook import USUAL
from latlab.topics.surprises import surprises

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latlab.run.model import Absence, Record
    from latlab.run.run import Run


def run_lines(run: Run, screen: Screen, *, verbose: bool = False, header: bool = True) -> list[Line]:
    """One page, or the whole view.

    Args:
        run: Any run.
        screen: Where it is shown.
        verbose: The whole ladder, its notes, the surprises, what was not measured and the details of the
            figures.
        header: With the machine and the doctor's findings, which a run that was just measured has shown
            already.
    """
    lines: list[Line] = []
    if header:
        lines += header_lines(run.header.tool.version, run.header.machine, screen)
        lines += state_lines(run, screen)
        if verbose:
            lines += trust_lines(run.header.doctor, screen)
        lines.append(Line())
    rungs = run.ladder()
    if not verbose:
        return [*lines, *page_lines(run, rungs, screen, USUAL.year), *_rest(run, screen, warn=header)]
    lines += ladder_lines(rungs, screen, textbook_year=USUAL.year)
    lines += surprise_lines(run, screen)
    return lines + absence_lines(run, screen)


def _rest(run: Run, screen: Screen, *, warn: bool) -> list[Line]:
    """What to distrust, what is missing, and where all of it is."""
    lines, grave = [Line()], important(tuple(run.header.doctor))
    if grave and warn:
        text = f"{counted(grave)} (latlab doctor): {grave[0].title}{'; …' if len(grave) > 1 else ''}"
        lines += screen.wrapped(text, rest="  ", style="yellow")
    absent = len(list(_without_figure(run)))
    missing = f"{absent:,} points were not measured. " if absent else ""
    return [*lines, *screen.wrapped(f"{missing}latlab show -v has all rows, reasons and proofs.")]


def state_lines(run: Run, screen: Screen) -> list[Line]:
    """When it was measured, by which profile, and whether it came to its end."""
    started = run.header.started[:16].replace("T", " ")
    text = f"measured {started} · profile {run.header.settings.profile} · {run.made_of}"
    if run.footer is None:
        return screen.wrapped(f"{text} · cut short: shows what was saved", rest="  ")
    if run.footer.stopped_by == "interrupted":
        text += " · interrupted: shows what was finished"
    elif run.footer.stopped_by.startswith("failed"):
        text += f" · {run.footer.stopped_by}"
    return screen.wrapped(text, rest="  ")


def surprise_lines(run: Run, screen: Screen) -> list[Line]:
    """The three things that a person would tell a colleague."""
    found = surprises(run)
    if not found:
        return []
    lines = [Line(), styled(" surprises", "bold")]
    for number, surprise in enumerate(found, 1):
        lines += screen.wrapped(surprise.text, first=f"  {number} ", rest="    ")
    return lines


def absence_lines(run: Run, screen: Screen) -> list[Line]:
    """What was not measured, and why: one line a reason. What only some rounds lack comes last."""
    reasons: dict[str, list[str]] = {}
    for what, record, error in _without_figure(run):
        reasons.setdefault(f"{what}: {error.text}", []).append(record.point.label())
    if not reasons:
        return []
    lines = [Line(), styled(" not measured", "bold")]
    for reason, points in reasons.items():
        named = [point for point in points if point]
        where = f" ({'; '.join(named[:3])}{'; …' if len(named) > 3 else ''})" if named else ""  # noqa: PLR2004 - a line
        lines += screen.wrapped(f"{reason}{where}", first="  · ", rest="    ")
    return lines


def _without_figure(run: Run) -> Iterator[tuple[str, Record, Absence]]:
    """Points without a figure, then those that a round lacks for another reason than time and others have."""
    figures = set()
    for record in run.records:
        if record.error is None:
            figures.add((record.probe, record.point))
        else:
            yield record.probe, record, record.error
    for line in run.lines:
        error = line.error
        if error is None or error.kind == "not_reached" or (line.probe, line.point) not in figures:
            continue
        yield f"{line.probe} in round {line.round}", line, error
