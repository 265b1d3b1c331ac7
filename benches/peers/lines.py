"""A line of a table, a table, and what a line comes to: nothing here starts a program."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]

FILE = "FILE"
"""Stands for the file that both read; in a command it is replaced when the command is run."""
DIRECTORY = "DIR"
"""Stands for the directory of that file."""


SCALES = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "GB/s": 1e9, "/s": 1.0}
"""By what figures in ns, bytes a second and operations a second are divided for the table."""


@dataclass(frozen=True)
class Line:
    """One figure that both tools give."""

    name: str
    """What the table calls it."""
    peer: list[str]
    """The peer's command."""
    read: Callable[[str], float]
    """The peer's output -> its figure."""
    point: dict[str, Any]
    """The point of latlab's record."""
    own: Callable[[Record], float]
    """Latlab's record -> the same statistic in the same unit."""
    tolerance: float
    """Share by which the median ratio may be off."""
    probe: str = ""
    """Latlab's probe, where a table has several."""
    unit: str = ""
    """Where it is not that of the table."""
    more_is_better: bool = False
    """More than the peer is no fault; a time must agree both ways."""


@dataclass(frozen=True)
class Kind:
    """One table."""

    peer: str
    """The peer's program, or what the table calls several."""
    probe: str
    """Latlab's probe, or its probes with commas."""
    lines: Callable[[int], list[Line]]
    """Its lines, for a CPU."""
    unit: str = "ns"
    """A key of `SCALES`."""
    cpus: Callable[[int], str | None] = str
    """The CPUs that latlab may use, for that CPU; None for all."""
    runs: tuple[tuple[str, ...], ...] = ()
    """The options of latlab's runs, where one with the probe alone will not do."""
    needs: tuple[str, ...] = ()
    """Programs, where they are not the peer's name."""
    around: Callable[[list[str]], list[str]] = list
    """What latlab's command becomes where something has to happen around it."""


@dataclass(frozen=True)
class Pair:
    """The peer, latlab, the peer again."""

    before: float
    own: float
    after: float


@dataclass(frozen=True)
class Verdict:
    """What the pairs of a line come to."""

    peer: float
    """Median."""
    own: float
    ratio: float
    """Median of latlab's figure over the mean of the two beside it."""
    ratios: tuple[float, float]
    """Least and most."""
    same: float
    """Median of the peer's second figure over its first."""
    sames: tuple[float, float]
    answer: str
    """See `answer`."""


def answer(ratio: float, sames: tuple[float, float], tolerance: float, *, more_is_better: bool) -> str:
    """What a line says: `yes` where the ratio is within the tolerance.

    Where it is not, `inconclusive` if the same program differs from itself by as much, else `NO`.
    """

    def within(allowed: float) -> bool:
        return ratio >= 1 - allowed if more_is_better else abs(ratio - 1) <= allowed

    if within(tolerance):
        return "yes"
    return "inconclusive" if within(max(sames[1] - 1, 1 - sames[0])) else "NO"


def verdict(pairs: Sequence[Pair], tolerance: float, *, more_is_better: bool) -> Verdict:
    """What the pairs say, of the median ratio."""
    base = [(pair.before + pair.after) / 2 for pair in pairs]
    ratios = sorted(pair.own / peer for pair, peer in zip(pairs, base, strict=True))
    same = sorted(pair.after / pair.before for pair in pairs)
    middle = statistics.median(ratios)
    sames = (same[0], same[-1])
    return Verdict(
        peer=statistics.median(base),
        own=statistics.median(pair.own for pair in pairs),
        ratio=middle,
        ratios=(ratios[0], ratios[-1]),
        same=statistics.median(same),
        sames=sames,
        answer=answer(middle, sames, tolerance, more_is_better=more_is_better),
    )


def find(records: Sequence[Record], line: Line) -> Record | None:
    """The measured record whose point has the fields of the line, no draw and no pairing."""
    for record in records:
        own = record["point"]
        plain = "nodes" not in own and not own.get("draw")
        there = all(own.get(field) == value for field, value in line.point.items())
        if plain and there and line.probe in {"", record["probe"]} and record.get("summary"):
            return record
    return None


def placed(command: Sequence[str], file: str, directory: str) -> list[str]:
    """The command on that file, in that directory."""
    return [word.replace(FILE, file).replace(DIRECTORY, directory) for word in command]


def mean(record: Record) -> float:
    """Mean of the window means: the mean of all loads, as every window has as many."""
    return float(record["summary"]["mean"])


def p99(record: Record) -> float:
    """The 99th percentile of the single operations."""
    value = record["summary"].get("p99")
    if value is None:
        raise ValueError("too few samples for a p99")
    return float(value)


def median(record: Record) -> float:
    """Median of the window means, or of the single operations."""
    return float(record["summary"]["p50"])
