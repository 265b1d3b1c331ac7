"""Compares runs of one machine with one another, figure by figure: do they agree as their intervals promise?

    latlab measure --no-report --out one.jsonl; latlab measure --no-report --out two.jsonl
    .venv/bin/python benches/repeat.py one.jsonl two.jsonl [more.jsonl] [--every] [--csv FILE]

A row for each rank, for the ladder and for each probe: of all figures that two of the runs or more have by
the same version of the method, the share of pairs whose 95 % intervals overlap (each wider by half a step of
the clock), the half interval, and the highest over the lowest figure. Disturbed figures count like all
others. A figure without an interval is in the ratios alone. Nothing here is a pass mark: tests must not
depend on timing.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from latlab.errors import LatlabError
from latlab.run import reader
from latlab.run.agreement import half_interval
from latlab.run.run import Run

_COLUMNS = ("", "figures", "pairs", "overlap", "half interval", "highest/lowest", "9 of 10 below", "worst")


@dataclass(frozen=True)
class Figure:
    """One run's figure of a point."""

    run: str
    """Name of the run."""
    value: float
    interval: tuple[float, float] | None
    """95 %, where it has one."""
    step: float = 0.0
    """Smallest difference that the instrument can show."""
    by_cpu: tuple[tuple[int, float], ...] = ()
    """What each CPU of the run says alone."""


def overlap(one: Figure, other: Figure) -> bool | None:
    """Whether the intervals overlap, each wider by half a step; None where one has none."""
    if one.interval is None or other.interval is None:
        return None
    step = (one.step + other.step) / 2
    return one.interval[0] <= other.interval[1] + step and other.interval[0] <= one.interval[1] + step


@dataclass(frozen=True)
class Place:
    """One point, in all runs that have a figure of it."""

    rank: str
    probe: str
    label: str
    figures: tuple[Figure, ...]

    @property
    def overlaps(self) -> list[bool]:
        """Of every two of its runs that both have an interval."""
        pairs = itertools.combinations(self.figures, 2)
        return [known for pair in pairs if (known := overlap(*pair)) is not None]

    @property
    def spread(self) -> float:
        """The highest figure over the lowest."""
        values = [abs(figure.value) for figure in self.figures]
        low, high = min(values), max(values)
        if low == high:
            return 1.0
        return high / low if low > 0 else math.inf


@dataclass(frozen=True)
class Row:
    """What several points come to."""

    name: str
    figures: int
    pairs: int
    """Of runs that both have an interval."""
    overlapping: int
    half: float
    """Median of the intervals' half widths, as a share of the figure; nan without any."""
    spread: float
    """Median over points of the highest over the lowest figure."""
    most: float
    """Nine of ten points have at most this."""
    worst: Place | None


def figures_of(runs: Sequence[tuple[str, Run]]) -> list[Place]:
    """Every point that two of the runs or more measured in the same way, in the order of the first run."""
    found: dict[tuple[object, ...], list[Figure]] = {}
    labels: dict[tuple[object, ...], tuple[str, str]] = {}
    for name, run in runs:
        for record in run.records:
            if record.value is None or record.kind == "derived":
                continue
            point = tuple(record.point.fields().items())
            key = (record.probe, record.method, record.unit, record.kind, point)
            labels[key] = (record.rank or "", record.point.label())
            by_cpu = tuple((own.cpu, own.p50) for own in record.spread.by_cpu) if record.spread else ()
            step = record.resolution_ns or 0.0
            found.setdefault(key, []).append(Figure(name, record.value, record.interval, step, by_cpu))
    return [
        Place(labels[key][0], str(key[0]), labels[key][1], tuple(own))
        for key, own in found.items()
        if len(own) > 1
    ]


def rungs_of(runs: Sequence[tuple[str, Run]]) -> list[Place]:
    """The ladder's rungs, as a reader sees them first."""
    found: dict[str, list[Figure]] = {}
    for name, run in runs:
        for rung in run.ladder():
            if rung.latency_p50_ns is not None:
                own = Figure(name, rung.latency_p50_ns, rung.interval, rung.resolution_ns)
                found.setdefault(rung.level, []).append(own)
    return [Place("", "the ladder", level, tuple(own)) for level, own in found.items() if len(own) > 1]


