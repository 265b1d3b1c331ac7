"""A topic: everything that is shown of one question, whatever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from latlab.findings import Found
from latlab.run.run import Run
from latlab.view.figure import Absent
from latlab.view.plot import Plot
from latlab.view.prose import Prose
from latlab.view.reading import concluded
from latlab.view.table import Table

F = TypeVar("F", bound=Found)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Surprise:
    """One thing that a person would tell a colleague.

    Attributes:
        id: Name of the rule.
        score: Orders the surprises of one run; means nothing across runs.
        text: A sentence or two with the figures and their units.
    """

    id: str
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Topic(Generic[F, T]):
    """What a topic's file offers.

    Attributes:
        id: Name of its chart and anchor of its section.
        title: The question.
        reads: What its probe concludes.
        measured: What is shown, of a run and these conclusions; or why there is nothing.
        plot: The picture.
        caption: How to read it.
        table: The figures behind it.
        prose: The answer.
        notes: Why the figures can be believed, beyond what holds for every probe.
        surprise: What is surprising in the conclusions, if something is.
    """

    id: str
    title: str
    reads: type[F]
    measured: Callable[[Run, F | None], T | Absent]
    plot: Callable[[T], Plot]
    caption: str
    table: Callable[[T], Table]
    prose: Callable[[T], Prose]
    notes: Callable[[F], Iterable[str]]
    surprise: Callable[[F], Surprise | None]

    def of(self, run: Run) -> T | Absent:
        """What is shown of a run, or why there is nothing."""
        return self.measured(run, concluded(run, self.reads))

    def surprise_of(self, run: Run) -> Surprise | None:
        """What is surprising in a run."""
        found = concluded(run, self.reads)
        return None if found is None else self.surprise(found)

    def notes_of(self, run: Run) -> tuple[str, ...]:
        """The notes on a run, each once."""
        found = concluded(run, self.reads)
        return () if found is None else tuple(dict.fromkeys(self.notes(found)))
