"""Which hosts are measured with which others: rounds of pairs that are measured at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from latlab.fleet.pairs import Links

#: Pairs of a host: one slow pair of six does not move their median, and two do so little.
ROUNDS: Final = 6
#: Other hosts that one which stands out is measured with again.
AGAIN: Final = 3
#: Pairs that are measured alone: the range of six holds their median with a probability of 97 %.
ALONE: Final = 6
#: Other pairs with which a pair may exchange partners, and how often all pairs are gone through.
_PROBES: Final = 30
_PASSES: Final = 3
#: Plans that are tried before groups are given up.
_TRIES: Final = 5

T = TypeVar("T")

Matching: TypeAlias = list[tuple[str, str]]
#: A host, or the place of the one that rests.
_Seat: TypeAlias = str | None
_Seats: TypeAlias = list[tuple[_Seat, _Seat]]


def rounds(groups: Mapping[str, str], dice: random.Random) -> list[Matching]:
    """Rounds in which each host has one partner, another one each time; of an odd number one rests.

    Where there are several groups, half of the rounds are of partners inside a group, as far as its size
    allows, and half of partners from other groups, of different ones where there are enough.

    Args:
        groups: The group of each host.
        dice: Decides who meets whom.
    """
    seats: list[_Seat] = [*groups, *[None] * (len(groups) % 2)]
    dice.shuffle(seats)
    planned = None
    # Of so few hosts each meets all others.
    if len(seats) > ROUNDS + 1 and len(set(groups.values())) > 1:
        planned = next(filter(None, (_balanced(seats, groups, dice) for _ in range(_TRIES))), None)
    # Who measures is random too.
    return [_drawn(pairs, dice) for pairs in planned or _circle(seats, dice)]


def _drawn(pairs: _Seats, dice: random.Random) -> Matching:
    kept = [(a, b) for a, b in pairs if a is not None and b is not None]
    return [pair if dice.random() < 0.5 else pair[::-1] for pair in kept]  # noqa: PLR2004 - one of two


def _circle(seats: Sequence[_Seat], dice: random.Random) -> list[_Seats]:
    """Rounds of an even number by the circle method, as many as are needed: no two meet twice."""
    if not seats:
        return []
    fixed, turning = seats[0], seats[1:]
    half = len(seats) // 2
    chosen = dice.sample(range(len(turning)), min(ROUNDS, len(turning)))
    circles = ([fixed, *turning[number:], *turning[:number]] for number in chosen)
    return [list(zip(circle[:half], reversed(circle[half:]), strict=True)) for circle in circles]


def _balanced(seats: list[_Seat], groups: Mapping[str, str], dice: random.Random) -> list[_Seats] | None:
    """Every second round inside groups, the others across them; None where two would meet twice."""
    group_of: dict[_Seat, _Seat] = {seat: None if seat is None else groups[seat] for seat in seats}
    members: dict[_Seat, list[_Seat]] = {}
    for seat in seats:
        members.setdefault(group_of[seat], []).append(seat)
    inside = [_circle([*own, *[None] * (len(own) % 2)], dice) for own in members.values()]
    met: set[object] = set()
    planned: dict[int, _Seats] = {}

    def worse(a: _Seat, b: _Seat) -> int:
        """How much speaks against a pair: most of all that it has met, then its kind, then its groups."""
        if frozenset((a, b)) in met:
            return 100
        same = group_of[a] == group_of[b]
        known = ((a, group_of[b]) in met) + ((b, group_of[a]) in met)
        return 10 * (same != within) + (0 if same else known)

    # Rounds inside groups first: they leave the least choice.
    for number in (0, 2, 4, 1, 3, 5):
        within = number % 2 == 0
        own = [circle[number // 2] for circle in inside if within and number // 2 < len(circle)]
        pairs = [pair for pair in chain.from_iterable(own) if None not in pair]
        seated = set(chain.from_iterable(pairs))
        pairs += _paired([seat for seat in seats if seat not in seated], dice)
        _exchange(pairs, worse, dice)
        if any(frozenset(pair) in met for pair in pairs):
            return None
        met.update(map(frozenset, pairs))
        for a, b in (*pairs, *((b, a) for a, b in pairs)):
            if group_of[a] != group_of[b]:
                met.add((a, group_of[b]))
        planned[number] = pairs
    return [planned[number] for number in range(ROUNDS)]


def _paired(seats: list[T], dice: random.Random) -> list[tuple[T, T]]:
    """Pairs at random."""
    dice.shuffle(seats)
    return list(zip(seats[::2], seats[1::2], strict=False))


def _exchange(pairs: list[tuple[T, T]], worse: Callable[[T, T], int], dice: random.Random) -> None:
    """Exchanges partners of two pairs where that makes them better."""
    for place in [*range(len(pairs))] * _PASSES:
        for other in dice.sample(range(len(pairs)), min(_PROBES, len(pairs))):
            (a, b), (c, d) = pairs[place], pairs[other]
            if not worse(a, b):
                break
            now = worse(a, b) + worse(c, d)
            ways = (((a, c), (b, d)), ((a, d), (b, c)))
            best = min(ways, key=lambda way: worse(*way[0]) + worse(*way[1]))
            if place != other and worse(*best[0]) + worse(*best[1]) < now:
                pairs[place], pairs[other] = best


def again(found: Links, dice: random.Random, turns: Collection[str]) -> list[Matching]:
    """Rounds in which what stands out is measured again, while the others are busy as they were before.

    A host that stands out meets some that do not, a link its own ends, a boundary all of its hosts. A link
    across groups may be slow because all pairs of the two groups are: some of those are measured, too.

    Args:
        found: What was found.
        dice: Decides who meets whom.
        turns: Hosts that do not measure at the same time as others.
    """
    groups = found.groups
    good: dict[str, list[str]] = {}
    for own in found.hosts:
        if not own.because:
            good.setdefault(groups[own.names[0]], []).append(own.names[0])
    every = list(chain.from_iterable(good.values()))

    def between(names: Sequence[str], most: int, besides: Sequence[str] = ()) -> Matching:
        """Disjoint pairs across a boundary, or inside a group."""
        own = [host for host in good.get(names[0], ()) if host not in besides]
        dice.shuffle(own)
        if len(names) == 1:
            others = [host for host in every if groups[host] != names[0]]
        elif names[0] == names[1]:
            own, others = own[::2], own[1::2]
        else:
            others = [host for host in good.get(names[1], ()) if host not in besides]
        dice.shuffle(others)
        return list(zip(own, others, strict=False))[:most]

    wanted: Matching = []
    for host in (own.names[0] for own in found.hosts if own.because):
        wanted += [(host, other) for other in dice.sample(every, min(AGAIN, len(every)))]
    for a, b in (own.names for own in found.links if own.because):
        wanted += [
            (a, b),
            *(between((groups[a], groups[b]), AGAIN, (a, b)) if groups[a] != groups[b] else ()),
        ]
    for own in found.boundaries:
        if own.because:
            wanted += between(own.names, len(every))
    planned: list[Matching] = []
    busy: list[set[str]] = []
    for pair in {frozenset(pair): pair for pair in wanted}.values():
        free = next((number for number, hosts in enumerate(busy) if hosts.isdisjoint(pair)), len(busy))
        if free == len(busy):
            planned.append([])
            busy.append(set())
        planned[free].append(pair)
        busy[free].update(pair)
    at_once = [host for own in found.hosts if (host := own.names[0]) not in turns]
    for number, hosts in enumerate(busy):
        others = _paired([host for host in at_once if host not in hosts], dice)
        _exchange(others, lambda a, b: groups[a] == groups[b], dice)
        planned[number] += others
    return planned


def alone(found: Links, dice: random.Random, turns: Collection[str]) -> Matching:
    """Disjoint pairs of good hosts that were measured at the same time as others; across groups, if any were.

    Args:
        found: What was found.
        dice: Decides which ones.
        turns: Hosts that do not measure at the same time as others.
    """
    good = {own.names[0] for own in found.hosts if not own.because} - set(turns)
    pairs = [(a, b) for a, b in (own.names for own in found.links if not own.because) if {a, b} <= good]
    across = [(a, b) for a, b in pairs if found.groups[a] != found.groups[b]]
    chosen: Matching = []
    usable = across or pairs
    # With fewer hosts a pair is alone anyway.
    if len(good) >= 4:  # noqa: PLR2004 - two pairs
        for pair in dice.sample(usable, len(usable)):
            if len(chosen) < ALONE and set(pair).isdisjoint(chain.from_iterable(chosen)):
                chosen.append(pair)
    return chosen
