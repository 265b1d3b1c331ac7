"""Which boundary, host or single link is slow, by measurements of pairs of hosts.

A boundary is what pairs of hosts in groups (racks, subnets) share: all that leave one group, those of two
groups, those inside one. Boundaries are judged first, by the medians of their pairs, as hosts are by theirs.
What pairs of the same groups have in common is then taken off, slow or not, so that no host is named for its
rack. A host's figure is the median of what is left of its pairs; a slow link spoils one of six. Last, pairs
without a slow host are compared with one another.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from latlab.fleet import matchings, naming
from latlab.fleet.host import Key
from latlab.fleet.matchings import Matching
from latlab.fleet.pairs import Contention, Links, Pair, Spread
from latlab.fleet.standings import Reason, Tested, What, confirmed, rank, reason, verdicts
from latlab.run.model import Unit

Names: TypeAlias = tuple[str, ...]
K = TypeVar("K", bound=Names)

#: So many hosts are compared with one another: their closest three quarters have seven degrees of freedom.
_MANY: Final = 13
_HALF: Final = 0.5
_OF_PAIRS: Final = 0.8
#: Variance of a median of normals over that of their mean.
_OF_MEDIAN: Final = math.pi / 2

_PROBE: Final = "fleet.link"
_UNITS: Final[tuple[Unit, ...]] = ("ns", "bytes_per_s", "bytes_per_s")
#: Logarithms of round trip and throughputs times this are the more the slower.
_SLOWER: Final = np.array([1.0, -1.0, -1.0])
#: The figures of one end of a pair, from the other end.
_MIRRORED: Final = [0, 2, 1]


class Wanted(NamedTuple):
    """What a survey asks for next: why, and rounds of pairs; those of one round are measured at once."""

    why: str
    rounds: list[Matching]


def survey(
    groups: Mapping[str, str], dice: random.Random, turns: Collection[str] = ()
) -> Generator[Wanted, Sequence[Pair], Links]:
    """A survey of links: yields what is to be measured, is sent what was, and returns what follows.

    Args:
        groups: The group of each host; an empty one is no group.
        dice: Decides who meets whom.
        turns: Hosts that share a machine, and do not measure at the same time as others.
    """
    found = judged((yield Wanted("", matchings.rounds(groups, dice))), groups)
    if planned := matchings.again(found, dice, turns):
        later = yield Wanted("measuring again what stands out", planned)
        latest = {frozenset((own.a, own.b)): own for own in (*_undoubted(found), *later)}
        found = _confirmed(found, judged([*latest.values()], groups))
    if pairs := matchings.alone(found, dice, turns):
        alone = yield Wanted("measuring a few pairs alone", [[pair] for pair in pairs])
        return replace(found, contention=_contention(found, alone))
    if turns:
        note = "Hosts that share a machine took turns, so contention was not measured."
        return replace(found, notes=(note,))
    return found


def judged(measured: Sequence[Pair], groups: Mapping[str, str]) -> Links:
    """Names slow boundaries, hosts and links.

    Args:
        measured: The pairs, each once.
        groups: The group of each host; an empty one is no group.
    """
    ends = _ends(measured, groups)
    pairs, hosts = ends.names[: len(measured)], _places((host,) for host, _ in ends.names)
    shared = _Shared(ends)
    left = ends.logs - shared.typical()
    tests = _Tests(ends.logs, left[: len(pairs)], 3 * (shared.boundaries + len(hosts) + len(pairs)))
    boundaries = _of_boundaries(shared, ends, tests)
    of_hosts = tests.of("host", hosts, _medians(left, hosts), left[: len(pairs)])
    of_links = _of_links(pairs, _because(of_hosts), left, tests)
    return Links(
        _in_order(boundaries),
        _in_order(of_hosts),
        _in_order(of_links),
        tests.visible,
        groups,
        tuple(measured),
    )


def _of_boundaries(shared: _Shared, ends: _Ends, tests: _Tests) -> list[Tested]:
    """What is said of boundaries: of pairs that leave a group, then of others that these do not explain."""
    found = tests.of("boundary", shared.leaving, _rows([*shared.uplinks.values()]), shared.across())
    bad = _because(found)
    between = {key: own for key, own in shared.between.items() if bad.isdisjoint(key)}
    for places in (between, shared.inside):
        found += tests.of("boundary", places, _medians(ends.logs, places))
    return found


def _of_links(
    pairs: Sequence[tuple[str, str]], bad: set[str], left: naming.Floats, tests: _Tests
) -> list[Tested]:
    """What is said of single links: nothing where a host is slow by itself."""
    good = {names: [place] for place, names in enumerate(pairs) if bad.isdisjoint(names)}
    found = tests.of("link", good, _medians(left, good))
    return [*found, *(Tested("link", names, "ok", ()) for names in pairs if names not in good)]


class _Ends(NamedTuple):
    """Each pair twice, as either end has it: first as those that measured.

    Attributes:
        names: The end, and the other one.
        groups: Of both.
        logs: Logarithms of its figures, of which more is slower.
    """

    names: list[tuple[str, str]]
    groups: list[tuple[str, str]]
    logs: naming.Floats


def _ends(measured: Sequence[Pair], groups: Mapping[str, str]) -> _Ends:
    names = [*((own.a, own.b) for own in measured), *((own.b, own.a) for own in measured)]
    figures = [own.of(host) for own, (host, _) in zip((*measured, *measured), names, strict=True)]
    keys = [(groups[host], groups[other]) for host, other in names]
    return _Ends(names, keys, np.log(_rows(figures)) * _SLOWER)


def _rows(figures: Sequence[Sequence[float] | naming.Floats]) -> naming.Floats:
    """Figures in rows of three, also where there are none."""
    return np.array(figures, dtype=np.float64).reshape(-1, 3)


class _Shared:
    """What pairs have by the groups of their hosts: the places, among all ends, of those of each boundary.

    Attributes:
        leaving: By a group: its pairs with others.
        uplinks: By what these are slow.
        between: By two groups: their pairs.
        inside: By a group, twice: the pairs inside.
    """

    def __init__(self, ends: _Ends) -> None:
        self._ends = ends
        self._cells = _places(ends.groups)
        self._solid = _solid(self._cells, ends.names)
        alone = ((one,) if one and one != other else None for one, other in ends.groups)
        self.leaving = _solid(_places(alone), ends.names)
        self.uplinks = self._uplinks()
        # With fewer groups no boundary has peers.
        named = self._solid if len(self.leaving) >= naming.LEAST_HOSTS else {}
        self.between = {key: own for key, own in named.items() if "" < key[0] < key[1]}
        self.inside = {key: own for key, own in named.items() if "" < key[0] == key[1]}

    @property
    def boundaries(self) -> int:
        """How many there are."""
        return len(self.leaving) + len(self.between) + len(self.inside)

    def across(self) -> naming.Floats:
        """The medians of pairs of two groups, of each two once."""
        own = {key: places for key, places in self._cells.items() if key[0] < key[1]}
        return _medians(self._ends.logs, own)

    def _uplinks(self) -> dict[tuple[str], naming.Floats]:
        """By what pairs that leave a group are slow: most of them, and most of the groups that they lead to.

        Most pairs of a small group may lead to one large group that is slow.
        """
        logs, to = self._ends.logs, dict[str, list[naming.Floats]]()
        for (one, other), median in zip(self._cells, _medians(logs, self._cells), strict=True):
            if one != other:
                to.setdefault(one, []).append(median)
        return {
            key: np.minimum(median, np.median(to[key[0]], axis=0))
            for key, median in zip(self.leaving, _medians(logs, self.leaving), strict=True)
        }

    def typical(self) -> naming.Floats:
        """What each end has by the two groups.

        It is the median of these pairs. Where one host could decide that, it is the median of all pairs
        across groups, with what the pairs that leave each of the two differ from it; or of all pairs inside
        groups.
        """
        logs = self._ends.logs
        kinds = _places(("inside" if one == other else "across",) for one, other in self._ends.groups)
        of_kind: dict[str, naming.Floats] = {
            kind: median for (kind,), median in zip(kinds, _medians(logs, kinds), strict=True)
        }
        medians = _medians(logs, self._solid)
        own: dict[tuple[str, str], naming.Floats] = dict(zip(self._solid, medians, strict=True))

        def of(one: str, other: str) -> naming.Floats:
            if (one, other) in own:
                return own[one, other]
            if one == other:
                return of_kind["inside"]
            near, far = (self.uplinks.get((group,), of_kind["across"]) for group in (one, other))
            both: naming.Floats = near + far[_MIRRORED] - of_kind["across"]
            return both

        known = {key: of(*key) for key in self._cells}
        return _rows([known[key] for key in self._ends.groups])


class _Tests:
    """Compares what shares pairs with its like, by the medians of these pairs.

    Args:
        logs: The figures of all ends.
        left: What of those of each pair is not by its groups.
        count: How many figures are compared in all.

    Attributes:
        visible: From which ratio one would be named: by its round trip, and by its throughput.
    """

    def __init__(self, logs: naming.Floats, left: naming.Floats, count: int) -> None:
        self._logs = logs
        self._noise = _noise(left)
        self._count = count
        self.visible: dict[str, tuple[float, float]] = {}

    def of(
        self,
        what: What,
        places: Mapping[K, list[int]],
        medians: naming.Floats,
        pool: naming.Floats | None = None,
    ) -> list[Tested]:
        """What is said of each.

        Args:
            what: Which kind they are.
            places: At which places of the ends the pairs of each are.
            medians: Of what is compared.
            pool: The pairs with which few of them are compared, which are more, and say more.
        """
        if not places or (what == "boundary" and len(places) < naming.LEAST_HOSTS):
            return []
        said = [_said(names) for names in places]
        medians = medians[:, : len(said[0])]
        # All links have one pair: what they differ by is their error.
        distances = (
            naming.distances(medians, np.zeros_like(medians), naming.LINK_DEGREES)
            if what == "link"
            else _compared(medians, self._errors(places, len(said[0])), pool)
        )
        if len(places) >= naming.LEAST_HOSTS:
            ratios = np.exp(np.median(distances.visible(naming.level(naming.ALARMS, self._count)), axis=0))
            self.visible.setdefault(what, (float(ratios[0]), float(ratios[1:].mean())))
        values = np.exp(_medians(self._logs, places) * _SLOWER)

        def reason_at(at: tuple[int, int]) -> Reason:
            name = said[at[0]][at[1]]
            return reason(Key(_PROBE, name), name, float(values[at]), _UNITS[at[1]], distances, at)

        found = verdicts(distances, self._count, reason_at)
        return [
            Tested(what, names, kind, tuple(reasons))
            for names, (kind, reasons) in zip(places, found, strict=True)
        ]

    def _errors(self, places: Mapping[K, list[int]], columns: int) -> naming.Floats:
        """Standard errors of the medians, by how many pairs each has: twice those inside a group."""
        counts = np.array([[len(own) * (columns - 1) / 2] for own in places.values()])
        errors: naming.Floats = self._noise[:columns] * np.sqrt(
            np.where(counts > 2, _OF_MEDIAN, 1.0) / counts  # noqa: PLR2004 - of two it is the mean
        )
        return errors


def _places(keys: Iterable[K | None]) -> dict[K, list[int]]:
    """At which places each key is."""
    found: dict[K, list[int]] = {}
    for place, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, []).append(place)
    return found


def _solid(places: Mapping[K, list[int]], ends: Sequence[tuple[str, str]]) -> dict[K, list[int]]:
    """Those of whose pairs each host has less than half, so that none decides the median by itself."""
    return {
        key: own
        for key, own in places.items()
        if 2 * max(Counter(host for place in own for host in ends[place]).values()) < len(own)
    }


def _medians(logs: naming.Floats, places: Mapping[K, list[int]]) -> naming.Floats:
    """The median of each figure at the places of each key."""
    medians = [np.median(logs[own], axis=0) for own in places.values()]
    return np.array(medians).reshape(-1, logs.shape[1])


def _said(names: Names) -> tuple[str, ...]:
    """What the figures of a boundary, host or link are called."""
    if len(names) == 1:
        return ("round trip", "throughput to it", "throughput from it")
    if names[0] == names[1]:
        return ("round trip", "throughput")
    return ("round trip", f"throughput to {names[0]}", f"throughput to {names[1]}")


def _pools(logs: naming.Floats) -> tuple[naming.Floats, naming.Floats, naming.Floats]:
    """Round trips, and twice the throughputs of both directions."""
    both = logs[:, 1:].ravel()
    return logs[:, 0], both, both


def _noise(logs: naming.Floats) -> naming.Floats:
    """By how much pairs differ: standard deviations of their figures, unknown ones as 0."""
    if len(logs) < naming.LEAST_HOSTS:
        return np.zeros(3)
    return np.array([naming.spread(own, _HALF)[1] for own in _pools(logs)])


def _compared(values: naming.Floats, errors: naming.Floats, pool: naming.Floats | None) -> naming.Distances:
    """Medians against one another; of few against the pairs they are of, which are more, and say more.

    Where hosts differ by τ and links by ε, pairs differ by √(2τ² + ε²), and medians of k pairs by less than
    √(τ² + 1.57 ε²/k): four fifths of the former are more in either case, from three pairs on. Half of the
    pairs are taken, since a slow host of six has a third of them. Groups and pairs of groups are alike.
    """
    if pool is None or len(values) >= _MANY:
        return naming.distances(values, errors)
    ratio, error, degrees = np.full_like(values, np.nan), np.full_like(values, np.nan), np.zeros(3)
    if len(values) >= naming.LEAST_HOSTS:
        for column, own in enumerate(_pools(pool)):
            mean, deviation, degrees[column], count = naming.spread(own, _HALF)
            ratio[:, column] = values[:, column] - mean
            error[:, column] = np.maximum(_OF_PAIRS * deviation, errors[:, column]) * math.sqrt(1 + 1 / count)
    return naming.Distances(ratio, error, error, degrees)


def _because(tested: Iterable[Tested]) -> set[str]:
    """The names of those that stand out."""
    return {name for own in tested if own.because for name in own.names}


def _in_order(tested: Iterable[Tested]) -> tuple[Tested, ...]:
    return tuple(sorted(tested, key=lambda own: (*rank(own.kind, own.because), own.names)))


def _key(own: Tested) -> tuple[What, Names]:
    return own.what, tuple(sorted(own.names))


def _parts(a: str, b: str, groups: Mapping[str, str]) -> set[tuple[What, Names]]:
    """The link, the hosts and the boundaries that the pair of two hosts is part of, by their keys."""
    one, other = sorted((groups[a], groups[b]))
    found: set[tuple[What, Names]] = {("link", tuple(sorted((a, b)))), ("host", (a,)), ("host", (b,))}
    found |= {("boundary", (one, other))}
    return found if one == other else found | {("boundary", (one,)), ("boundary", (other,))}


def _undoubted(found: Links) -> list[Pair]:
    """The pairs without anything that stands out."""
    doubtful = {_key(own) for own in found.tested if own.because}
    return [own for own in found.measured if doubtful.isdisjoint(_parts(own.a, own.b, found.groups))]


def _confirmed(first: Links, second: Links) -> Links:
    """The second of two surveys, for which what stood out in the first was measured again."""

    def both(before: Sequence[Tested], after: Sequence[Tested], hints: Sequence[Tested] = ()) -> list[Tested]:
        found = confirmed((*hints, *before), after, _key)
        seen = set(map(_key, after))
        return [*found, *(own for own in before if _key(own) not in seen)]

    # A link that stood out may have been the only pair of its groups.
    hints = [
        Tested("boundary", tuple(first.groups[host] for host in own.names), "suspect", own.because)
        for own in first.links
        if own.because
    ]
    boundaries = both(first.boundaries, second.boundaries, hints)
    slow = {_key(own) for own in boundaries if own.kind == "slow"}
    links = [
        # Its boundary is the reason.
        replace(own, kind="ok", because=())
        if own.kind == "suspect" and not slow.isdisjoint(_parts(own.names[0], own.names[1], first.groups))
        else own
        for own in both(first.links, second.links)
    ]
    latest = {frozenset((own.a, own.b)): own for own in (*first.measured, *second.measured)}
    return replace(
        second,
        boundaries=_in_order(boundaries),
        hosts=_in_order(both(first.hosts, second.hosts)),
        links=_in_order(links),
        measured=tuple(latest.values()),
    )


def _contention(found: Links, alone: Sequence[Pair]) -> Contention | None:
    """What pairs had when all were measured at once, over what they have alone; None where none was."""
    before = {frozenset((own.a, own.b)): own for own in found.measured}
    ratios = [
        np.log(before[frozenset((own.a, own.b))].of(own.a)) - np.log(own.of(own.a))
        for own in alone
        if frozenset((own.a, own.b)) in before
    ]
    if not ratios:
        return None
    # Of throughputs those of both directions together.
    trips, rates = np.exp([(own[0], own[1:].mean()) for own in ratios]).T
    across = any(found.groups[own.a] != found.groups[own.b] for own in alone)
    spreads = (Spread(*map(float, (np.median(own), own.min(), own.max()))) for own in (rates, trips))
    return Contention(len(ratios), across, *spreads)