def row(name: str, places: Sequence[Place]) -> Row:
    """What these points come to."""
    overlaps = [known for place in places for known in place.overlaps]
    halves = [
        half
        for place in places
        for figure in place.figures
        if (half := half_interval(figure.interval)) is not None
    ]
    spreads = sorted(place.spread for place in places)
    return Row(
        name=name,
        figures=len(places),
        pairs=len(overlaps),
        overlapping=sum(overlaps),
        half=statistics.median(halves) if halves else math.nan,
        spread=statistics.median(spreads) if spreads else math.nan,
        most=spreads[min(int(0.9 * len(spreads)), len(spreads) - 1)] if spreads else math.nan,
        worst=max(places, key=lambda place: place.spread, default=None),
    )


def rows_of(places: Sequence[Place], rungs: Sequence[Place]) -> list[Row]:
    """A row a rank, one of the ladder, and one a probe."""
    ranks = dict.fromkeys(place.rank for place in places)
    probes = dict.fromkeys(place.probe for place in places)
    return [
        *(row(rank, [place for place in places if place.rank == rank]) for rank in ranks),
        row("the ladder", rungs),
        *(row(f"`{probe}`", [place for place in places if place.probe == probe]) for probe in probes),
    ]


def table(rows: Iterable[Row]) -> str:
    """The rows in Markdown."""
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{' --- |' * len(_COLUMNS)}"]
    lines += [
        f"| {own.name} | {own.figures} | {own.pairs} | {share(own.overlapping, own.pairs)} |"
        f" {percent(own.half)} | {own.spread:.3f} | {own.most:.3f} |"
        f" {f'{own.worst.spread:.2f} ({own.worst.probe}, {own.worst.label})' if own.worst else '-'} |"
        for own in rows
    ]
    return "\n".join(lines)


def share(part: int, whole: int) -> str:
    """A part of a count."""
    return f"{part / whole:.1%}" if whole else "-"


def percent(value: float) -> str:
    """A share, or nothing."""
    return "-" if math.isnan(value) else f"{value:.1%}"


def listed(places: Iterable[Place], *, every: bool = False) -> str:
    """Each point's figures, those with intervals apart only unless all are asked for, the worst first."""
    shown = [place for place in places if every or not all(place.overlaps)]
    lines = []
    for place in sorted(shown, key=lambda place: -place.spread):
        lines.append(f"{place.spread:.3f}  {place.probe} · {place.label}")
        for figure in place.figures:
            ends = "no interval" if figure.interval is None else "{:.5g} to {:.5g}".format(*figure.interval)
            cpus = "".join(f" · CPU {cpu} {value:.5g}" for cpu, value in figure.by_cpu)
            lines.append(f"       {figure.run}: {figure.value:.5g} ({ends}){cpus}")
    return "\n".join(lines)


def write_csv(path: Path, places: Iterable[Place]) -> None:
    """A line for each figure of each run, so that every row of the table can be computed again."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("rank", "probe", "point", "run", "value", "low", "high", "by_cpu"))
        for place in places:
            for figure in place.figures:
                ends = ("", "") if figure.interval is None else tuple(f"{end:.5g}" for end in figure.interval)
                by_cpu = " ".join(f"{cpu}:{value:.5g}" for cpu, value in figure.by_cpu)
                head = (place.rank, place.probe, place.label, figure.run)
                out.writerow((*head, f"{figure.value:.5g}", *ends, by_cpu))


def main() -> None:
    """Reads the runs, prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run files of one machine")
    parser.add_argument("--every", action="store_true", help="list every point, not only what lies apart")
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="write every figure of every run to this file"
    )
    arguments = parser.parse_args()
    if len(arguments.runs) < 2:  # noqa: PLR2004 - nothing to compare with
        parser.error("two runs are the least")
    try:
        runs = [(path.name.partition(".")[0], reader.read(path)) for path in arguments.runs]
    except LatlabError as error:
        sys.exit(str(error))
    places, rungs = figures_of(runs), rungs_of(runs)
    print(
        table(rows_of(places, rungs)),
        listed(rungs, every=True),
        listed(places, every=arguments.every),
        sep="\n\n",
    )
    if arguments.csv is not None:
        write_csv(arguments.csv, places)


if __name__ == "__main__":
    main()
