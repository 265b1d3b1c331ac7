"""What the rounds of a run say together: its figures, which the core folds from its lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from latlab.errors import WorkerError
from latlab.run import model
from latlab.run.core import core
from latlab.text import clean

_FIGURES: Final = msgspec.json.Decoder(list[model.Record])


def fold(header: model.Header, lines: Sequence[model.Record]) -> list[model.Record]:
    """The figures of these lines, derived ones included.

    Raises:
        WorkerError: the core is not there.
        ValueError: it cannot make figures of them; the sentence says why.
    """
    encode = model.ENCODER.encode
    return _FIGURES.decode(core().fold(encode(header), [encode(line) for line in lines]))


def folded(
    header: model.Header, lines: Sequence[model.Record], footer: model.Footer | None
) -> tuple[Sequence[model.Record], tuple[str, ...]]:
    """The figures of a run, and what to say of them; without the core they are those in its footer."""
    if not lines:
        return () if footer is None else footer.figures, ()
    try:
        return fold(header, lines), ()
    except (WorkerError, ValueError) as error:
        why = clean(error, most=300)
    if footer is not None and footer.figures:
        return footer.figures, (f"figures are those stored with the run, without their distributions: {why}",)
    return (), (f"its rounds cannot be combined: {why}",)


def keeping(footer: model.Footer, figures: Sequence[model.Record]) -> model.Footer:
    """The footer with the figures of its run, for readers that cannot fold."""
    if not figures:
        return footer
    kept = tuple(map(without_shape, figures))
    return msgspec.structs.replace(footer, fold=core().FOLD_VERSION, figures=kept)


def without_shape(figure: model.Record) -> model.Record:
    """A figure as a footer keeps it: what was found, its range, and what failed; the rest is in its lines."""
    derived = figure.kind == "derived"
    return msgspec.structs.replace(
        figure,
        values=None,
        histogram=None,
        tail=(),
        tail_causes=None,
        blocks=(),
        channels=tuple(msgspec.structs.replace(part, histogram=None) for part in figure.channels),
        work=model.Work(),
        observed=model.Observed(),
        overhead=None,
        checks=tuple(check for check in figure.checks if not check.ok),
        findings=figure.findings if derived else None,
    )
