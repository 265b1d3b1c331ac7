"""What is answered: a range, or one for each case that nothing decides yet, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from latlab.predict.cases import Case
from latlab.predict.kept import Calibration
from latlab.predict.model import (
    EXTRAPOLATED,
    LEVEL,
    WIDEST,
    Part,
    Range,
    Source,
    largest,
    longest,
    together,
)
from latlab.units import format_ns, format_percent, format_seconds, format_span

_LONG_S: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no answer, and the command that remedies it."""

    why: str
    lifted_by: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A case.

    Attributes:
        when: `if it is in the page cache`; empty where nothing else decides.
        range: How long it takes.
        parts: What is done, of a job.
        half: Half of the width that the model gives, on a logarithm, before calibration.
    """

    when: str
    range: Range
    parts: tuple[Part, ...] = ()
    half: float = 0.0

    @property
    def extrapolated(self) -> bool:
        """Whether far more is asked for than was measured."""
        return any(
            part.beyond > EXTRAPOLATED for part in self.parts if part.resource == "disk" or not part.single
        )

    @property
    def widest(self) -> Part:
        """The part that most of the range comes from."""
        return largest(self.parts)

    @property
    def wide(self) -> bool:
        """Whether the range is too wide to be an answer."""
        return self.range.is_wide or math.exp(self.half) > WIDEST

    @property
    def answer(self) -> Range | None:
        """The range, where it is an answer."""
        return None if self.wide else self.range

    def as_json(self) -> dict[str, float | None] | None:
        """Its answer as `--json` prints it."""
        return None if self.wide else self.range.as_json()

    def __str__(self) -> str:
        """`28–41 s (90 %), most likely 33 s`; `2.4–2.9 s (at least and at most)`."""
        own = self.range
        words = ["at least and at most"] if own.bounds else [format_percent(own.level or LEVEL)]
        words += ["uncalibrated"] * (own.level is None and not own.bounds)
        words += ["extrapolated"] * self.extrapolated
        most = "" if own.seconds is None else f", most likely {_time(own.seconds, long=own.high >= _LONG_S)}"
        return f"{span(own.low, own.high)} ({', '.join(words)}){most}"


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
    """What is answered of a job, or of a program elsewhere.

    Attributes:
        job: What was asked.
        branches: One, or one for each case; none where it is refused.
        refused: Why there is none.
        gains: What would make it faster, the most first.
        notes: What the answer leaves out.
        sources: The figures that it comes from.
    """

    job: str
    branches: tuple[Branch, ...] = ()
    refused: Refused | None = None
    gains: tuple[Gain, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    @property
    def only(self) -> Branch | None:
        """The one branch that holds whatever else is so; None where something else decides."""
        return next((own for own in self.branches if not own.when), None)

    @property
    def answer(self) -> Range | None:
        """The one answer; None where it is refused, or something else decides."""
        return self.only.answer if self.only else None

    def as_json(self) -> dict[str, object]:
        """As `latlab predict --json` prints it."""
        return {
            "job": self.job,
            "answer": self.only.as_json() if self.only else None,
            "branches": [{"if": own.when, "answer": own.as_json()} for own in self.branches if own.when],
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
        sources = dict.fromkeys(part.source for branch in branches for part in branch.parts)
        return Prediction(job, branches, None, tuple(gains), tuple(notes), tuple(sources))
    wide = branches[-1]
    part, told = wide.widest, span(wide.range.low, wide.range.high)
    return Prediction(
        job,
        (),
        Refused(
            f"the range is {told}: {part.name} differed too much between repeats",
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
        return Branch(case.when, own, parts, own.half)
    return Branch(case.when, calibrated.widened(own), parts, own.half)


def span(low_s: float, high_s: float) -> str:
    """`28–41 s`, `12 min 5 s – 14 min 2 s`."""
    long = high_s >= _LONG_S
    low, high = (_time(seconds, long=long) for seconds in (low_s, high_s))
    if low == high:
        return low
    return f"{low} – {high}" if long else format_span(low_s * 1e9, high_s * 1e9, _ns)


def _time(seconds: float, *, long: bool) -> str:
    return format_seconds(seconds) if long else _ns(seconds * 1e9)


def _ns(ns: float) -> str:
    return format_ns(ns, digits=2)
