"""Several jobs, one step after the other; those of a step may run concurrently and share resources.

Jobs that run at once take as long as the longest alone, or as what they share needs for all: a disk gains by
several under way what its measured queue depths gain, CPUs are as many as there are, and a path has one rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from latlab.predict import figures
from latlab.predict.answer import Prediction, Refused, answered
from latlab.predict.cases import Case, Known, NotGivenError, NotMeasuredError
from latlab.predict.job import Job
from latlab.predict.kept import Calibration
from latlab.predict.model import Part, Resource
from latlab.predict.work import cases_of

#: From this block on a disk's queue is one of streams.
_STREAM: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Step:
    """Some jobs.

    Attributes:
        jobs: At least one.
        at_once: They run concurrently.
    """

    jobs: tuple[Job, ...]
    at_once: bool = False

    @property
    def text(self) -> str:
        """`read 30 GB beside copy 1 GB`."""
        return (" beside " if self.at_once else ", then ").join(job.text for job in self.jobs)


def predict_plan(
    steps: Sequence[Step], known: Known, cpus: float, calibrated: Calibration | None = None
) -> Prediction:
    """How long all steps take, one after the other.

    Args:
        steps: At least one.
        known: What was measured.
        cpus: How many may be used.
        calibrated: What jobs that were run say of ranges.
    """
    text = ", then ".join(step.text for step in steps)
    found: list[list[Case]] = []
    for step in steps:
        own = []
        for job in step.jobs:
            try:
                own.append(cases_of(job, known))
            except NotMeasuredError as error:
                why = Refused(
                    f"{job.text}: the run has no figure of {error.what}",
                    f"latlab predict --measure {job.asked}",
                )
                return Prediction(text, (), why)
            except NotGivenError as error:
                return Prediction(text, (), Refused(f"{job.text}: {error.what}", error.lifted_by))
        found.append([_step(step, [cases[0] for cases in own], known, cpus)])
        if any(len(cases) > 1 for cases in own):
            found[-1].append(_step(step, [cases[-1] for cases in own], known, cpus))
    whole = [_sequence([cases[0] for cases in found])]
    if any(len(cases) > 1 for cases in found):
        # What is in the page cache is there for all of them, or for none: never an average.
        first, last = (_sequence([cases[place] for cases in found]) for place in (0, -1))
        whole = [
            Case("if what they read is in the page cache", first.parts, first.join),
            Case("if not", last.parts, last.join),
        ]
    return answered(text, whole, calibrated)


def _sequence(cases: Sequence[Case]) -> Case:
    """One after the other."""
    return Case("", tuple(part for case in cases for part in case.parts), _Each(cases))


def _step(step: Step, cases: Sequence[Case], known: Known, cpus: float) -> Case:
    if not step.at_once:
        return _sequence(cases)
    parts = tuple(part for case in cases for part in case.parts)
    room: dict[Resource, float] = {
        "cpu": max(cpus, 1.0),
        "path": 1.0,
        "disk": _gained(known, parts, len(cases)),
    }
    return Case("", parts, _Beside(cases, parts, room))


def _gained(known: Known, parts: Sequence[Part], count: int) -> float:
    """How many times as fast a disk is with so many under way as with one; 1 where nobody measured it."""
    streams = all(not part.single for part in parts if part.resource == "disk")
    by_depth = {
        own.depth: own.part.seconds
        for own in figures.depths(known.run, figures.RANDOM, "")
        if (own.size >= _STREAM) == streams and own.depth <= count
    }
    alone = by_depth.get(1)
    return max(alone / min(by_depth.values()), 1.0) if alone else 1.0


@dataclass(frozen=True, slots=True)
class _Each:
    """Cases whose times add."""

    cases: Sequence[Case]

    def __call__(self, times: Sequence[float]) -> float:
        return sum(_of_each(self.cases, times))


@dataclass(frozen=True, slots=True)
class _Beside:
    """Cases that run at once: the longest, or what they share."""

    cases: Sequence[Case]
    parts: Sequence[Part]
    room: dict[Resource, float]

    def __call__(self, times: Sequence[float]) -> float:
        shared = [
            sum(seconds for part, seconds in zip(self.parts, times, strict=True) if part.resource == resource)
            / room
            for resource, room in self.room.items()
        ]
        return max(*_of_each(self.cases, times), *shared)


def _of_each(cases: Sequence[Case], times: Sequence[float]) -> list[float]:
    own, at = [], 0
    for case in cases:
        own.append(case.join(times[at : at + len(case.parts)]))
        at += len(case.parts)
    return own
