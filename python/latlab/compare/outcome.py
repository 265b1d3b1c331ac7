"""Whether gates are held, broken, or neither: what a comparison says of their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from latlab.text import listed
from latlab.units import format_factor, format_span, format_value

if TYPE_CHECKING:
    from latlab.compare import Comparison, Figure
    from latlab.compare.gate import Gate, Gates, Level

Held: TypeAlias = Literal["held", "broken", "undecided"]

#: The gravest first.
VERDICTS: Final[tuple[Held, ...]] = ("broken", "undecided", "held")
#: Exit codes of a check beside 0, all held, and 2, a mistake.
BROKEN: Final = 1
UNDECIDED: Final = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one gate with one figure.

    Attributes:
        gate: The gate.
        figure: One of its figures, of both sides.
        verdict: Broken where one limit is, held where all are.
        why: The figure against its limits, or why that is undecided.
    """

    gate: Gate
    figure: Figure
    verdict: Held
    why: str

    @property
    def level(self) -> Level:
        """What it is where it is broken."""
        return self.gate.level

    @property
    def name(self) -> str:
        """What people call the figure: `RAM`, `kernel.syscall: getppid`, `kernel.spawn: p99 of thread`."""
        return self.figure.title

    @property
    def word(self) -> str:
        """The verdict, or `warning` of a broken gate that is no more than that."""
        return "warning" if self.verdict == "broken" and self.level == "warn" else self.verdict

    def as_json(self) -> dict[str, object]:
        """As `latlab check --format json` has it."""
        figure = self.figure
        return {
            "gate": self.gate.key,
            "probe": figure.probe,
            "point": figure.point,
            "quantile": figure.quantile,
            "unit": figure.unit,
            "value": figure.b and figure.b.value,
            "verdict": self.verdict,
            "level": self.level,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Check:
    """A run compared with others by a gate file.

    Attributes:
        gates: The file.
        found: The comparison; its second side is the run.
        outcomes: One for each gate and figure, in the file's order.
    """

    gates: Gates
    found: Comparison
    outcomes: tuple[Outcome, ...]

    @property
    def code(self) -> int:
        """The exit code: 0, :data:`BROKEN` or :data:`UNDECIDED`."""
        errors = {each.verdict for each in self.outcomes if each.level == "error"}
        if "broken" in errors:
            return BROKEN
        return UNDECIDED if "undecided" in errors and self.gates.undecided == "fail" else 0

    @property
    def to_measure(self) -> list[str]:
        """Probes of what is not held, where the run itself is no reason why nothing can be compared."""
        return sorted(
            {
                each.figure.probe
                for each in self.outcomes
                if each.verdict != "held" and (each.figure.kind != "not-comparable" or each.figure.b is None)
            }
        )

    def fails(self, outcome: Outcome) -> bool:
        """Whether this one keeps the check from being passed."""
        undecided = outcome.verdict == "undecided" and self.gates.undecided == "fail"
        return outcome.level == "error" and (outcome.verdict == "broken" or undecided)

    @property
    def summary(self) -> str:
        """What became of all of them: `Not passed: 1 broken, 2 undecided and 9 held`, with a full stop."""
        counts = Counter(each.verdict for each in self.outcomes)
        parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
        return f"{'Not passed' if self.code else 'Passed'}: {listed(parts)}."

    def as_json(self) -> dict[str, object]:
        """As `latlab check --format json` prints it."""
        return {"held": self.code == 0, "gates": [each.as_json() for each in self.outcomes]}


def check(gates: Gates, found: Comparison) -> Check:
    """Checks figures against their limits.

    Args:
        gates: A gate file.
        found: A comparison by the file's `same`, whose second side is the run that is checked.

    Raises:
        UserError: a gate names no figure, or has another unit than its figure.
    """
    return Check(gates, found, tuple(_outcome(*each) for each in gates.of(found.figures)))


def _outcome(gate: Gate, figure: Figure) -> Outcome:
    reported = [*_budgets(gate, figure), *_changes(gate, figure)]
    verdicts = [verdict for verdict, _ in reported]
    verdict: Held = "broken" if "broken" in verdicts else "undecided" if "undecided" in verdicts else "held"
    # Of a gate that is broken the limits that are held do not matter.
    return Outcome(gate, figure, verdict, "; ".join(why for each, why in reported if each == verdict))


def _budgets(gate: Gate, figure: Figure) -> Iterator[tuple[Held, str]]:
    """What the range of the run's figure says of `max` and `min`."""
    own = figure.b
    for limit, what in ((gate.largest, "max"), (gate.smallest, "min")):
        if limit is None:
            continue
        written = f"{what} {format_value(limit[0], figure.unit)}"
        if own is None or not own.runs:
            yield "undecided", f"{written}: {figure.why or 'every run was disturbed'}"
            continue
        value = format_value(own.value, figure.unit)
        if own.runs == 1 and own.low == own.high:
            yield "undecided", f"{value}, {written}: measured once, which gives no range"
            continue
        low, high = (own.low, own.high) if what == "max" else (-own.high, -own.low)
        bound = limit[0] if what == "max" else -limit[0]
        verdict: Held = "held" if high <= bound else "broken" if low > bound else "undecided"
        span = format_span(own.low, own.high, lambda end: format_value(end, figure.unit))
        yield verdict, f"{value} ({span}), {written}"


def _changes(gate: Gate, figure: Figure) -> Iterator[tuple[Held, str]]:
    """What the corrected interval of the ratio says of `change`, in the direction that is worse."""
    if gate.change is None:
        return
    verdict, ratio = figure.verdict, figure.ratio
    if verdict is None or ratio is None:
        yield "undecided", f"change: {figure.why}"
        return
    faster = figure.unit == "bytes_per_s"
    limit = 1 / (1 + gate.change) if faster else 1 + gate.change
    held = verdict.low >= limit if faster else verdict.high <= limit
    beyond = verdict.high < limit if faster else verdict.low > limit
    reported: Held = "held" if held else "broken" if beyond and figure.kind == "changed" else "undecided"
    ends = format_span(verdict.low, verdict.high, lambda end: format_factor(end, 3))
    most = "at least" if faster else "at most"
    yield reported, f"ratio {format_factor(ratio, 3)} ({ends}), {most} {format_factor(limit, 3)}"
