"""A survey of a fleet: which hosts are slow against their peers, by how much, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from latlab.compare.verdict import factor
from latlab.fleet import naming, why
from latlab.fleet.host import Host, Key, by_class, hosts
from latlab.run.model import Unit
from latlab.text import natural, some

Kind: TypeAlias = Literal["slow", "suspect", "ok", "no-peers"]
What: TypeAlias = Literal["boundary", "host", "link"]
T = TypeVar("T", "Standing", "Tested")

#: Reasons of one host, the clearest first.
MOST_REASONS: Final = 5


@dataclass(frozen=True, slots=True)
class Reason:
    """A figure by which a host is slower than its peers.

    Attributes:
        key: The figure.
        name: What people call it.
        value: The host's.
        peers: What its peers have.
        unit: Of both.
        ratio: How many times as slow the host is.
        low: Lower end of the ratio's 95 % interval.
        high: Upper end.
    """

    key: Key
    name: str
    value: float
    peers: float
    unit: str
    ratio: float
    low: float
    high: float

    def as_json(self) -> dict[str, object]:
        """The figure, and the ratio with its interval."""
        probe, point = self.key
        return {"probe": probe, "point": point, "ratio": self.ratio, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Standing:
    """What is said of a host.

    Attributes:
        host: The host.
        number: The number of its class, from 1: the largest is 1.
        kind: `slow`: named; `suspect`: to be measured again; `no-peers`: its class has fewer than five hosts.
        because: Figures by which it is slow or suspect, the clearest first.
        differs: What its description and its run say that its peers' do not, with what to do.
    """

    host: Host
    number: int
    kind: Kind
    because: tuple[Reason, ...]
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tested:
    """What is said of a boundary between groups of hosts, of a host, or of a link, by its pairs.

    Attributes:
        what: Which of them it is.
        names: The host, or both ends; of a boundary the group that pairs leave, both groups of its pairs, or
            the same one twice for pairs inside.
        kind: As of a host in a survey.
        because: By which figures.
    """

    what: What
    names: tuple[str, ...]
    kind: Kind
    because: tuple[Reason, ...]

    def __str__(self) -> str:
        """`node1`, `node1–node2`, `rack3`, `rack1–rack3`, `inside rack3`."""
        return f"inside {self.names[0]}" if len(set(self.names)) < len(self.names) else "–".join(self.names)

    @property
    def called(self) -> str:
        """The same in a sentence: `the link a–b`, `the rack3 boundary`, `the network inside rack3`."""
        if self.what == "host":
            return str(self)
        if self.what == "link":
            return f"the link {self}"
        return f"the network {self}" if len(set(self.names)) < len(self.names) else f"the {self} boundary"


@dataclass(frozen=True, slots=True)
class Failure:
    """A host that has no figures.

    Attributes:
        name: The host.
        reason: Why it has none, in words.
    """

    name: str
    reason: str

    def as_json(self) -> dict[str, object]:
        """Among the hosts of a survey."""
        return {
            "name": self.name,
            "class": None,
            "verdict": "failed",
            "because": [],
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Survey:
    """A fleet.

    Attributes:
        standings: Of each host, the slow ones first, then by name.
        classes: How many hosts each class has, the largest first.
        tests: How many figures of hosts were compared.
        visible: From which ratio a host would have been named: median over the figures; None without peers.
        failed: Hosts without figures, by name.
        notes: What else there is to know, a sentence each.
        names: What people call the figures.
    """

    standings: tuple[Standing, ...]
    classes: tuple[int, ...]
    tests: int
    visible: float | None
    failed: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    names: Mapping[Key, str] = field(default_factory=dict)

    @property
    def named(self) -> tuple[Standing, ...]:
        """The slow hosts."""
        return tuple(own for own in self.standings if own.kind == "slow")

    def as_json(self) -> dict[str, Any]:
        """As `latlab fleet merge --json` and `latlab fleet survey --json` print it."""
        hosts: list[dict[str, Any]] = [
            {
                "name": own.host.name,
                "class": own.number,
                "runs": own.host.runs,
                "verdict": own.kind,
                "because": [each.as_json() for each in own.because],
                "differs": list(own.differs),
            }
            for own in self.standings
        ]
        hosts += [own.as_json() for own in self.failed]
        return {
            "hosts": hosts,
            "links": [],
            "named": [own.host.name for own in self.named],
            "false_naming": naming.ALARMS,
            "notes": list(self.notes),
        }


def merge(files: Iterable[Path]) -> Survey:
    """A survey from run files of many hosts.

    Args:
        files: Run files; several of one host are its repeats.

    Raises:
        RunFileError: one of them cannot be read as a run.
    """
    return judged(*hosts(files))


def judged(found: Sequence[Host], names: Mapping[Key, str]) -> Survey:
    """Compares each host with the others of its class.

    Args:
        found: The hosts.
        names: What people call the figures.
    """
    classes = by_class(found)
    held = [_held(own) for own in classes.values()]
    tests = sum(int(np.isfinite(distances.ratio).sum()) for _, distances in held)
    standings = [
        standing
        for number, (own, each) in enumerate(zip(classes.values(), held, strict=True), 1)
        for standing in _of_class(own, number, each, names, tests)
    ]
    lacking = (
        note for own, each in zip(classes.values(), held, strict=True) for note in _lacking(own, each, names)
    )
    return Survey(
        in_order(standings),
        tuple(map(len, classes.values())),
        tests,
        _visible(held, tests),
        notes=tuple(lacking),
        names=names,
    )


def _lacking(own: Sequence[Host], held: _Held, names: Mapping[Key, str]) -> Iterator[str]:
    """Figures that most hosts of a class have and some do not: there they may be too slow to be measured."""
    keys, distances = held
    known = np.isfinite(distances.ratio)
    for figure in map(int, np.flatnonzero(known.mean(axis=0) >= why.MOST)):
        without = [own[int(host)].name for host in np.flatnonzero(~known[:, figure])]
        if without:
            name = names.get(keys[figure], keys[figure].point)
            yield f"No figure for {name}: {some(without, MOST_REASONS)}; see the run file."


def _of_class(
    own: Sequence[Host], number: int, held: _Held, names: Mapping[Key, str], tests: int
) -> Iterator[Standing]:
    keys, distances = held

    def reason_at(at: tuple[int, int]) -> Reason:
        key = keys[at[1]]
        figure = own[at[0]].figures[key]
        return reason(key, names.get(key, key.point), figure.value, figure.unit, distances, at)

    found = verdicts(distances, tests, reason_at, why.disturbed(own))
    for host, (kind, reasons) in zip(own, found, strict=True):
        probes = {each.key.probe for each in reasons}
        peers = [peer for peer in own if peer is not host]
        differs = why.differences(host, peers, probes) if peers and reasons else ()
        yield Standing(host, number, kind, tuple(reasons[:MOST_REASONS]), tuple(differs))


def verdicts(
    distances: naming.Distances,
    tests: int,
    reason_at: Callable[[tuple[int, int]], Reason],
    disturbed: NDArray[np.bool_] | bool = False,
) -> Iterator[tuple[Kind, list[Reason]]]:
    """What is said of each row, and the figures by which it is slow or suspect, the surest first.

    Args:
        distances: Rows and figures.
        tests: How many figures are compared in all.
        reason_at: The figure at a place of the distances.
        disturbed: Rows of which it is known that something slows them: each is compared as the only
            one, and slow where it is otherwise suspect. That its rounds are far apart is no doubt of it:
            that is what disturbs them.
    """
    of_one = naming.level(naming.SUSPICIONS, distances.ratio.shape[1])
    of_peers = replace(distances, error=distances.between)
    known = of_peers.beyond(of_one) & np.reshape(disturbed, (-1, 1))
    slow = distances.beyond(naming.level(naming.ALARMS, tests)) | known
    suspect = distances.beyond(naming.level(naming.SUSPICIONS, tests)) | known
    for row in range(len(slow)):
        shown = slow[row] if slow[row].any() else suspect[row]
        reasons = [reason_at((row, figure)) for figure in map(int, np.flatnonzero(shown))]
        # By how sure it is: the lower end of its interval.
        reasons.sort(key=lambda own: -own.low)
        kind: Kind = "slow" if slow[row].any() else "suspect" if reasons else "ok"
        yield "no-peers" if len(slow) < naming.LEAST_HOSTS else kind, reasons


def confirmed(first: Iterable[T], second: Iterable[T], key: Callable[[T], object]) -> list[T]:
    """What a second survey says, for which those that stood out in a first one were measured again.

    What was slow once only is suspect.

    Args:
        first: What the first one says of each host, link or boundary.
        second: What the second one says.
        key: What tells that two are of the same.
    """
    before = {key(own): own for own in first}
    found = []
    for own in second:
        earlier = before.get(key(own))
        if own.kind == "slow" and (earlier is None or not earlier.because):
            found.append(replace(own, kind="suspect"))
        elif earlier is not None and earlier.kind == "slow" and not own.because:
            found.append(replace(earlier, kind="suspect"))
        else:
            found.append(own)
    return found


def in_order(standings: Iterable[Standing]) -> tuple[Standing, ...]:
    """The slow ones first, the clearest of them before the others."""
    return tuple(sorted(standings, key=lambda own: (*rank(own.kind, own.because), natural(own.host.name))))


def rank(kind: Kind, because: Sequence[Reason]) -> tuple[int, float]:
    """Its place in a list: the slow ones first, the clearest of them before the others."""
    return _ORDER[kind], -because[0].low if because else 0.0


_ORDER: Final[Mapping[Kind, int]] = {"slow": 0, "suspect": 1, "ok": 2, "no-peers": 3}


_Held: TypeAlias = tuple[list[Key], naming.Distances]


def _held(own: Sequence[Host]) -> _Held:
    keys = list(dict.fromkeys(key for host in own for key in host.figures))
    values = np.full((len(own), len(keys)), np.nan)
    errors = np.full_like(values, np.nan)
    for row, host in enumerate(own):
        for column, key in enumerate(keys):
            figure = host.figures.get(key)
            if figure is not None:
                values[row, column] = figure.slowness
                errors[row, column] = math.nan if figure.error is None else figure.error
    return keys, naming.distances(values, errors)


def reason(
    key: Key, name: str, value: float, unit: Unit, distances: naming.Distances, at: tuple[int, int]
) -> Reason:
    """A figure that is slower than its peers', by the place of both in the distances."""
    log = float(distances.ratio[at])
    peers = value / math.exp(log) if unit == "ns" else value * math.exp(log)
    return Reason(key, name, value, peers, unit, math.exp(log), *map(factor, distances.interval(at)))


def _visible(held: Sequence[_Held], tests: int) -> float | None:
    level = naming.level(naming.ALARMS, tests)
    own = [distances.visible(level)[np.isfinite(distances.ratio)] for _, distances in held]
    logs = np.concatenate([*own, np.empty(0)])
    return float(np.exp(np.median(logs))) if logs.size else None
