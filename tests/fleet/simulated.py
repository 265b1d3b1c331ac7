"""Fleets that never were: what pairs of their hosts measure, and the survey that follows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

from latlab.fleet.judging import survey
from latlab.fleet.pairs import Links, Pair


def racks(hosts: int, count: int) -> dict[str, str]:
    """Hosts in so many racks of the same size, the first of which may have one more."""
    return {f"node{number}": f"rack{number * count // hosts}" for number in range(hosts)}


def leaving(rack: str, times: float) -> Callable[[str, str], float]:
    """Data that leaves a rack goes so many times slower, as a fleet's `ways` have it."""
    return lambda one, other: times if one == rack != other else 1.0


class Simulated:
    """Hosts whose round trips are 100 µs and whose throughput is 1 GB/s.

    Args:
        groups: The group of each host, or how many hosts of one group there are.
        seed: Of all that is random.
        spread: By how much measurements differ, and if `lasting` hosts, links and groups as well; logarithm.
        heavy: Whether they differ as Student's t with five degrees of freedom does, not as normals do.
        lasting: Whether hosts, links and groups differ too, and not measurements only.

    Attributes:
        hosts: By how much hosts are slower.
        links: By how much links are.
        outwards: By how much hosts are slower in what they send.
        ways: By how much data goes slower from one group to another.
        trips: By how much round trips between two groups are longer.
        at_once: By how much throughput is less if all pairs are measured at once.
    """

    def __init__(
        self,
        groups: Mapping[str, str] | int,
        seed: int,
        *,
        spread: float = 0.05,
        heavy: bool = False,
        lasting: bool = False,
    ) -> None:
        self.groups = dict(groups) if isinstance(groups, Mapping) else racks(groups, 1)
        self.dice = random.Random(seed)
        self.hosts: dict[str, float] = {}
        self.links: dict[frozenset[str], float] = {}
        self.outwards: dict[str, float] = {}
        self.ways: Callable[[str, str], float] = lambda one, other: 1.0
        self.trips: Callable[[str, str], float] = lambda one, other: 1.0
        self.at_once = 1.0
        self._spread, self._heavy, self._lasting = spread, heavy, lasting
        self._own: dict[object, tuple[float, float, float]] = {}

    def pair(self, a: str, b: str, *, alone: bool = False) -> Pair:
        """What the first of two hosts measures with the second."""
        slow = self.hosts.get(a, 1.0) * self.hosts.get(b, 1.0) * self.links.get(frozenset((a, b)), 1.0)
        one, other = self.groups[a], self.groups[b]
        rtt, to, back = (math.exp(own) for own in self._differs(a, b))
        rate = 1e9 / slow / (1.0 if alone else self.at_once)
        return Pair(
            *(a, b, 1e5 * slow * self.trips(one, other) * rtt),
            rate / self.outwards.get(a, 1.0) / self.ways(one, other) / to,
            rate / self.outwards.get(b, 1.0) / self.ways(other, one) / back,
        )

    def _differs(self, a: str, b: str) -> tuple[float, float, float]:
        """Logarithms by which round trip and throughputs are slower, of what a pair is made of together."""
        found = self._drawn()
        if not self._lasting:
            return found
        parts: list[tuple[object, bool]] = [(a, True), (b, False), (tuple(sorted((a, b))), a < b)]
        if self.groups[a] != self.groups[b]:
            parts += [((self.groups[a],), True), ((self.groups[b],), False)]
        for part, forwards in parts:
            if part not in self._own:
                self._own[part] = self._drawn()
            rtt, out, into = self._own[part]
            out, into = (out, into) if forwards else (into, out)
            found = found[0] + rtt, found[1] + out, found[2] + into
        return found

    def _drawn(self) -> tuple[float, float, float]:
        def one() -> float:
            own = self.dice.gauss(0.0, self._spread)
            # Over the root of chi² with five degrees by five, and to the same variance.
            return own * math.sqrt(3 / (2 * self.dice.gammavariate(2.5, 1.0))) if self._heavy else own

        return one(), one(), one()

    def survey(self) -> Links:
        """All of a survey, as it is done."""
        plan = survey(self.groups, self.dice)
        wanted = next(plan)
        while True:
            found = [
                self.pair(a, b, alone=len(own) == 1 and len(self.groups) > 3)
                for own in wanted.rounds
                for a, b in own
            ]
            try:
                wanted = plan.send(found)
            except StopIteration as ended:
                links: Links = ended.value
                return links
