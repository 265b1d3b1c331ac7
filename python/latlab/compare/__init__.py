"""Did it change, and how sure: two sides of one or more runs, figure by figure.

    from latlab import compare
    found = compare.compare(compare.side("before=old/*.jsonl"), compare.side("after=new/*.jsonl"))
    found.changed

Runs are the unit of variance.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab import _core
from latlab.compare.contrast import SEVERAL, contrasts
from latlab.compare.sides import (
    Objections,
    Side,
    both,
    both_named,
    environment,
    have_several_hosts,
    is_like,
    read,
    side,
)
from latlab.compare.tails import Tail, tails
from latlab.compare.verdict import Kind, Verdict, verdicts
from latlab.errors import RunFileError
from latlab.run.run import Run, load
from latlab.run.store import Store, head
from latlab.topics.front import ROWS

if TYPE_CHECKING:
    from latlab.run.model import Unit
    from latlab.run.samples import Key, Sample

__all__ = [
    "Comparison",
    "Figure",
    "Side",
    "Values",
    "both",
    "both_named",
    "compare",
    "have_several_hosts",
    "read",
    "side",
    "stored",
]

#: What counts as the same unless something else is asked for.
SAME: Final = 0.1
#: A share larger than so many times is no limit.
MOST_CHANGE: Final = 10.0
#: So many kept runs say how far runs of a machine lie apart: the newest.
KEPT: Final = 6
#: How a figure was timed, where that alone tells two apart.
_TIMED: Final = {"batch_mean": "in windows", "per_op": "each timed"}
#: What the record behind a row of page one is, where that row shows a part of it.
_NAMES: Final = {"context-switch": "two context switches", "file-create": "small file, all its steps"}


@dataclass(frozen=True, slots=True)
class Values:
    """A figure of one side: the centre of its runs, or of its hosts where surveys are compared.

    Attributes:
        value: The figure, in its unit.
        low: Of one run its interval's lower end, of several the lowest run.
        high: Likewise.
        runs: Undisturbed ones that have it; hosts likewise.
    """

    value: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of both sides.

    Attributes:
        probe: Whose it is.
        point: What was measured.
        timed: How: as means of windows, or each operation.
        quantile: `p50`, or `p99` of operations that were timed one by one.
        unit: Of the sides' values.
        name: What people call it, where it is a headline figure; else the point.
        headline: Whether it is on page one.
        a: The first side; None where it has none.
        b: The second side.
        kind: The verdict.
        ratio: The second side over the first, with the corrected interval; None where not comparable.
        verdict: The interval, and what would have been seen; None where nothing could be computed.
        why: Why it is not comparable, or not judged.
        apart: What distinguishes it from another figure of the same name; else empty.
    """

    probe: str
    point: str
    timed: str
    quantile: str
    unit: Unit
    name: str
    headline: bool
    a: Values | None
    b: Values | None
    kind: Kind
    ratio: float | None = None
    verdict: Verdict | None = None
    why: str = ""
    apart: str = ""

    @property
    def title(self) -> str:
        """Its unique name in the comparison: `RAM`, `kernel.spawn: p99 of thread`."""
        name = self.name if self.headline else f"{self.probe}: {self.name}"
        return f"{name}, {self.apart}" if self.apart else name

    def as_json(self) -> dict[str, object]:
        """As `latlab compare --json` has it."""

        def values(own: Values | None) -> object:
            if own is None:
                return None
            return {self.quantile: own.value, "low": own.low, "high": own.high, "runs": own.runs}

        verdict = self.verdict
        return {
            "probe": self.probe,
            "point": self.point,
            "quantile": self.quantile,
            "unit": self.unit,
            "headline": self.headline,
            "a": values(self.a),
            "b": values(self.b),
            "ratio": self.ratio,
            "ratio_low": verdict and verdict.low,
            "ratio_high": verdict and verdict.high,
            "verdict": self.kind,
            "smallest_visible": verdict and verdict.smallest_visible,
            "more_runs": verdict and verdict.more_runs,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides.

    Attributes:
        a: The first side.
        b: The second.
        same: Changes up to this share count as none.
        figures: Headline figures first; of each kind those that changed most first.
        kept: How many kept runs of the machine contributed to the variation between its runs.
        tails: What the slow operations of each p99 that changed are made of.
        environment: What else differs: `kernel: 6.1 against 6.18`.
        machines: What the machines differ by, where that kept figures from being compared.
    """

    a: Side
    b: Side
    same: float
    figures: tuple[Figure, ...]
    kept: int
    tails: tuple[Tail, ...]
    environment: tuple[str, ...]
    machines: tuple[str, ...]

    def known_from(self, first: Side, second: Side) -> str:
        """Where the variation between runs comes from, in the order of two sides: `5 and 5 runs`."""
        several = max(len(first.runs), len(second.runs)) > 1
        counts = f"{len(first.runs)} and {len(second.runs)} runs" if several else "rounds of one run a side"
        if self.kept:
            return f"{counts}, and {self.kept} kept runs of this machine"
        return counts if several else f"{counts}, and the usual variation between runs of one machine"

    @property
    def headline(self) -> tuple[Figure, ...]:
        """Those of page one."""
        return tuple(each for each in self.figures if each.headline)

    @property
    def changed(self) -> tuple[Figure, ...]:
        """Figures that changed."""
        return tuple(each for each in self.figures if each.kind == "changed")

    @property
    def kind(self) -> Kind:
        """The overall verdict: that of its headline figures, or of all figures where it has none."""
        return together(self.headline or self.figures)

    @property
    def visible(self) -> tuple[float, float] | None:
        """What would have been seen of headline figures that did not change: in half of them, and in all."""
        return visible(self.headline or self.figures)

    def as_json(self) -> dict[str, object]:
        """As `latlab compare --json` prints it."""
        return {
            "same": self.same,
            "sides": [
                {
                    "label": own.label,
                    "runs": [run.id for run in own.runs],
                    "machine": own.runs[0].machine.text("cpu.model_name"),
                }
                for own in (self.a, self.b)
            ],
            "verdict": self.kind,
            "known_from": self.known_from(self.a, self.b),
            "environment": list(self.environment),
            "machines": list(self.machines),
            "figures": [each.as_json() for each in self.figures],
            "tails": [each.as_json() for each in self.tails],
        }


def together(figures: Iterable[Figure]) -> Kind:
    """The verdict on several figures."""
    kinds = {each.kind for each in figures} - {"not-comparable"}
    if not kinds:
        return "not-comparable"
    return "changed" if "changed" in kinds else "same" if kinds == {"same"} else "cannot-tell"


def visible(figures: Iterable[Figure]) -> tuple[float, float] | None:
    """What would have been seen of figures that did not change: in half of them, and in all."""
    known = sorted(
        each.verdict.smallest_visible
        for each in figures
        if each.verdict is not None and each.kind != "changed"
    )
    return (known[len(known) // 2], known[-1]) if known else None


def stored(*sides: Side, store: Store | None = None, most: int = KEPT) -> tuple[Run, ...]:
    """Kept runs of the first side's machine and profile that are on none of the sides, the newest."""
    model = sides[0].runs[0]
    known = {run.id for own in sides for run in own.runs}
    found: list[Run] = []
    for entry in reversed((store or Store()).entries()):
        # Many files are looked at, few are read.
        if entry.id not in known and len(found) < most and _is_like(entry.path, model):
            with contextlib.suppress(RunFileError):
                found.append(load(entry.path, in_short=True))
    return tuple(found)


def _is_like(file: Path, other: Run) -> bool:
    """Whether a run is of the same machine and profile, and of all probes."""
    try:
        own = head(file)
    except RunFileError:
        return False
    settings = other.settings
    same = (own.settings.profile, own.settings.only) == (settings.profile, settings.only)
    return same and is_like(own.machine, other.machine)


def compare(
    a: Side, b: Side, *, same: float = SAME, across: bool = False, kept: Sequence[Run] = ()
) -> Comparison:
    """Compares two sides.

    Args:
        a: The first.
        b: The second, whose figures are compared with the first's.
        same: Changes up to this share count as none: 0.1 is 10 %.
        across: The machines are what is compared.
        kept: Other runs of the same machine, which show the variation between its runs.
    """
    objections = Objections(a.runs, b.runs, across=across)
    sides = [_samples(own.runs) for own in (a, b, Side("", tuple(kept)))]
    names = headlines(a.runs[0]) | headlines(b.runs[0])
    figures: list[Figure] = []
    pending: list[tuple[Figure, list[list[Sample]]]] = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        first, second, others = _as_usual([own.get(key, []) for own in sides])
        name = names.get((key.probe, key.point), "") if key.quantile == "p50" else ""
        figure = _figure(key, name, first, second)
        why = _why_not(objections, key.probe, first, second, a, b)
        if why:
            figures.append(replace(figure, kind="not-comparable", ratio=None, why=why))
            continue
        groups = [_sound(first), _sound(second), _sound(others)]
        if not groups[0] or not groups[1]:
            who = " and ".join(own.label for own, sound in ((a, groups[0]), (b, groups[1])) if not sound)
            figures.append(replace(figure, why=f"disturbed in {who}"))
            continue
        pending.append((figure, groups))
    figures += _judged(pending, same)
    order = {"changed": 0, "cannot-tell": 1, "same": 2, "not-comparable": 3}
    figures.sort(key=lambda each: (not each.headline, order[each.kind], -abs(math.log(each.ratio or 1.0))))
    reported = tuple(distinguished(figures))
    return Comparison(
        a,
        b,
        same,
        reported,
        len(kept),
        tails(reported, (a.runs, b.runs, kept), (a.label, b.label), same),
        tuple(environment(a.runs, b.runs)),
        () if across else objections.machines,
    )


def _samples(runs: Iterable[Run]) -> dict[Key, list[Sample]]:
    found: dict[Key, list[Sample]] = {}
    for run in runs:
        for sample in run.samples:
            found.setdefault(sample.key, []).append(sample)
    return found


def headlines(run: Run) -> dict[tuple[str, str], str]:
    """The figures of page one: their names by probe and point."""
    return {
        (rung.probe, rung.path): _NAMES.get(rung.key, rung.name)
        for rung in run.ladder()
        if rung.key in ROWS and rung.measured and rung.path
    }


def _sound(samples: Iterable[Sample]) -> list[Sample]:
    """Those that nothing else disturbed: what was disturbed is the disturbance's."""
    return [sample for sample in samples if not sample.disturbed]


def _why_not(
    objections: Objections, probe: str, first: Sequence[Sample], second: Sequence[Sample], a: Side, b: Side
) -> str:
    if not first or not second:
        return f"point: only in {(b if not first else a).label}"
    return objections.to(probe, {sample.method for sample in (*first, *second)})


def _figure(key: Key, name: str, first: Sequence[Sample], second: Sequence[Sample]) -> Figure:
    unit = (*first, *second)[0].unit
    a, b = _values(first), _values(second)
    ratio = b.value / a.value if a and b else None
    other = key.point if key.quantile == "p50" else f"{key.quantile} of {key.point}"
    return Figure(
        key.probe,
        key.point,
        key.kind,
        key.quantile,
        unit,
        name or other,
        bool(name),
        a,
        b,
        "cannot-tell",
        ratio,
    )


def _as_usual(groups: Sequence[Sequence[Sample]]) -> Sequence[Sequence[Sample]]:
    """The samples of both sides and of kept runs, none of them disturbed where most of both sides' are.

    That is then how the machine is, and how far several such runs lie apart says by how much.
    """
    mostly = all(len(own) >= SEVERAL and 2 * len(_sound(own)) < len(own) for own in groups[:2])
    return [[replace(each, disturbed=False) for each in own] for own in groups] if mostly else groups


def _values(samples: Sequence[Sample]) -> Values | None:
    own = _sound(samples) or samples
    if not own:
        return None
    values = [sample.value for sample in own]
    ends = own[0].ends if len(own) == 1 else None
    low, high = ends or (min(values), max(values))
    return Values(_core.centre(values) or statistics.median(values), low, high, len(_sound(samples)))


def distinguished(figures: Sequence[Figure]) -> Iterator[Figure]:
    """The sides may have measured a headline at different points, and a point may be timed in two ways."""
    counts = Counter(each.title for each in figures)
    points = Counter((each.title, each.point) for each in figures)
    for each in figures:
        if counts[each.title] == 1:
            yield each
        else:
            timed = _TIMED.get(each.timed, each.timed) if points[each.title, each.point] > 1 else ""
            point = (
                each.point if each.headline and points[each.title, each.point] < counts[each.title] else ""
            )
            yield replace(each, apart=", ".join(part for part in (point, timed) if part))


def _judged(pending: Sequence[tuple[Figure, list[list[Sample]]]], same: float) -> Iterator[Figure]:
    """Verdicts, of headline figures and of all others."""
    known = contrasts([groups for _, groups in pending])
    for headline in (True, False):
        own = [place for place, (figure, _) in enumerate(pending) if figure.headline == headline]
        for place, verdict in zip(
            own, verdicts([known[place] for place in own], same, together=headline), strict=True
        ):
            figure = pending[place][0]
            yield replace(figure, kind=verdict.kind, ratio=math.exp(known[place].ratio), verdict=verdict)
