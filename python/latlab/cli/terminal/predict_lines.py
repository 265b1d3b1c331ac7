"""A prediction on a screen: the time first, then where it comes from and what would make it shorter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from latlab.cli.terminal.screen import Line, Screen
from latlab.predict.answer import span
from latlab.predict.job import KINDS
from latlab.text import listed
from latlab.units import format_factor, format_percent

if TYPE_CHECKING:
    from latlab.predict.answer import Prediction
    from latlab.predict.model import Range
    from latlab.run.run import Run

#: A smaller share of a job is not named.
_WORTH_SAYING = 0.01


def predict_lines(found: Prediction, run: Run, screen: Screen) -> list[Line]:
    """The whole.

    Args:
        found: What is shown.
        run: What it comes from.
        screen: Where it is shown.
    """
    if found.refused is not None:
        first = screen.wrapped(f"{found.job}: no answer; {found.refused.why}.", rest="  ", style="bold")
        return [*first, *screen.wrapped(f"To get an answer: {found.refused.lifted_by}", rest="  ")]
    lines = []
    for branch in found.branches:
        reported = f"no answer, the range is {_span(branch.range)}" if branch.wide else branch
        text = f"{found.job}{' ' + branch.when if branch.when else ''}: {reported}"
        lines += screen.wrapped(text, rest="  ", style="bold")
    for text in (*_details(found, run), *found.notes):
        lines += screen.wrapped(f"{text[:1].upper()}{text[1:]}.", rest="  ")
    return lines


def _details(found: Prediction, run: Run) -> Iterator[str]:
    for branch in found.branches:
        if len(branch.parts) > 1:
            total = sum(part.seconds for part in branch.parts)
            shares: dict[str, float] = {}
            for part in branch.parts:
                shares[part.name] = shares.get(part.name, 0.0) + part.seconds / total
            reported = [
                f"{name} {format_percent(share)}" for name, share in shares.items() if share > _WORTH_SAYING
            ]
            if len(reported) < 2:  # noqa: PLR2004 - all but nothing
                continue
            yield f"{branch.when + ': ' if branch.when else 'of that, '}{listed(reported)}"
    wide = max((branch.widest for branch in found.branches), key=lambda part: part.spread[0])
    yield (
        "most of the range comes from the uncertainty of the path"
        if wide.resource == "path"
        else f"most of the range is the variation of {wide.name} between repeats"
    )
    sources = [f"{source.probe} ({source.point})" for source in found.sources]
    yield f"from {listed(sources)}; measured {run.header.started[:16].replace('T', ' ')}"
    for gain in found.gains:
        yield f"with {gain.how}: {_span(gain.range)}, {format_factor(gain.factor, 2)} times as fast"


def _span(own: Range) -> str:
    return span(own.low, own.high)


def list_lines(screen: Screen) -> list[Line]:
    """Every job with what it takes."""
    wide = max(len(f"{kind} {takes}") for kind, (takes, _) in KINDS.items())
    return [
        line
        for kind, (takes, what) in KINDS.items()
        for line in screen.wrapped(what, first=f"{kind} {takes}".ljust(wide + 2), rest=" " * (wide + 2))
    ]
