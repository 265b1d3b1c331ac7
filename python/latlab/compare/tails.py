"""Why a p99 changed: how often operations were slow on both sides, by what delayed them.

A rate of slow operations is a figure like any other: runs are its unit of variance, and its own precision is
that of a count (Poisson). Half an operation is added to each count, so that none has a logarithm too
(Haldane 1956). Only operations that are slow on both sides alike are counted: from the highest threshold on
from which every run kept all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from latlab.compare.contrast import RATE, contrasts
from latlab.compare.verdict import factor, verdicts
from latlab.run.causes import LEVELS
from latlab.run.disturbances import PROBE as LISTENING
from latlab.run.disturbances import UNEXPLAINED, cause_name
from latlab.run.samples import NORMAL, Key, Sample
from latlab.text import listed
from latlab.units import format_digits, format_factor, format_ns, format_span

if TYPE_CHECKING:
    from latlab.compare import Figure
    from latlab.compare.verdict import Kind
    from latlab.run.model import Record
    from latlab.run.run import Run

#: Of what damage says took no time.
_LEAST: Final = 1e-9
_MILLION: Final = 1e6
#: A cause with fewer operations over all runs of both sides is one of the others.
_FEWEST: Final = 10
OTHERS: Final = "other causes"
#: How changes of causes are told: by verdict, and whether they grew.
_KINDS: Final[tuple[tuple[str, Kind, tuple[bool, ...]], ...]] = (
    ("Grew", "changed", (True,)),
    ("Fell", "changed", (False,)),
    ("Cannot tell", "cannot-tell", (True, False)),
    ("The same", "same", (True, False)),
)


@dataclass(frozen=True, slots=True)
class Rate:
    """How often operations were slow.

    Attributes:
        name: What delayed them: `timer tick`; empty for all of them.
        a: On the first side, a million operations (a second of listening): the runs together.
        b: On the second side.
        kind: Whether that changed.
        ratio: The second side over the first, by the medians of its runs.
        low: Lower end of its corrected interval.
        high: Upper end.
    """

    name: str
    a: float
    b: float
    kind: Kind
    ratio: float
    low: float
    high: float

    def words(self, per: str = "") -> str:
        """`timer tick 3 to 120 (8–160 times)`; the interval only where it changed."""
        numbers = f"{format_digits(self.a, 2)} to {format_digits(self.b, 2)}"
        said = " ".join(part for part in (self.name, numbers, per) if part)
        if self.kind == "changed":
            ends = format_span(self.low, self.high, lambda end: format_factor(end, 2))
            return f"{said} ({ends} times)"
        return said if self.name else f"{said} ({'the same' if self.kind == 'same' else 'cannot tell'})"

    def as_json(self) -> dict[str, object]:
        """As `latlab compare --json` has it."""
        return {
            "cause": self.name or None,
            "a": self.a,
            "b": self.b,
            "verdict": self.kind,
            "ratio": self.ratio,
            "ratio_low": self.low,
            "ratio_high": self.high,
        }


@dataclass(frozen=True, slots=True)
class Tail:
    """The slow operations behind a p99.

    Attributes:
        figure: The p99.
        least_ns: Operations count that took at least so long, ns.
        whole: All of them; None where they cannot be compared.
        causes: By what delayed them, the largest increase first and what nothing explains last.
        why: Why they cannot be compared.
    """

    figure: Figure
    least_ns: float
    whole: Rate | None
    causes: tuple[Rate, ...]
    why: str = ""

    @property
    def per(self) -> str:
        """What the rates are of."""
        return "a second" if self.figure.probe == LISTENING else "in a million"

    @property
    def words(self) -> str:
        """One or more sentences.

        `4.43 µs or longer: 12 to 40 in a million (2.1–5.6 times). Grew: timer tick 1 to 29 (9–80 times).`
        """
        if self.whole is None:
            return f"not comparable: {self.why}."
        said = [f"{format_ns(self.least_ns)} or longer: {self.whole.words(self.per)}."]
        for title, kind, grew in _KINDS:
            own = [each for each in self.causes if each.kind == kind and (each.ratio > 1) in grew]
            if own:
                said.append(f"{title}: {', '.join(each.words() for each in own)}.")
        return " ".join(said)

    def as_json(self) -> dict[str, object]:
        """As `latlab compare --json` has it."""
        return {
            "probe": self.figure.probe,
            "point": self.figure.point,
            "least_ns": self.least_ns,
            "per": self.per,
            "whole": self.whole and self.whole.as_json(),
            "causes": [each.as_json() for each in self.causes],
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class _Counted:
    """One record's slow operations.

    Attributes:
        exposure: Millions of operations, or seconds.
        counts: How many, by the cause's name.
    """

    exposure: float
    counts: Counter[str]

    def sample(self, key: Key, names: Sequence[str]) -> Sample:
        """Their rate as a figure of the run."""
        count = sum(self.counts[name] for name in names) + 0.5
        value, reach = count / max(self.exposure, _LEAST), math.exp(NORMAL / math.sqrt(count))
        return Sample(key, "ns", 1, value, (value / reach, value * reach), disturbed=False)


def tails(
    figures: Iterable[Figure], sides: Sequence[Iterable[Run]], labels: Sequence[str], same: float
) -> tuple[Tail, ...]:
    """What the slow operations of changed p99 figures are made of.

    Args:
        figures: All of a comparison, the most important first.
        sides: The first side, the second, and kept runs of the machine.
        labels: What the two sides are called.
        same: Changes up to this share count as none.
    """
    wanted = {
        (each.probe, each.point): each
        for each in figures
        if each.quantile == "p99" and each.kind == "changed" and each.unit == "ns"
    }
    if not wanted:
        return ()
    records = [[_records(run.whole(), wanted) for run in side] for side in sides]
    found: list[Tail] = []
    asked: list[tuple[int, str, list[list[Sample]], tuple[float, float]]] = []
    for place, figure in wanted.items():
        own = [[run[place] for run in side if place in run] for side in records]
        why, level = _level(own[:2], labels)
        least = 0.0
        if not why:
            own = [[run for run in side if _seen_by(run) == level] for side in own]
            least = max(_complete_from(record) for side in own[:2] for run in side for record in run)
            counted = [[_counted(run, least) for run in side] for side in own]
            key = Key(f"{RATE}{figure.probe}", figure.point, "per_op", "p99")
            asked += (
                (
                    len(found),
                    name,
                    [[run.sample(key, names) for run in side] for side in counted],
                    (_together(counted[0], names), _together(counted[1], names)),
                )
                for name, names in _groups(counted[:2])
            )
        found.append(Tail(figure, least, None, (), why))
    known = contrasts([samples for _, _, samples, _ in asked])
    rates: dict[int, list[Rate]] = {}
    for (number, name, _, (a, b)), contrast, verdict in zip(
        asked, known, verdicts(known, same, together=False), strict=True
    ):
        ratio = factor(contrast.ratio)
        rates.setdefault(number, []).append(Rate(name, a, b, verdict.kind, ratio, verdict.low, verdict.high))
    for number, (whole, *causes) in rates.items():
        causes.sort(key=lambda each: (each.name in {OTHERS, UNEXPLAINED}, each.a - each.b))
        found[number] = replace(found[number], whole=whole, causes=tuple(causes))
    return tuple(found)


def _records(run: Run, wanted: Mapping[tuple[str, str], Figure]) -> dict[tuple[str, str], list[Record]]:
    """A run's undisturbed records of these figures."""
    probes = {probe for probe, _ in wanted}
    found: dict[tuple[str, str], list[Record]] = {}
    for record in run.records:
        if record.kind == "per_op" and record.probe in probes and record.samples and not record.disturbed:
            place = (record.probe, record.point.label())
            if place in wanted:
                found.setdefault(place, []).append(record)
    return found


