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
    pairs = len(measured)
    # Each pair twice, as either end has it: first as those that measured.
    ends = [*((own.a, own.b) for own in measured), *((own.b, own.a) for own in measured)]
    figures = [own.of(host) for own, (host, _) in zip((*measured, *measured), ends, strict=True)]
    logs = np.log(np.array(figures).reshape(-1, 3)) * _SLOWER
    keys = [(groups[host], groups[other]) for host, other in ends]
    cells = _places(keys)
    own_cells = _solid(cells, ends)
    leaving = _solid(_places((one,) if one and one != other else None for one, other in keys), ends)
    uplinks = _uplinks(logs, cells, leaving)
    typical = _typical(logs, cells, own_cells, uplinks)
    left = logs - np.array([typical[key] for key in keys]).reshape(-1, 3)
    noise = _noise(left[:pairs])

    hosts = _places((host,) for host, _ in ends)
    across = {key: own for key, own in cells.items() if key[0] < key[1]}
    # With fewer groups no boundary has peers.
    named = own_cells if len(leaving) >= naming.LEAST_HOSTS else {}
    shared = {key: own for key, own in named.items() if "" < key[0] < key[1]}
    inside = {key: own for key, own in named.items() if "" < key[0] == key[1]}
    tests = 3 * (len(leaving) + len(shared) + len(inside) + len(hosts) + pairs)
    visible: dict[str, tuple[float, float]] = {}

    def tested(
        what: What,
        places: Mapping[K, list[int]],
        medians: naming.Floats,
        pool: naming.Floats | None = None,
    ) -> list[Tested]:
        """What is said of those that share pairs, by the medians of these pairs."""
        if not places or (what == "boundary" and len(places) < naming.LEAST_HOSTS):
            return []
        said = [_said(names) for names in places]
        columns = len(said[0])
        # Pairs inside a group are there twice.
        counts = np.array([[len(own) * (columns - 1) / 2] for own in places.values()])
        errors = noise[:columns] * np.sqrt(np.where(counts > 2, _OF_MEDIAN, 1.0) / counts)  # noqa: PLR2004 - of two it is the mean
        medians = medians[:, :columns]
        # All links have one pair: what they differ by is their error.
        distances = (
            naming.distances(medians, np.zeros_like(medians), naming.LINK_DEGREES)
            if what == "link"
            else _compared(medians, errors, pool)
        )
        if len(places) >= naming.LEAST_HOSTS:
            ratios = np.exp(np.median(distances.visible(naming.level(naming.ALARMS, tests)), axis=0))
            visible.setdefault(what, (float(ratios[0]), float(ratios[1:].mean())))
        values = np.exp(_medians(logs, places) * _SLOWER)

        def reason_at(at: tuple[int, int]) -> Reason:
            name = said[at[0]][at[1]]
            return reason(Key(_PROBE, name), name, float(values[at]), _UNITS[at[1]], distances, at)

        found = verdicts(distances, tests, reason_at)
        return [
            Tested(what, names, kind, tuple(reasons))
            for names, (kind, reasons) in zip(places, found, strict=True)
        ]

    leaving_medians = np.array([*uplinks.values()]).reshape(-1, 3)
    boundaries = tested("boundary", leaving, leaving_medians, _medians(logs, across))
    bad = _because(boundaries)
    between = {key: own for key, own in shared.items() if bad.isdisjoint(key)}
    boundaries += tested("boundary", between, _medians(logs, between))
    boundaries += tested("boundary", inside, _medians(logs, inside))
    of_hosts = tested("host", hosts, _medians(left, hosts), left[:pairs])
    bad = _because(of_hosts)
    good = {names: [place] for place, names in enumerate(ends[:pairs]) if bad.isdisjoint(names)}
    # Nothing is said of a pair by itself whose host is slow.
    rest = [Tested("link", names, "ok", ()) for names in ends[:pairs] if names not in good]
    return Links(
        _in_order(boundaries),
        _in_order(of_hosts),
        _in_order([*tested("link", good, _medians(left, good)), *rest]),
        visible,
        groups,
        tuple(measured),
    )


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


def _uplinks(
    logs: naming.Floats, cells: Mapping[tuple[str, str], list[int]], leaving: Mapping[tuple[str], list[int]]
) -> dict[tuple[str], naming.Floats]:
    """By what pairs that leave a group are slow: most of them, and most of the groups that they lead to.

    Most pairs of a small group may lead to one large group that is slow.
    """
    to: dict[str, list[naming.Floats]] = {}
    for (one, other), median in zip(cells, _medians(logs, cells), strict=True):
        if one != other:
            to.setdefault(one, []).append(median)
    return {
        key: np.minimum(median, np.median(to[key[0]], axis=0))
        for key, median in zip(leaving, _medians(logs, leaving), strict=True)
    }


def _typical(
    logs: naming.Floats,
    cells: Mapping[tuple[str, str], list[int]],
    own_cells: Mapping[tuple[str, str], list[int]],
    uplinks: Mapping[tuple[str], naming.Floats],
) -> dict[tuple[str, str], naming.Floats]:
    """What pairs of two groups have by their groups.

    It is the median of these pairs. Where one host could decide that, it is the median of all pairs across
    groups, with what the pairs that leave each of the two differ from it; or of all pairs inside groups.
    """
    kinds: dict[bool, naming.Floats] = {
        same: np.median(
            logs[[place for key in cells for place in cells[key] if (key[0] == key[1]) is same]], axis=0
        )
        for same in {key[0] == key[1] for key in cells}
    }
    own: dict[tuple[str, str], naming.Floats] = dict(zip(own_cells, _medians(logs, own_cells), strict=True))

    def of(one: str, other: str) -> naming.Floats:
        if (one, other) in own_cells or one == other:
            return own.get((one, other), kinds[True])
        near, far = (uplinks.get((group,), kinds[False]) for group in (one, other))
        both: naming.Floats = near + far[_MIRRORED] - kinds[False]
        return both

    return {key: of(*key) for key in cells}


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
    return naming.Distances(ratio, error, degrees)


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
