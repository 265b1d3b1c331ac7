"""What is answered: a range, or one for each case that nothing decides yet, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from latlab.predict.cases import Case
from latlab.predict.kept import Calibration
from latlab.predict.model import EXTRAPOLATED, Part, Range, Source, largest, longest, together
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
        parts: What is done.
        range: How long that takes.
        half: Half of the width that the model gives, on a logarithm, before calibration.
        level: What share of kinds of jobs the range holds; None where it is not calibrated.
    """

    when: str
    parts: tuple[Part, ...]
    range: Range
    half: float
    level: float | None = None

    @property
    def extrapolated(self) -> bool:
        """Whether far more is asked for than was measured."""
        return (
            max(part.beyond for part in self.parts if part.resource == "disk" or not part.single)
            > EXTRAPOLATED
        )

    @property
    def widest(self) -> Part:
        """The part that most of the range comes from."""
        return largest(self.parts)

    @property
    def wide(self) -> bool:
        """Whether the range is too wide to be an answer."""
        return self.range.high > _WIDEST * self.range.low or math.exp(self.half) > _WIDEST

    @property
    def answer(self) -> dict[str, float | None] | None:
        """`{"seconds": 33.0, "low": 28.0, "high": 41.0, "level": 0.9}`; no level uncalibrated."""
        own = self.range
        if self.wide:
            return None
        return {"seconds": own.seconds, "low": own.low, "high": own.high, "level": self.level}


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

    job: str
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
            "job": self.job,
            "answer": only.answer if only else None,
            "branches": [] if only else [{"if": own.when, "answer": own.answer} for own in self.branches],
            "from": [source.as_json() for source in self.sources],
            "refused": None
            if self.refused is None
            else {"why": self.refused.why, "lifted_by": self.refused.lifted_by},
        }


def answered(
    job: str,
    cases: Sequence[Case],
    calibrated: Calibration | None = None,
    *,
    gains: Sequence[Gain] = (),
    notes: Sequence[str] = (),
) -> Prediction:
    """The prediction of some cases; refused where every range is too wide to be of use."""
    branches = tuple(branch_of(case, calibrated) for case in cases)
    if not all(own.wide for own in branches):
        return Prediction(job, branches, None, tuple(gains), tuple(notes))
    wide = branches[-1]
    part = wide.widest
    return Prediction(
        job,
        (),
        Refused(
            f"the range is {time_of(wide.range)}: {part.name} differed too much between repeats",
            f"latlab measure --only {part.source.probe} --profile thorough",
        ),
    )


def branch_of(case: Case, calibrated: Calibration | None) -> Branch:
    """A case with its range, as jobs that were run say that it holds."""
    parts = case.parts
    if calibrated is not None:
        moved = calibrated.moved
        parts = tuple(
            replace(
                part,
                seconds=part.seconds * math.exp(calibrated.off.get(part.sort, 0.0)),
                measured=part.measured and max(part.measured, moved.get(part.name, 0.0)),
            )
            for part in parts
        )
    own = together(parts, case.join)
    # Jobs of the calibration are about disks and files: they say nothing of a path, memory or the kernel.
    if calibrated is None or not longest(parts).source.probe.startswith("storage."):
        return Branch(case.when, parts, own, own.half)
    return Branch(case.when, parts, calibrated.widened(own), own.half, calibrated.level)


def time_of(own: Range) -> str:
    """`28–41 s`, `12 min 5 s – 14 min 2 s`."""
    if own.high >= _LONG_S:
        low, high = format_seconds(own.low), format_seconds(own.high)
        return low if low == high else f"{low} – {high}"
    low, high = format_ns(own.low * 1e9, digits=2), format_ns(own.high * 1e9, digits=2)
    return (
        low if low == high else format_span(own.low * 1e9, own.high * 1e9, lambda ns: format_ns(ns, digits=2))
    )
