"""A topic: everything that is shown of one question, whatever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.view import evidence
from latlab.view.figure import Absent
from latlab.view.plot import Axis, Picture
from latlab.view.points import Spot, why_absent
from latlab.view.prose import Notice
from latlab.view.table import Listing, Table

D = TypeVar("D")


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
class CurvesOfSeveral:
    """How a chart's curves of several runs are overlaid: a panel a curve, a line a machine.

    Attributes:
        lines: The curves of one run, by name.
        x: Across.
        y: Upwards.
        at: What x is called in a table.
        value: What y is called there.
    """

    lines: Callable[[Run], Mapping[str, Sequence[Spot]]]
    x: Axis
    y: Axis
    at: str
    value: str = "median"


@dataclass(frozen=True, slots=True)
class StairsOfSeveral:
    """The same of distributions: the records of one run, by name, and the title of the axis of times."""

    records: Callable[[Run], Mapping[str, Record]]
    title: str


def _itself(picture: Any) -> Any:  # noqa: ANN401 - a picture where none is made of it
    return picture


@dataclass(frozen=True, slots=True)
class Chart(Generic[D]):
    """A picture that answers a question, and the figures behind it.

    Attributes:
        id: Its name.
        title: The question.
        caption: How to read it, or what says so of a run.
        probe: Whose figures it shows: says why there are none; empty where they are of several.
        measured: What is shown of a run, or why there is nothing; None or empty where the probe says why.
        table: The figures of that.
        picture: The picture of that; it itself where it is one.
        several: What is drawn of several runs; None where they say nothing side by side.
    """

    id: str
    title: str
    caption: str | Callable[[Run], str]
    probe: str
    measured: Callable[[Run], D | Absent | None]
    table: Callable[[D], Table]
    picture: Callable[[D], Picture] = _itself
    several: CurvesOfSeveral | StairsOfSeveral | None = None

    def of(self, run: Run) -> D | Absent:
        """What is shown of a run, or why there is nothing."""
        return self.measured(run) or Absent(why_absent(run, self.probe))

    def caption_of(self, run: Run) -> str:
        """How to read the picture of this run."""
        return self.caption if isinstance(self.caption, str) else self.caption(run)


def _nothing(_run: Run) -> tuple[()]:
    return ()


def _no_surprise(_run: Run) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Topic:
    """What a topic's file offers; of what it leaves out there is nothing.

    One without a chart gives `id`, `title`, `probes` and `shown`.

    Attributes:
        chart: The picture that answers its question; name, question and probe are the topic's.
        others: Further pictures.
        id: Anchor of its section.
        title: The question.
        probes: Whose figures it shows; the first says why there are none.
        shown: What there must be for the section to have figures; where None, one of its charts.
        prose: The answer, two sentences at most.
        listings: Tables.
        statements: A line each.
        notices: What to distrust.
        evidence: Why the figures can be believed; where None, what holds for every probe.
        surprise: What is surprising, if something is.
    """

    chart: Chart[Any] | None = None
    others: tuple[Chart[Any], ...] = ()
    id: str = ""
    title: str = ""
    probes: tuple[str, ...] = ()
    shown: Callable[[Run], object] | None = None
    prose: Callable[[Run], Iterable[str]] = _nothing
    listings: Callable[[Run], Iterable[Listing]] = _nothing
    statements: Callable[[Run], Iterable[str]] = _nothing
    notices: Callable[[Run], Iterable[Notice]] = _nothing
    evidence: Callable[[Run], Iterable[str]] | None = None
    surprise: Callable[[Run], Surprise | None] = _no_surprise

    def __post_init__(self) -> None:
        """Takes from its chart what was not given."""
        if self.chart is not None:
            own = {
                "id": self.chart.id,
                "title": self.chart.title,
                "probes": tuple(filter(None, [self.chart.probe])),
            }
            for name, value in own.items():
                object.__setattr__(self, name, getattr(self, name) or value)

    @property
    def charts(self) -> tuple[Chart[Any], ...]:
        """All of its pictures."""
        return () if self.chart is None else (self.chart, *self.others)

    def absence(self, run: Run) -> str:
        """Why there is no figure; empty where there is one."""
        if self.shown is not None:
            if self.shown(run):
                return ""
            if self.chart is not None and isinstance(found := self.chart.of(run), Absent):
                return found.why
            return why_absent(run, self.probes[0])
        absences = [found.why if isinstance(found := chart.of(run), Absent) else "" for chart in self.charts]
        return absences[0] if all(absences) else ""

    def evidence_of(self, run: Run) -> tuple[str, ...]:
        """Why its figures can be believed, a line each."""
        if self.evidence is not None:
            return tuple(self.evidence(run))
        return tuple(line for probe in self.probes for line in evidence.evidence(run, probe))
