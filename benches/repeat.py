"""Compares runs of one machine with one another, point by point: do they agree as their intervals promise?

    latlab measure --no-report --out one.jsonl; latlab measure --no-report --out two.jsonl
    .venv/bin/python benches/repeat.py one.jsonl two.jsonl [more.jsonl] [--every]

Each pair of runs is compared at every point that both measured by the same version of the method: the ratio
of the medians, and whether the 95 % intervals lie apart (each wider by half a step of the clock, as `latlab
chart` does it). Of two honest intervals of the same truth about 0.6 % lie apart, and 5 % of pairs are farther
apart than the root of the sum of their squared halves. Points that a run calls disturbed are counted apart.
A figure that was measured once has no interval and is not compared.
Nothing here is a pass mark: tests must not depend on timing.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from latlab.errors import LatlabError
from latlab.run import reader
from latlab.run.run import Run

#: A ratio from which a difference is told by itself: what nobody would call a repetition.
LARGE = 1.2
_COLUMNS = (
    "probe",
    "points",
    "pairs",
    "apart",
    "farther",
    "apart by 20 %",
    "half interval",
    "disturbed",
    "spread",
    "worst",
)


@dataclass(frozen=True)
class Figure:
    """One run's figure of a point."""

    run: str
    """Name of the run."""
    value: float
    low: float
    high: float
    """Its 95 % interval."""
    step: float = 0.0
    """Smallest difference that the instrument can show."""
    disturbed: bool = False


@dataclass(frozen=True)
class Pair:
    """Two runs at one point."""

    one: Figure
    other: Figure

    @property
    def ratio(self) -> float:
        """The larger figure over the smaller; infinite where one is nothing and the other is not."""
        low, high = sorted((abs(self.one.value), abs(self.other.value)))
        if low == high:
            return 1.0
        return high / low if low > 0 else math.inf

    @property
    def apart(self) -> bool:
        """Whether the intervals lie apart, each wider by half a step."""
        low, high = sorted((self.one, self.other), key=lambda figure: figure.value)
        return high.low - high.step / 2 > low.high + low.step / 2

    @property
    def farther(self) -> bool:
        """Whether the figures differ by more than both intervals allow together: 5 % do by chance."""
        low, high = sorted((self.one, self.other), key=lambda figure: figure.value)
        allowed = math.hypot(low.high - low.value + low.step / 2, high.value - high.low + high.step / 2)
        return high.value - low.value > allowed

    @property
    def quiet(self) -> bool:
        """Whether neither was disturbed."""
        return not (self.one.disturbed or self.other.disturbed)


@dataclass(frozen=True)
class Place:
    """One point, in all runs that have a figure of it."""

    probe: str
    label: str
    figures: tuple[Figure, ...]

    @property
    def pairs(self) -> list[Pair]:
        """Every two of its runs."""
        return [Pair(*two) for two in itertools.combinations(self.figures, 2)]

    @property
    def spread(self) -> float:
        """The highest figure over the lowest, of the undisturbed ones."""
        return max((pair.ratio for pair in self.pairs if pair.quiet), default=1.0)


@dataclass(frozen=True)
class Row:
    """What all points of one probe come to."""

    name: str
    points: int
    pairs: int
    """Of undisturbed figures."""
    apart: int
    farther: int
    large: int
    """Pairs whose intervals lie apart and whose ratio is beyond `LARGE`."""
    disturbed: int
    """Pairs of which one was disturbed, which are in no other count."""
    half: float
    """Median of the intervals' half widths, as a share of the figure."""
    spread: float
    """Median over points of the highest over the lowest figure."""
    worst: Place | None
    """The point whose undisturbed figures differ most, of those with intervals apart if there are any."""


def figures_of(runs: Sequence[tuple[str, Run]]) -> list[Place]:
    """Every point that two of the runs or more measured in the same way, in the order of the first run."""
    found: dict[tuple[object, ...], list[Figure]] = {}
    labels: dict[tuple[object, ...], str] = {}
    for name, run in runs:
        seen: set[tuple[object, ...]] = set()
        for record in run.records:
            if record.value is None or record.interval is None or record.kind == "derived":
                continue
            key = (record.probe, record.method, record.unit, tuple(record.point.fields().items()))
            if key in seen:  # the second of a point that is there twice: not the same measurement
                continue
            seen.add(key)
            labels[key] = record.point.label()
            found.setdefault(key, []).append(
                Figure(name, record.value, *record.interval, record.resolution_ns or 0.0, record.disturbed)
            )
    return [Place(str(key[0]), labels[key], tuple(own)) for key, own in found.items() if len(own) > 1]


