"""Figures of a machine over time: their changes, their spikes, and what changed in the environment then."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from latlab import _core
from latlab.compare import SAME, headlines, series
from latlab.compare.sides import (
    ENVIRONMENT,
    OF_ALL,
    OF_NETWORK,
    OF_STORAGE,
    files,
    is_like,
    value_at,
)
from latlab.compare.verdict import factor
from latlab.errors import RunFileError, UserError
from latlab.run.brief import Brief, brief
from latlab.run.run import load
from latlab.run.store import Store, head
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.run.model import Unit
    from latlab.run.samples import Key, Sample
    from latlab.run.store import Head

#: Runs that are looked at: the newest.
MOST: Final = 1000
#: Runs whose headline figures are looked for: one of each kind (profile, probes), the newest.
_KINDS: Final = 4

PointKind: TypeAlias = Literal["measured", "spike", "disturbed"]


@dataclass(frozen=True, slots=True)
class Point:
    """A figure in one run.

    Attributes:
        run: Place of the run.
        value: The median, in the figure's unit.
        ends: Its 95 % interval; None where nothing tells it.
        kind: `spike`: it departs from the runs before it and after it; `disturbed`: something else ran
            meanwhile. Neither says where a figure changed.
    """

    run: int
    value: float
    ends: tuple[float, float] | None
    kind: PointKind


@dataclass(frozen=True, slots=True)
class Change:
    """Where a figure changed.

    Attributes:
        run: Place of the first run after it.
        factor: The runs after it over those before it, up to the next changes.
        low: Lower end of the factor's 95 % interval.
        high: Upper end.
        environment: What changed between the two runs on either side: `kernel: 6.1 to 6.18`.
    """

    run: int
    factor: float
    low: float
    high: float
    environment: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Break:
    """From where on a figure cannot be compared with what was before.

    Attributes:
        run: Place of the first run after it.
        why: `method version: 1 to 2`.
    """

    run: int
    why: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure over time.

    Attributes:
        probe: Whose it is.
        point: What was measured.
        unit: Of the values.
        name: What people call it, where it is a headline figure; else probe and point.
        points: In the order of time.
        changes: Likewise.
        breaks: Likewise; changes are looked for between them.
    """

    probe: str
    point: str
    unit: Unit
    name: str
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    breaks: tuple[Break, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """A run.

    Attributes:
        id: Its id.
        started: When it began, as its file has it.
        environment: What differs from the run before it.
    """

    id: str
    started: str
    environment: tuple[str, ...]

    @property
    def date(self) -> str:
        """`2026-11-21 10:00`."""
        return self.started.replace("T", " ")[:16]


@dataclass(frozen=True, slots=True)
class History:
    """Figures over time.

    Attributes:
        runs: In the order of time.
        figures: Headline figures in the order of page one, or those that were asked for.
        same: Changes up to this share count as none.
        notes: What could not be read, each one sentence.
    """

    runs: tuple[Moment, ...]
    figures: tuple[Figure, ...]
    same: float
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """As `latlab history --json` prints it."""
        runs = self.runs
        return {
            "same": self.same,
            "runs": [
                {"id": run.id, "started": run.started, "environment": list(run.environment)} for run in runs
            ],
            "figures": [
                {
                    "probe": figure.probe,
                    "point": figure.point,
                    "name": figure.name,
                    "unit": figure.unit,
                    "points": [
                        {
                            "run": runs[each.run].id,
                            "value": each.value,
                            "low": each.ends and each.ends[0],
                            "high": each.ends and each.ends[1],
                            "kind": each.kind,
                        }
                        for each in figure.points
                    ],
                    "changes": [
                        {
                            "run": runs[each.run].id,
                            "factor": each.factor,
                            "low": each.low,
                            "high": each.high,
                            "environment": list(each.environment),
                        }
                        for each in figure.changes
                    ],
                    "breaks": [{"run": runs[each.run].id, "why": each.why} for each in figure.breaks],
                }
                for figure in self.figures
            ],
            "notes": list(self.notes),
        }


class _Times(NamedTuple):
    """What all figures are judged by; lists have an item a run.

    Attributes:
        environments: What differs from the run before.
        conditions: What must be alike, by the beginning of a probe's name.
        limit: A change is larger than this, as a logarithm.
        figures: How many are looked at together.
    """

    environments: list[tuple[str, ...]]
    conditions: list[dict[str, dict[str, str]]]
    limit: float
    figures: int


def found(names: Sequence[str], store: Store | None = None) -> list[Path]:
    """The run files that words name; without any, those of the machine of the newest kept run.

    Args:
        names: As for a side of a comparison.
        store: Where runs are kept.

    Raises:
        UserError: there is no such run.
    """
    known = store or Store()
    if names:
        return list(dict.fromkeys(file for name in names for file in files(name, known)))
    entries = known.entries()
    if not entries:
        raise UserError("there are no kept runs yet: `latlab measure` makes one")
    heads = _heads([entry.path for entry in entries], [])
    return [path for own, path in heads if is_like(own.machine, heads[-1][0].machine)]


def history(paths: Sequence[Path], *, figure: str = "", same: float = SAME) -> History:
    """Figures over time.

    Args:
        paths: Run files, in any order; the newest 1,000 runs are looked at.
        figure: A glob for `PROBE:POINT`; headline figures where it is empty.
        same: Changes up to this share count as none: 0.1 is 10 %.

    Raises:
        UserError: no run can be read, or none has such a figure.
    """
    notes: list[str] = []
    heads = _heads(paths, notes)
    if len(heads) > MOST:
        notes.append(f"only the newest {MOST:,} of {len(heads):,} runs are shown")
        heads = heads[-MOST:]
    names = {} if figure else _headlines(heads)
    runs = _read(heads, figure, names, notes)
    every = dict.fromkeys(each.key for run in runs for each in run.medians)
    if not every:
        what = (
            f"figure {figure!r}: `latlab list` shows the probes"
            if figure
            else "headline figure: try --figure '*'"
        )
        raise UserError(f"no run has a {what}")
    samples: dict[Key, list[tuple[int, Sample]]] = {key: [] for key in every}
    for place, run in enumerate(runs):
        for median in run.medians:
            samples[median.key].append((place, median))
    times = _Times(
        _environments([run.head for run in runs]),
        [_conditions(run.head) for run in runs],
        math.log1p(same),
        len(every),
    )
    keys = sorted(every, key=lambda each: list(names).index(each[:2])) if names else list(every)
    figures = tuple(
        _figure(key, names.get(key[:2]) or f"{key.probe} · {key.point}", samples[key], times) for key in keys
    )
    moments = (
        Moment(run.head.id, run.head.started, differs)
        for run, differs in zip(runs, times.environments, strict=True)
    )
    return History(tuple(moments), figures, same, tuple(notes))


def _heads(paths: Iterable[Path], notes: list[str]) -> list[tuple[Head, Path]]:
    """The runs in the order of time, each once."""
    found: dict[str, tuple[Head, Path]] = {}
    for path in paths:
        try:
            own = head(path)
        except RunFileError as error:
            notes.append(str(error))
        else:
            found.setdefault(own.id, (own, path))
    if not found:
        raise UserError(notes[0] if notes else "no run: name a run file, or a folder of them")
    return sorted(found.values(), key=lambda each: (each[0].started_s, each[0].id))


def _headlines(heads: Sequence[tuple[Head, Path]]) -> dict[tuple[str, str], str]:
    """Names of the figures of page one, by probe and point: of the newest run of each kind."""
    kinds: dict[tuple[str, tuple[str, ...]], Path] = {}
    for own, path in reversed(heads):
        kinds.setdefault((own.settings.profile, own.settings.only), path)
    found: dict[str, tuple[str, str]] = {}
    for path in list(kinds.values())[:_KINDS]:
        with contextlib.suppress(RunFileError):
            for place, name in headlines(load(path, in_short=True)).items():
                # What a level holds is what one run found.
                found.setdefault(name.partition(" ")[0] if name[:1] == "L" else name, place)
    return {place: name for name, place in found.items()}


def _read(
    heads: Sequence[tuple[Head, Path]],
    figure: str,
    names: Mapping[tuple[str, str], str],
    notes: list[str],
) -> list[Brief]:
    @cache
    def wanted(probe: str, point: str) -> bool:
        return fnmatchcase(f"{probe}:{point}", figure) if figure else (probe, point) in names

    probes = frozenset(probe for probe, _ in names)
    runs: list[Brief] = []
    for own, path in heads:
        try:
            runs.append(brief(path, own, wanted, probes))
        except RunFileError as error:
            notes.append(str(error))
    return runs


def _environments(heads: Sequence[Head]) -> list[tuple[str, ...]]:
    """What differs between each run and the one before it."""

    def values(own: Head) -> dict[str, str]:
        latlab = own.tool.version if own.tool else "unknown"
        own_settings = {"latlab": latlab, "profile": clean(own.settings.profile, most=20)}
        return own_settings | {name: value_at(own.machine, at) for name, at in ENVIRONMENT.items()}

    every = [values(own) for own in heads]
    return [(), *(tuple(_differences(*pair)) for pair in pairwise(every))]


def _differences(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    for name, value in after.items():
        if before[name] != value:
            yield f"{name}: {before[name]} to {value}"


def _conditions(own: Head) -> dict[str, dict[str, str]]:
    """What must be alike for figures of two runs to be compared: of all, of the disk, of the network."""
    return {
        "": {name: value_at(own.machine, at) for name, at in OF_ALL.items()},
        "storage": {name: value_at(own.machine, at) for name, at in OF_STORAGE.items()},
        "network": {name: str(getattr(own.settings, name)) for name in OF_NETWORK},
    }


def _figure(
    key: Key,
    name: str,
    samples: Sequence[tuple[int, Sample]],
    times: _Times,
) -> Figure:
    points: list[Point] = []
    changes: list[Change] = []
    breaks: list[Break] = []
    segment: list[tuple[int, Sample]] = []
    before: dict[str, str] = {}
    for place, median in samples:
        own = times.conditions[place]
        after = {"method version": str(median.method)} | own[""] | own.get(key.probe.partition(".")[0], {})
        why = "; ".join(_differences(before, after)) if before else ""
        if why:
            breaks.append(Break(place, why))
            _judge(segment, times, points, changes)
            segment = []
        segment.append((place, median))
        before = after
    _judge(segment, times, points, changes)
    unit = samples[0][1].unit
    return Figure(key.probe, key.point, unit, name, tuple(points), tuple(changes), tuple(breaks))


def _judge(
    segment: Sequence[tuple[int, Sample]], times: _Times, points: list[Point], changes: list[Change]
) -> None:
    """Adds the points and the changes of runs that can be compared with one another."""
    sound = [(place, median.value) for place, median in segment if not median.disturbed]
    spikes, found = series.judged([math.log(value) for _, value in sound], times.limit, times.figures)
    departing = {sound[at][0] for at in spikes}
    for place, median in segment:
        kind: PointKind = "disturbed" if median.disturbed else "spike" if place in departing else "measured"
        points.append(Point(place, median.value, median.ends, kind))
    for last, at, test in found:
        half = _core.t_quantile(0.975, test.degrees) * test.error
        first, run = sound[last][0] + 1, sound[at][0]
        then = tuple(dict.fromkeys(text for texts in times.environments[first : run + 1] for text in texts))
        low, middle, high = (factor(test.change + side * half) for side in (-1, 0, 1))
        changes.append(Change(run, middle, low, high, then))
