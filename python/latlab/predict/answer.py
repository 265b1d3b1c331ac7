"""What is answered: a range, or one for each case that nothing decides yet, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from latlab.predict.job import Job
from latlab.predict.model import EXTRAPOLATED, LEVEL, Part, Range, Source, largest, together
from latlab.units import format_ns, format_seconds, format_span

#: A wider range is no answer.
_WIDEST: Final = 4.0
_LONG_S: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no answer, and the command that lifts it."""

    why: str
    lifted_by: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A case.

    Attributes:
        when: `if it is in the page cache`; empty where there is only one.
        parts: What is done, one after the other.
        range: How long that takes.
    """

    when: str
    parts: tuple[Part, ...]
    range: Range

    @property
    def extrapolated(self) -> bool:
        """Whether far more is asked for than was measured."""
        return max(part.beyond for part in self.parts) > EXTRAPOLATED

    @property
    def widest(self) -> Part:
        """The part that most of the range comes from."""
        return largest(self.parts)

    def as_json(self) -> dict[str, object]:
        """`{"if": …, "answer": {…}}`."""
        return {"if": self.when, "answer": answer_json(self.range)}


@dataclass(frozen=True, slots=True)
class Gain:
    """What would make it faster.

    Attributes:
        how: `--block 1MiB`.
        range: How long it takes then.
        factor: How many times as fast that is.
    """

    how: str
    range: Range
    factor: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """An answer.

    Attributes:
        job: What was asked.
        branches: One, or one for each case; none where it is refused.
        refused: Why there is none.
        gains: What would make it faster, the most first.
        notes: What the answer leaves out.
    """

    job: Job
    branches: tuple[Branch, ...]
    refused: Refused | None = None
    gains: tuple[Gain, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The figures that it comes from."""
        return tuple(dict.fromkeys(part.source for branch in self.branches for part in branch.parts))

    def as_json(self) -> dict[str, object]:
        """As `latlab predict --json` prints it."""
        only = self.branches[0] if len(self.branches) == 1 else None
        return {
            "job": self.job.text,
            "answer": answer_json(only.range) if only else None,
            "branches": [] if only else [branch.as_json() for branch in self.branches],
            "from": [source.as_json() for source in self.sources],
            "refused": None
            if self.refused is None
            else {"why": self.refused.why, "lifted_by": self.refused.lifted_by},
            "uncalibrated": True,
            "extrapolated": any(branch.extrapolated for branch in self.branches),
        }


def answer_json(own: Range) -> dict[str, float]:
    """`{"seconds": 33.0, "low": 28.0, "high": 41.0, "level": 0.9}`."""
    return {"seconds": own.seconds, "low": own.low, "high": own.high, "level": LEVEL}


def answered(
    job: Job, cases: Sequence[tuple[str, Sequence[Part]]], **more: tuple[Gain, ...] | tuple[str, ...]
) -> Prediction:
    """The prediction of some cases; refused where a range is too wide to be of use."""
    branches = tuple(Branch(when, tuple(parts), together(parts)) for when, parts in cases)
    wide = next((own for own in branches if own.range.high > _WIDEST * own.range.low), None)
    if wide is not None:
        part = wide.widest
        return Prediction(
            job,
            (),
            Refused(
                f"the range is {time_of(wide.range)}: {part.name} differed too much between repeats",
                f"latlab measure --only {part.source.probe} --profile thorough",
            ),
        )
    return Prediction(job, branches, **more)  # type: ignore[arg-type]


def time_of(own: Range) -> str:
    """`28–41 s`, `12 min 5 s – 14 min 2 s`."""
    if own.high >= _LONG_S:
        low, high = format_seconds(own.low), format_seconds(own.high)
        return low if low == high else f"{low} – {high}"
    low, high = format_ns(own.low * 1e9, digits=2), format_ns(own.high * 1e9, digits=2)
    return (
        low if low == high else format_span(own.low * 1e9, own.high * 1e9, lambda ns: format_ns(ns, digits=2))
    )
