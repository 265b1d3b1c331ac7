"""What is known when a job is predicted, and what is made of it: its cases, or what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from latlab.predict.model import Join, Part
from latlab.predict.place import Limits
from latlab.run.run import Run

CACHED: Final = "if it is in the page cache"
NOT_CACHED: Final = "if not"


@dataclass(frozen=True, slots=True)
class Known:
    """What a prediction is made of.

    Attributes:
        run: What was measured.
        limits: What bounds the page cache.
        cached: Bytes of what is read that are in the page cache; None where that was not checked.
    """

    run: Run
    limits: Limits
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which a job may go.

    Attributes:
        when: `if it is in the page cache`; empty where there is only one.
        parts: What is done.
        join: How long that takes together: one after the other, or what overlaps.
    """

    when: str
    parts: tuple[Part, ...]
    join: Join = sum

    @classmethod
    def of(cls, parts: Iterable[Part], when: str = "") -> Case:
        """One part after the other."""
        return cls(when, tuple(parts))

    def then(self, others: Sequence[Part]) -> Case:
        """The same, and these parts afterwards."""
        count, join = len(self.parts), self.join
        return Case(self.when, (*self.parts, *others), lambda times: join(times[:count]) + sum(times[count:]))


class NotMeasuredError(Exception):
    """A figure that a job needs is not in the run: what it is of, and the probe that measures it."""

    def __init__(self, what: str, probe: str) -> None:
        super().__init__(what)
        self.what, self.probe = what, probe


class NotGivenError(Exception):
    """A fact that only the user knows is missing: which one, and the option that gives it."""

    def __init__(self, what: str, lifted_by: str) -> None:
        super().__init__(what)
        self.what, self.lifted_by = what, lifted_by


def missing(what: str, probe: str) -> NoReturn:
    """The run has no such figure.

    Raises:
        NotMeasuredError: always.
    """
    raise NotMeasuredError(what, probe)


def split(size: int, room: int, cached: int | None, cache: str | None) -> Iterator[tuple[str, float]]:
    """The cases of what is read, and the share of it that comes from the page cache.

    Args:
        size: Bytes of it.
        room: Bytes that the page cache may grow to.
        cached: Bytes of it that are cached, where that is known.
        cache: What the user says: `cold`, `cached`, or nothing.
    """
    if cache is not None:
        yield "", float(cache == "cached")
    elif cached is not None:
        yield "", cached / size
    elif size > room:
        yield "", 0.0
    else:
        yield CACHED, 1.0
        yield NOT_CACHED, 0.0
