"""What `latlab compare` says of simulated runs, of which it is known whether anything changed.

    for i in $(seq 12); do latlab measure --profile quick --no-report --out $i.latlab.jsonl; done
    .venv/bin/python benches/simulated.py *.latlab.jsonl [--save WORDS]

A simulated run has the points, flags and intervals of one of these runs: what its rounds differ by. Its
figures are a normal draw with the variances and covariances that these runs have with one another. First
nothing changes; then one headline figure does, each in turn, by 30 % and, where changes of 5 % matter, by
10 %. `--save` keeps the tables in benches/results, with words for the machine.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from latlab.compare import KEPT, SAME, Comparison, Side, compare, headlines
from latlab.run.model import Record
from latlab.run.run import Run, load

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import evidence

#: Comparisons of each kind: 2,000 without a change.
TIMES: Final = 400
#: Runs a side, and kept ones beside them.
SIDES: Final = ((1, 0), (1, KEPT), (2, 0), (3, 0), (5, 0))
#: Changes, each with what counts as the same.
CHANGES: Final = ((0.1, 0.05), (0.3, SAME))
#: Runs that say by themselves how far a figure's runs lie apart; with fewer, its probe says it.
_LEAST: Final = 3
_QUANTILES: Final = ("p50", "p99")


class Key(NamedTuple):
    """A figure of a record."""

    probe: str
    point: str
    kind: str
    quantile: str


class Machine:
    """How the runs of a machine differ: of each figure its level, and its deviation in each run.

    Args:
        runs: Of one machine and profile.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        all_: dict[Key, dict[int, float]] = defaultdict(dict)
        sound: dict[Key, dict[int, float]] = defaultdict(dict)
        for number, run in enumerate(runs):
            for record in run.records:
                for key, value in figures(record):
                    for own in (all_,) if record.disturbed else (all_, sound):
                        own[key][number] = math.log(value)
        # As a comparison does: what is disturbed in most runs is compared as it is.
        logs = {key: sound[key] if 2 * len(sound[key]) >= len(own) else own for key, own in all_.items()}
        self._known = {run.id: [(each, list(figures(each))) for each in run.records] for run in runs}
        self.levels = {key: statistics.fmean(own.values()) for key, own in logs.items()}
        self.deviations = {
            key: {number: log - self.levels[key] for number, log in own.items()}
            for key, own in logs.items()
            if len(own) >= _LEAST
        }
        spreads: dict[str, list[float]] = defaultdict(list)
        for key in self.deviations:
            spreads[key.probe].append(self.between(key))
        self.usual = {probe: statistics.median(own) for probe, own in spreads.items()}

    def between(self, key: Key) -> float:
        """Standard deviation of a figure's logarithm between runs."""
        own = self.deviations[key]
        return math.sqrt(sum(value**2 for value in own.values()) / (len(own) - 1))

    def run(self, dice: random.Random, changed: tuple[str, str] = ("", ""), factor: float = 1.0) -> Run:
        """A simulated run.

        Args:
            dice: Chance.
            changed: Probe and point of what changed.
            factor: By how much.
        """
        model = dice.choice(self.runs)
        weights = [dice.gauss(0, 1) for _ in self.runs]
        records = [
            self._record(record, own, dice, weights, factor if own and own[0][0][:2] == changed else 1.0)
            for record, own in self._known[model.id]
        ]
        header = msgspec.structs.replace(model.header, id=f"run-{dice.getrandbits(60)}")
        return Run(header, records, model.footer)

    def _record(
        self,
        record: Record,
        figures: Sequence[tuple[Key, float]],
        dice: random.Random,
        weights: Sequence[float],
        factor: float,
    ) -> Record:
        summary = record.summary
        for key, value in figures:
            if summary is None or key not in self.levels:
                continue
            own = self.deviations.get(key)
            deviation = (
                dice.gauss(0, self.usual.get(key.probe, 0.0))
                if own is None
                else sum(weights[number] * each for number, each in own.items()) / math.sqrt(len(own) - 1)
            )
            new = factor * math.exp(self.levels[key] + deviation)
            ends = summary.intervals.get(key.quantile)
            moved = {} if ends is None else {key.quantile: (ends[0] * new / value, ends[1] * new / value)}
            summary = msgspec.structs.replace(
                summary, **{key.quantile: new}, intervals=summary.intervals | moved
            )
        return msgspec.structs.replace(record, summary=summary)


def place(record: Record) -> tuple[str, str]:
    """Probe and point."""
    return record.probe, record.point.label()


def figures(record: Record) -> Iterator[tuple[Key, float]]:
    """The figures of a record that are compared."""
    if record.value is None or record.kind == "derived" or record.summary is None:
        return
    for quantile in _QUANTILES if record.kind == "per_op" else _QUANTILES[:1]:
        value: float | None = getattr(record.summary, quantile)
        if value is not None and value > 0:
            yield Key(*place(record), record.kind, quantile), value