def _level(sides: Sequence[Sequence[list[Record]]], labels: Sequence[str]) -> tuple[str, str]:
    """Why nothing can be compared, or else the most that could be seen in runs of both sides."""
    levels = [[_seen_by(run) for run in side] for side in sides]
    without = [label for label, own in zip(labels, levels, strict=True) if not any(own)]
    if without:
        return f"causes were not looked for in {listed(without)}", ""
    common = set(levels[0]) & set(levels[1]) - {""}
    if not common:
        own = [listed(list(dict.fromkeys(filter(None, side)))) for side in levels]
        return f"evidence: {own[0]} against {own[1]}", ""
    return "", max(common, key=lambda level: LEVELS.index(level) if level in LEVELS else -1)


def _seen_by(run: Sequence[Record]) -> str:
    """What could be seen of the causes in a run's records; empty where they were not looked for."""
    levels = {"" if record.tail_causes is None else record.tail_causes.level for record in run}
    return levels.pop() if len(levels) == 1 else ""


def _complete_from(record: Record) -> float:
    """Of this length and more the record kept all operations, ns."""
    if record.tail_dropped:
        return min((sample.value for sample in record.tail), default=math.inf)
    causes = record.tail_causes
    return max(record.tail_threshold or 0.0, causes.threshold_ns if causes else 0.0)


def _counted(run: Sequence[Record], least: float) -> _Counted:
    slow = (sample for record in run for sample in record.tail if sample.value >= least)
    counts = Counter(cause_name(sample.cause or UNEXPLAINED) for sample in slow)
    if run[0].probe == LISTENING:
        return _Counted(sum(block.duration_ns for record in run for block in record.blocks) / 1e9, counts)
    return _Counted(sum(record.samples for record in run) / _MILLION, counts)


def _groups(sides: Sequence[Sequence[_Counted]]) -> Iterator[tuple[str, list[str]]]:
    """All causes together, each that is frequent enough, and the others."""
    total = sum((run.counts for side in sides for run in side), Counter[str]())
    yield "", list(total)
    often = [name for name, count in total.items() if count >= _FEWEST]
    yield from ((name, [name]) for name in often)
    rare = [name for name in total if name not in often]
    if rare:
        yield OTHERS, rare


def _together(side: Sequence[_Counted], names: Iterable[str]) -> float:
    """The rate of a side's runs together."""
    exposure = sum(run.exposure for run in side)
    return sum(run.counts[name] for run in side for name in names) / exposure if exposure else 0.0
