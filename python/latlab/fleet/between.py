"""Two surveys of a fleet: each host against itself, and the hosts' changes against one another.

Hosts are the unit of variance: whether a figure changed on all of them is one test over the logarithms of its
ratios, after over before, corrected for the other figures as in `latlab.compare`. A host whose ratio differs
from the others' is found as a slow host is (`naming`), with ratios for values and in both directions. It is
left out of the test of that figure.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latlab.compare import SAME, Figure, Values, distinguished
from latlab.compare.contrast import SEVERAL, USUAL_DEGREES, paired, usual_spread
from latlab.compare.sides import (
    ENVIRONMENT,
    OF_STORAGE,
    Named,
    Objections,
    check_apart,
    environment,
    unlike,
)
from latlab.compare.verdict import Contrast, Kind, factor, verdicts
from latlab.errors import UserError
from latlab.fleet import naming
from latlab.fleet.changes import Apart, Changes, Compared, OfHost, Part, Shared
from latlab.fleet.host import Class, Host, Key, hosts
from latlab.run.model import Unit
from latlab.text import counted, listed, natural

#: No figure is known more exactly than this, in its logarithm: figures are printed with three digits.
_LEAST: Final = 1e-3
#: Names in an error message.
_NAMES: Final = 3


@dataclass(frozen=True, slots=True)
class _Pair:
    """A host in both surveys."""

    a: Host
    b: Host
    objections: Objections

    def why_not(self, key: Key) -> str:
        """Why a figure that both have cannot be compared; empty where it can."""
        return self.objections.to(key.probe, {self.a.figures[key].method, self.b.figures[key].method})


def between(a: Named, b: Named, *, same: float = SAME) -> Changes:
    """Compares two surveys.

    Args:
        a: The run files of the first.
        b: Those of the second.
        same: Changes up to this share count as none: 0.1 is 10 %.

    Raises:
        UserError: no host is on both sides, or a run is.
        RunFileError: one of the files cannot be read as a run.
    """
    check_apart(a.origin[0], b.origin[0])
    (before, names), (after, more) = hosts(a.files), hosts(b.files)
    pairs = _paired(a.label, before, b.label, after)
    only = [sorted({own.name for own in side} - set(pairs), key=natural) for side in (before, after)]
    comparable = {name: pair for name, pair in pairs.items() if not _why_not(pair)}
    groups = _groups(comparable.values())
    figures, found = _judged(list(groups.values()), names | more, (a.label, b.label), same)
    found += [
        Compared(name, None, "not-comparable", (), (), _why_not(pair), {})
        for name, pair in pairs.items()
        if name not in comparable
    ]
    found.sort(key=lambda own: (own.kind != "changed", own.kind != "not-comparable", natural(own.name)))
    return Changes(
        Part(a.label, len({own.name for own in before}), sum(own.runs for own in before)),
        Part(b.label, len({own.name for own in after}), sum(own.runs for own in after)),
        same,
        tuple(zip(_labels(list(groups)), map(len, groups.values()), strict=True)),
        figures,
        tuple(found),
        (tuple(only[0]), tuple(only[1])),
        tuple(_environment(comparable.values())),
    )


def _paired(label_a: str, before: Sequence[Host], label_b: str, after: Sequence[Host]) -> dict[str, _Pair]:
    """Hosts of both surveys by name.

    Raises:
        UserError: there is none.
    """
    # A host that was measured in two ways has one of them compared that both surveys have.
    known = {(own.name, own.own_class.measured): own for own in before}
    last = {own.name: own for own in before}
    found: dict[str, _Pair] = {}
    for own in after:
        same_way = known.get((own.name, own.own_class.measured))
        other = same_way or last.get(own.name)
        if other is not None and (same_way is not None or own.name not in found):
            found[own.name] = _Pair(other, own, Objections((other,), (own,)))
    if not found:
        named = (
            f"{label} has {listed([*names[:_NAMES], *(['others'] if len(names) > _NAMES else [])])}"
            for label, names in ((label_a, [*last]), (label_b, [*dict.fromkeys(own.name for own in after)]))
        )
        raise UserError(
            f"no host is on both sides: {'; '.join(named)}. To compare all runs of a side as those of one"
            " machine, add --across"
        )
    return dict(sorted(found.items()))


def _why_not(pair: _Pair) -> str:
    """Why a host cannot be compared with itself, the field named; empty where it can."""
    before, after = (", ".join(own.own_class.measured) for own in (pair.a, pair.b))
    return pair.objections.to("", ()) or (f"measured: {before} against {after}" if before != after else "")


def _environment(pairs: Iterable[_Pair]) -> Iterator[str]:
    """What else differs between the surveys, and on how many hosts."""
    counts = Counter(text for pair in pairs for text in environment((pair.a,), (pair.b,)))
    for text, count in counts.most_common():
        yield f"{text} ({counted(count, 'host')})"


# ---------------------------------------------------------------------------------------------------- groups

_Group: TypeAlias = tuple[Class, Class]


def _groups(pairs: Iterable[_Pair]) -> dict[_Group, list[_Pair]]:
    """Hosts of one class in both surveys, the largest group first."""
    groups: dict[_Group, list[_Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.a.own_class, pair.b.own_class), []).append(pair)
    return dict(sorted(groups.items(), key=lambda own: -len(own[1])))


def _labels(groups: Sequence[_Group]) -> list[str]:
    """What distinguishes groups from one another: `kernel 6.1 to 6.18`; nothing where there is one."""
    fields = [(before.fields(), after.fields()) for before, after in groups]
    told = [{name: f"{name} {_to(old[name], new[name])}" for name in old} for old, new in fields]
    return [
        ", ".join(text for name, text in own.items() if any(other[name] != text for other in told))
        for own in told
    ]


def _to(before: str, after: str) -> str:
    return before if before == after else f"{before} to {after}"


# --------------------------------------------------------------------------------------------------- verdicts


def _judged(
    groups: Sequence[Sequence[_Pair]],
    names: Mapping[Key, str],
    labels: tuple[str, str],
    same: float,
) -> tuple[tuple[Shared, ...], list[Compared]]:
    """Verdicts on figures, and on hosts."""
    held = [_Held(pairs, names) for pairs in groups]
    # A host may have become slower than the others, or faster.
    tests = 2 * sum(int(np.isfinite(own.distances.ratio).sum()) for own in held)
    level = naming.level(naming.ALARMS, tests)
    known: list[tuple[Shared, Contrast | None]] = []
    found: list[Compared] = []
    for group, own in enumerate(held):
        apart = own.distances.beyond(level)
        apart |= replace(own.distances, ratio=-own.distances.ratio).beyond(level)
        found += own.hosts(group, apart)
        known += own.figures(group, apart, labels)
    contrasts = [contrast for _, contrast in known if contrast is not None]
    judged = iter(verdicts(contrasts, same, together=True))
    figures: list[Shared] = []
    for shared, contrast in known:
        if contrast is None:
            figures.append(shared)
            continue
        verdict = next(judged)
        figure = replace(shared.figure, kind=verdict.kind, ratio=math.exp(contrast.ratio), verdict=verdict)
        figures.append(replace(shared, figure=figure))
    figures.sort(key=lambda own: (_ORDER[own.figure.kind], -abs(math.log(own.figure.ratio or 1.0))))
    return tuple(figures), found


_ORDER: Final[Mapping[Kind, int]] = {"changed": 0, "cannot-tell": 1, "same": 2, "not-comparable": 3}


class _Held:
    """Hosts of a group against themselves.

    Attributes:
        distances: How far each host's change is from the others', hosts × figures.
    """

    def __init__(self, pairs: Sequence[_Pair], names: Mapping[Key, str]) -> None:
        self._pairs = pairs
        self._names = names
        every = (key for pair in pairs for side in (pair.a, pair.b) for key in side.figures)
        self._keys = list(dict.fromkeys(every))
        self._units: list[Unit] = ["ns"] * len(self._keys)
        shape = (2, len(pairs), len(self._keys))
        #: Figures before and after; where both are but cannot be compared, why.
        self._values, errors = np.full(shape, np.nan), np.zeros(shape)
        self._objections: dict[tuple[int, int], str] = {}
        for row, pair in enumerate(pairs):
            for column, key in enumerate(self._keys):
                for side, host in enumerate((pair.a, pair.b)):
                    if (figure := host.figures.get(key)) is not None:
                        self._values[side, row, column] = figure.value
                        errors[side, row, column] = figure.error or 0.0
                        self._units[column] = figure.unit
                if np.isfinite(self._values[:, row, column]).all() and (reason := pair.why_not(key)):
                    self._objections[row, column] = reason
        self._logs = np.log(self._values[1] / self._values[0])
        for at in self._objections:
            self._logs[at] = np.nan
        slower = np.array([1.0 if unit == "ns" else -1.0 for unit in self._units])
        self.distances = naming.distances(self._logs * slower, np.hypot(*errors))

    def hosts(self, group: int, apart: NDArray[np.bool_]) -> Iterator[Compared]:
        """What is said of each."""
        few = len(self._pairs) < naming.LEAST_HOSTS
        for row, pair in enumerate(self._pairs):
            reasons = [self._reason((row, column)) for column in map(int, np.flatnonzero(apart[row]))]
            # By how sure it is: the end of its interval that is nearer to no difference.
            reasons.sort(key=lambda own: -max(own.low, 1 / own.high))
            ratios = {
                key: math.exp(float(log))
                for key, log in zip(self._keys, self._logs[row], strict=True)
                if math.isfinite(log)
            }
            kind: OfHost = "no-peers" if few else "changed" if reasons else "ok"
            differs = tuple(unlike((pair.a,), (pair.b,), ENVIRONMENT | OF_STORAGE)) if reasons else ()
            largest = self._largest(row)
            yield Compared(pair.a.name, group, kind, tuple(reasons), differs, "", ratios, largest)

    def _largest(self, row: int) -> tuple[str, Unit, float] | None:
        """The figure that changed most."""
        logs = self._logs[row]
        if not np.isfinite(logs).any():
            return None
        column = int(np.nanargmax(np.abs(logs)))
        key = self._keys[column]
        return self._names.get(key, key.point), self._units[column], math.exp(float(logs[column]))

    def _reason(self, at: tuple[int, int]) -> Apart:
        row, column = at
        key, unit = self._keys[column], self._units[column]
        log = float(self.distances.ratio[at])
        others = float(self._logs[at]) - (log if unit == "ns" else -log)
        before, after = (float(own) for own in self._values[:, row, column])
        return Apart(
            key,
            self._names.get(key, key.point),
            unit,
            before,
            after,
            math.exp(others),
            *map(factor, self.distances.interval(at)),
        )

    def figures(
        self, group: int, apart: NDArray[np.bool_], labels: tuple[str, str]
    ) -> Iterator[tuple[Shared, Contrast | None]]:
        """Each figure over the hosts that changed alike, not yet judged; no contrast where none has it."""
        used = np.isfinite(self._logs) & ~apart
        made = [self._figure(column, used[:, column], labels) for column in range(len(self._keys))]
        for column, figure in enumerate(distinguished(made)):
            logs = [float(log) for log in self._logs[used[:, column], column]]
            mean = statistics.fmean(logs) if logs else 0.0
            agreeing = sum(log * mean > 0 for log in logs)
            contrast = _contrast(figure.probe, logs) if logs else None
            yield Shared(figure, group, len(logs), agreeing), contrast

    def _figure(self, column: int, used: NDArray[np.bool_], labels: tuple[str, str]) -> Figure:
        key, (a, b) = self._keys[column], self._values[:, :, column]
        whys = [text for (_, place), text in self._objections.items() if place == column]
        lacking = [label for label, own in zip(labels, (a, b), strict=True) if not np.isfinite(own).any()]
        lacks = f"no undisturbed figure in {listed(lacking)}" if lacking else "disturbed in one survey"
        reason = Counter(whys).most_common(1)[0][0] if whys else lacks
        sides = (used, used) if used.any() else (np.isfinite(a), np.isfinite(b))
        return Figure(
            key.probe,
            key.point,
            "",
            "p50",
            self._units[column],
            self._names.get(key, key.point),
            headline=True,
            a=_values(a[sides[0]]),
            b=_values(b[sides[1]]),
            kind="cannot-tell" if used.any() else "not-comparable",
            why="" if used.any() else reason,
        )


def _values(own: naming.Floats) -> Values | None:
    """Of several hosts."""
    if not own.size:
        return None
    return Values(float(np.exp(np.log(own).mean())), float(own.min()), float(own.max()), own.size)


def _contrast(probe: str, logs: Sequence[float]) -> Contrast:
    """How a figure changed over hosts; few say little of how much they differ."""
    if len(logs) >= SEVERAL:
        return paired(logs, _LEAST)
    between, count = math.sqrt(2) * usual_spread(probe), len(logs)
    return Contrast(
        statistics.fmean(logs), between / math.sqrt(count), between, USUAL_DEGREES, count, paired=True
    )