def components(machine: Machine) -> Iterator[dict[str, object]]:
    """A row for each headline figure of the last run: what its runs differ by, and its rounds."""
    run = machine.runs[-1]
    names = headlines(run)
    for record in run.records:
        key = Key(*place(record), record.kind, "p50")
        if key[:2] in names and key in machine.deviations:
            widths = [
                math.log(each.interval[1] / each.interval[0]) / (2 * 1.96)
                for other in machine.runs
                for each in other.records
                if place(each) == key[:2] and each.kind == key.kind and each.interval and each.interval[0] > 0
            ]
            yield {
                "figure": names[key[:2]],
                "runs": len(machine.deviations[key]),
                "between_runs": f"{machine.between(key):.3f}",
                "of_a_run_by_its_rounds": f"{statistics.median(widths):.3f}" if widths else "",
            }


def share(part: int, whole: int) -> str:
    """`0.4 %`."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def unchanged(machine: Machine, a_side: int, kept: int, times: int = TIMES) -> dict[str, object]:
    """A row: what is said of runs that differ by chance alone."""
    dice = random.Random(100 * a_side + kept)  # noqa: S311 - a simulation
    verdicts: Counter[str] = Counter()
    judged = alarms = comparisons = 0
    for _ in range(times):
        found = _of([machine.run(dice) for _ in range(2 * a_side + kept)], a_side)
        judged += sum(each.kind != "not-comparable" for each in found.figures)
        alarms += len(found.changed)
        kinds = [each.kind for each in found.headline]
        comparisons += "changed" in kinds
        verdicts.update(kinds)
    reported = verdicts.total() - verdicts["not-comparable"]
    return {
        "runs_a_side": f"{a_side} and {kept} kept" if kept else str(a_side),
        "comparisons": times,
        "called_changed": f"{100 * alarms / judged:.2f} %",
        "with_a_headline_changed": share(comparisons, times),
        "headlines_the_same": share(verdicts["same"], reported),
        "cannot_tell": share(verdicts["cannot-tell"], reported),
    }


def _of(runs: Sequence[Run], a_side: int, same: float = SAME) -> Comparison:
    sides = Side("A", tuple(runs[:a_side])), Side("B", tuple(runs[a_side : 2 * a_side]))
    return compare(*sides, same=same, kept=runs[2 * a_side :])


def changed(machine: Machine, change: float, same: float, times: int = TIMES) -> dict[str, object]:
    """A row: whether a change of one headline figure is found, of five runs a side."""
    dice = random.Random(round(1000 * change))  # noqa: S311 - a simulation
    visible = found = others = 0
    seen: Counter[str] = Counter()
    for number in range(times):
        before = [machine.run(dice) for _ in range(5)]
        names = headlines(before[0])
        at = list(names)[number % len(names)]
        reported = _of([*before, *(machine.run(dice, at, 1 + change) for _ in range(5))], 5, same)
        own = [each for each in reported.headline if (each.probe, each.point) == at]
        if any(each.verdict and each.verdict.smallest_visible <= change for each in own):
            visible += 1
            seen[names[at].partition(" ")[0] if names[at][:1] == "L" else names[at]] += 1
            found += any(each.kind == "changed" for each in own)
            others += any(each.kind == "changed" for each in reported.headline if each not in own)
    return {
        "change": f"+{100 * change:.0f} %",
        "same": f"{100 * same:.0f} %",
        "comparisons": times,
        "visible": visible,
        "figures_visible": len(seen),
        "found": share(found, visible),
        "another_headline_named": share(others, visible),
    }


def main() -> None:
    """Prints the tables, and keeps them where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", help="run files of one machine and profile, six or more")
    parser.add_argument("--save", metavar="WORDS", help="what the machine was like: 'under changing load'")
    parser.add_argument("--times", type=int, default=TIMES, help="comparisons of each kind")
    asked = parser.parse_args()
    machine = Machine([load(file) for file in asked.runs])
    with ProcessPoolExecutor() as pool:
        rows_alike = [pool.submit(unchanged, machine, *sides, asked.times) for sides in SIDES]
        rows_changed = [pool.submit(changed, machine, *change, asked.times) for change in CHANGES]
    tables = {
        "compare-components": list(components(machine)),
        "compare-simulated": [row.result() for row in rows_alike],
        "compare-injected": [row.result() for row in rows_changed],
    }
    for name, table in tables.items():
        for row in table:
            print("  ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
        if asked.save:
            origin = evidence.origin("benches/simulated.py *.latlab.jsonl")
            origin["machine"] = f"{origin['machine']}, {asked.save}"
            evidence.write(f"{name}.csv", [row | origin for row in table])


if __name__ == "__main__":
    main()
