"""The time of a program elsewhere or otherwise: a range, a bracket, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from latlab.predict.answer import Refused
from latlab.predict.model import LEVEL
from latlab.units import format_ns, format_span


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds, with the range that holds `level` of such times; a bracket has no most likely time.

    Attributes:
        seconds: The most likely time; None of a bracket.
        low: Lower end.
        high: Upper end.
        level: 0.9; None of a bracket, whose ends are the cases at most and at least.
    """

    seconds: float | None
    low: float
    high: float
    level: float | None = LEVEL

    def __str__(self) -> str:
        """`2.4–2.9 s (90 %, uncalibrated), most likely 2.6 s`; `2.4–2.9 s (at least and at most)`."""
        text = span(self.low, self.high)
        most = f", most likely {format_ns(self.seconds * 1e9)}" if self.seconds is not None else ""
        level = "at least and at most" if self.level is None else f"{100 * self.level:.0f} %, uncalibrated"
        return f"{text} ({level}){most}"

    def as_json(self) -> dict[str, float | None]:
        """Its fields."""
        return {"seconds": self.seconds, "low": self.low, "high": self.high, "level": self.level}


@dataclass(frozen=True, slots=True)
class Part:
    """One category here and there.

    Attributes:
        name: Of the ledger.
        here_s: Its wall time here.
        there: The range of what it becomes.
        by: Which probes, or why it is not scaled.
    """

    name: str
    here_s: float
    there: Answer
    by: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is known of a program elsewhere or otherwise.

    Attributes:
        job: The command line.
        wall_s: What it took here, watched.
        answer: None where it is refused.
        branches: Under which condition, and the time then.
        parts: What the answer is the sum of.
        sources: Probes and points behind it.
        refused: Why there is no answer.
        notes: Sentences.
    """

    job: str
    wall_s: float
    answer: Answer | None = None
    branches: tuple[tuple[str, Answer], ...] = ()
    parts: tuple[Part, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    refused: Refused | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """As `--json` has it."""
        refused = self.refused
        return {
            "job": self.job,
            "answer": self.answer.as_json() if self.answer else None,
            "branches": [{"if": name, "answer": answer.as_json()} for name, answer in self.branches],
            "from": [{"probe": probe, "point": point} for probe, point in self.sources],
            "refused": {"why": refused.why, "lifted_by": refused.lifted_by} if refused else None,
        }


def span(low_s: float, high_s: float) -> str:
    """`2.4–2.9 s`."""
    low, high = format_ns(low_s * 1e9), format_ns(high_s * 1e9)
    return low if low == high else format_span(low_s * 1e9, high_s * 1e9)
