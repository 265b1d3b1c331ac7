"""A prediction on a screen: the time first, then where it comes from and what would make it shorter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.predict.answer import time_of
from latlab.predict.job import KINDS
from latlab.predict.model import LEVEL
from latlab.text import listed
from latlab.units import format_factor, format_ns, format_percent, format_seconds

if TYPE_CHECKING:
    from latlab.predict.answer import Branch, Prediction
    from latlab.run.run import Run

_LONG_S = 1000.0
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
        lines = screen.wrapped(f"{found.job}: no answer; {found.refused.why}.", rest="  ")
        first = [styled(line.text, "bold") for line in lines]
        return [*first, *screen.wrapped(f"To lift that: {found.refused.lifted_by}", rest="  ")]
    lines = []
    for branch in found.branches:
        reported = f"no answer, the range is {time_of(branch.range)}" if branch.wide else answer(branch)
        text = f"{found.job}{' ' + branch.when if branch.when else ''}: {reported}"
        lines += [styled(line.text, "bold") for line in screen.wrapped(text, rest="  ")]
    for text in (*_details(found, run), *found.notes):
        lines += screen.wrapped(f"{text[:1].upper()}{text[1:]}.", rest="  ")
    return lines


def answer(branch: Branch) -> str:
    """`28–41 s (90 %), most likely 33 s`."""
    own = branch.range
    likely = format_seconds(own.seconds) if own.high >= _LONG_S else format_ns(own.seconds * 1e9, digits=2)
    words = [format_percent(LEVEL if branch.level is None else branch.level)]
    words += ["uncalibrated"] * (branch.level is None) + ["extrapolated"] * branch.extrapolated
    return f"{time_of(own)} ({', '.join(words)}), most likely {likely}"


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
        "most of the range is how well the path is known"
        if wide.resource == "path"
        else f"most of the range is what {wide.name} differed by from repeat to repeat"
    )
    sources = [f"{source.probe} ({source.point})" for source in found.sources]
    yield f"from {listed(sources)}; measured {run.header.started[:16].replace('T', ' ')}"
    for gain in found.gains:
        yield f"with {gain.how}: {time_of(gain.range)}, {format_factor(gain.factor, 2)} times as fast"


def list_lines(screen: Screen) -> list[Line]:
    """Every job with what it takes."""
    wide = max(len(f"{kind} {takes}") for kind, (takes, _) in KINDS.items())
    return [
        line
        for kind, (takes, what) in KINDS.items()
        for line in screen.wrapped(what, first=f"{kind} {takes}".ljust(wide + 2), rest=" " * (wide + 2))
    ]