def rungs_of(runs: Sequence[tuple[str, Run]]) -> list[Place]:
    """The ladder's rungs, as a reader sees them first."""
    found: dict[str, list[Figure]] = {}
    for name, run in runs:
        for rung in run.ladder():
            if rung.latency_p50_ns is None or rung.interval is None:
                continue
            low, high = rung.interval
            disturbed = any(flag.startswith("disturbed") for flag in rung.flags)
            found.setdefault(rung.level, []).append(
                Figure(name, rung.latency_p50_ns, low, high, rung.resolution_ns, disturbed)
            )
    return [Place("the ladder", level, tuple(own)) for level, own in found.items() if len(own) > 1]


def row(name: str, places: Sequence[Place]) -> Row:
    """What the points of one probe, or all of them, come to."""
    pairs = [pair for place in places for pair in place.pairs]
    quiet = [pair for pair in pairs if pair.quiet]
    torn = [place for place in places if any(pair.apart and pair.quiet for pair in place.pairs)]
    halves = [
        (figure.high - figure.low) / 2 / figure.value
        for place in places
        for figure in place.figures
        if figure.value > 0 and not figure.disturbed
    ]
    return Row(
        name=name,
        points=len(places),
        pairs=len(quiet),
        apart=sum(pair.apart for pair in quiet),
        farther=sum(pair.farther for pair in quiet),
        large=sum(pair.apart and pair.ratio > LARGE for pair in quiet),
        disturbed=len(pairs) - len(quiet),
        half=statistics.median(halves) if halves else 0.0,
        spread=statistics.median(place.spread for place in places) if places else 1.0,
        worst=max(torn or places, key=lambda place: place.spread, default=None),
    )


def rows_of(places: Sequence[Place]) -> list[Row]:
    """A row a probe and one of all."""
    probes = dict.fromkeys(place.probe for place in places)
    rows = [row(f"`{probe}`", [place for place in places if place.probe == probe]) for probe in probes]
    return [*rows, row("all", places)]


def table(places: Sequence[Place]) -> str:
    """The rows in Markdown."""
    lines = [
        f"| {' | '.join(_COLUMNS)} |",
        f"|{' --- |' * len(_COLUMNS)}",
    ]
    lines += [
        f"| {own.name} | {own.points} | {own.pairs} | {share(own.apart, own.pairs)} |"
        f" {share(own.farther, own.pairs)} | {own.large} | {own.half:.1%} |"
        f" {own.disturbed} | {own.spread:.2f} |"
        f" {f'{own.worst.spread:.2f} ({own.worst.label})' if own.worst else '-'} |"
        for own in rows_of(places)
    ]
    return "\n".join(lines)


def share(part: int, whole: int) -> str:
    """A count with its share."""
    return f"{part} ({part / whole:.1%})" if whole else "0"


def listed(places: Iterable[Place], *, every: bool = False) -> str:
    """Each point's figures, those with intervals apart only unless all are asked for, the worst first."""
    shown = [place for place in places if every or any(pair.apart for pair in place.pairs)]
    lines = []
    for place in sorted(shown, key=lambda place: -place.spread):
        lines.append(f"{place.spread:.3f}  {place.probe} · {place.label}")
        lines += [
            f"       {figure.run}: {figure.value:.5g} ({figure.low:.5g} to {figure.high:.5g})"
            f"{' disturbed' if figure.disturbed else ''}"
            for figure in place.figures
        ]
    return "\n".join(lines)


def main() -> None:
    """Reads the runs, prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run files of one machine")
    parser.add_argument("--every", action="store_true", help="list every point, not only what lies apart")
    arguments = parser.parse_args()
    if len(arguments.runs) < 2:  # noqa: PLR2004 - nothing to compare with
        parser.error("two runs are the least")
    try:
        runs = [(path.name.partition(".")[0], reader.read(path)) for path in arguments.runs]
    except LatlabError as error:
        sys.exit(str(error))
    places, rungs = figures_of(runs), rungs_of(runs)
    print(
        table(places),
        table(rungs),
        listed(rungs, every=True),
        listed(places, every=arguments.every),
        sep="\n\n",
    )


if __name__ == "__main__":
    main()
