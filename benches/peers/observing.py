"""What watching costs: latlab that looks for causes against latlab that does not."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peers.lines import Record, answer

WITHOUT = "LATLAB_WITHOUT_EVIDENCE"
"""Set to anything, latlab looks for no causes."""
TIMED_ALONE = (
    "memory.poke",
    "vm.fault",
    "vm.map",
    "kernel.timer",
    "kernel.wakeup",
    "kernel.spawn",
    "network.roundtrip",
    "storage.poke",
    "storage.read.sequential",
    "storage.read.random",
    "storage.write.sequential",
    "storage.write.random",
    "storage.rate",
    "storage.sync",
    "storage.files",
    "storage.reread",
)
"""The probes that time single operations and look for causes of the slow ones."""

Figures = dict[tuple[str, str], dict[str, float]]
"""Probe and figure -> point -> ns."""


def figures(records: Sequence[Record]) -> Figures:
    """Medians of all points that were timed one by one, and p99.9 of the pokes."""
    found: Figures = {}
    for record in records:
        summary = record.get("summary")
        if record["kind"] != "per_op" or not summary:
            continue
        point = ", ".join(f"{name} {value}" for name, value in record["point"].items())
        probe = str(record["probe"])
        names = [("median", "p50"), ("p99.9", "p999")] if probe == "memory.poke" else [("median", "p50")]
        for name, field in names:
            if summary.get(field):
                found.setdefault((probe, name), {})[point] = float(summary[field])
    return found


def tolerance(probe: str, figure: str) -> float:
    """What watching may change."""
    if probe == "memory.poke":
        return 0.01 if figure == "median" else 0.05
    return 0.02


@dataclass(frozen=True)
class Cost:
    """A figure of a probe with evidence over the same without it.

    A pair's ratio is the median over the points that all three of its runs have.
    """

    points: int
    ratios: tuple[float, ...]
    """One a pair, ascending."""
    sames: tuple[float, ...]
    """Without over without, one a pair, ascending."""
    furthest: tuple[str, float]
    """The point whose median over the pairs is furthest from 1, and that."""

    def answer(self, tolerance: float) -> str:
        """See `peers.lines.answer`."""
        ratio, sames = statistics.median(self.ratios), (self.sames[0], self.sames[-1])
        return answer(ratio, sames, tolerance, more_is_better=False)


Three = tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]
"""Points without evidence, with it, and without it again."""


def cost(pairs: Sequence[Three]) -> Cost | None:
    """What a figure of a probe comes to; None where no pair has a point three times."""
    ratios, sames = [], []
    of_points: dict[str, list[float]] = {}
    for before, own, after in pairs:
        common = [point for point in own if point in before and point in after]
        if not common:
            continue
        here = {point: 2 * own[point] / (before[point] + after[point]) for point in common}
        ratios.append(statistics.median(here.values()))
        sames.append(statistics.median(after[point] / before[point] for point in common))
        for point, ratio in here.items():
            of_points.setdefault(point, []).append(ratio)
    if not ratios:
        return None
    middles = {point: statistics.median(own) for point, own in of_points.items()}
    furthest = max(middles, key=lambda point: abs(middles[point] - 1))
    return Cost(len(of_points), tuple(sorted(ratios)), tuple(sorted(sames)), (furthest, middles[furthest]))


def table(pairs: Mapping[tuple[str, str], Sequence[Three]]) -> list[str]:
    """The rows, the head first."""
    rows = [
        "| figure | points | with / without evidence: median (range) | A/A: median (range) "
        "| the point furthest off | tolerance | holds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (probe, figure), threes in pairs.items():
        found = cost(threes)
        if found is None:
            continue
        allowed = tolerance(probe, figure)
        spans = [
            f"{statistics.median(own):.3f} ({own[0]:.3f}-{own[-1]:.3f})"
            for own in (found.ratios, found.sames)
        ]
        rows.append(
            f"| `{probe}`, {figure} | {found.points} | {spans[0]} | {spans[1]} "
            f"| {found.furthest[1]:.3f} ({found.furthest[0]}) | {allowed:.0%} "
            f"| {found.answer(allowed)} |"
        )
    return rows
