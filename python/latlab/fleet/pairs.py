"""Which host, or which single link, is slow, by measurements of pairs of hosts.

Each of at most six rounds pairs all hosts (the circle method, of hosts in random order), so a slow host has
only slow pairs and a slow link spoils one pair of a host's six. A host's figure is the median of its pairs,
compared with all pairs; then pairs without a slow host are compared with one another as hosts are (`naming`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from latlab.fleet import naming
from latlab.fleet.host import Key
from latlab.fleet.standings import Failure, Kind, Reason, rank, reason, verdicts
from latlab.run.model import Unit

#: Pairs of a host: one slow pair of six does not move their median, and two do so little.
ROUNDS: Final = 6
#: Other hosts that one which stands out is measured with again.
AGAIN: Final = 3
#: So many hosts are compared with one another: their closest three quarters have seven degrees of freedom.
_MANY: Final = 13
_HALF: Final = 0.5
_OF_PAIRS: Final = 0.8

_PROBE: Final = "fleet.link"


@dataclass(frozen=True, slots=True)
class Pair:
    """What was measured between two hosts.

    Attributes:
        a: The host that measured.
        b: The other one.
        rtt_ns: Round trip, its tenth percentile.
        to: Throughput from `a` to `b`, bytes a second.
        back: From `b` to `a`.
    """

    a: str
    b: str
    rtt_ns: float
    to: float
    back: float

    def of(self, host: str) -> tuple[float, float, float]:
        """Round trip, throughput to a host and from it."""
        return (self.rtt_ns, self.back, self.to) if host == self.a else (self.rtt_ns, self.to, self.back)


@dataclass(frozen=True, slots=True)
class Tested:
    """What is said of a host, or of a link.

    Attributes:
        names: The host, or both ends.
        kind: As of a host in a survey.
        because: By which figures.
    """

    names: tuple[str, ...]
    kind: Kind
    because: tuple[Reason, ...]

    def __str__(self) -> str:
        """`node1`, or `node1–node2`."""
        return "–".join(self.names)


@dataclass(frozen=True, slots=True)
class Links:
    """A survey of links.

    Attributes:
        hosts: What is said of each, the slow ones first.
        links: What is said of each pair that was measured, likewise.
        hosts_visible: From which ratio a host would have been named, by its round trip and by its throughput;
            None where there are too few.
        links_visible: The same of a pair.
        failed: Hosts that could not be measured.
        broken: Both ends of a pair that could not be measured, and why.
        notes: What else there is to know, a sentence each.
    """

    hosts: tuple[Tested, ...]
    links: tuple[Tested, ...]
    hosts_visible: tuple[float, float] | None
    links_visible: tuple[float, float] | None
    failed: tuple[Failure, ...] = ()
    broken: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[Tested, ...]:
        """The slow hosts, then the slow links."""
        return tuple(own for own in (*self.hosts, *self.links) if own.kind == "slow")

    @property
    def possible(self) -> int:
        """How many pairs there are."""
        return math.comb(len(self.hosts), 2)

    def as_json(self) -> dict[str, Any]:
        """As `latlab fleet survey --links --json` prints it."""
        hosts: list[dict[str, Any]] = [
            {
                "name": own.names[0],
                "class": 1,
                "verdict": own.kind,
                "because": [each.as_json() for each in own.because],
            }
            for own in self.hosts
        ]
        hosts += [own.as_json() for own in self.failed]
        return {
            "hosts": hosts,
            "links": [
                {
                    "from": own.names[0],
                    "to": own.names[1],
                    "verdict": own.kind,
                    "because": [each.as_json() for each in own.because],
                }
                for own in self.links
            ]
            + [
                {"from": a, "to": b, "verdict": "failed", "because": [], "reason": why}
                for a, b, why in self.broken
            ],
            "pairs": {"tested": len(self.links), "possible": self.possible},
            "named": [str(own) for own in self.named],
            "false_naming": naming.ALARMS,
            "notes": list(self.notes),
        }


def rounds(names: Sequence[str], dice: random.Random) -> list[list[tuple[str, str]]]:
    """Rounds in which each host has one partner, another one each time; of an odd number one rests."""
    order: list[str | None] = list(names)
    dice.shuffle(order)
    if len(order) % 2:
        order.append(None)
    if not order:
        return []
    fixed, turning = order[0], order[1:]
    chosen = dice.sample(range(len(turning)), min(ROUNDS, len(turning)))
    return [_round(fixed, [*turning[number:], *turning[:number]], dice) for number in chosen]


def _round(first: str | None, others: list[str | None], dice: random.Random) -> list[tuple[str, str]]:
    circle = [first, *others]
    half = len(circle) // 2
    pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
    kept = [(a, b) for a, b in pairs if a is not None and b is not None]
    # Who measures is random too.
    return [pair if dice.random() < 0.5 else pair[::-1] for pair in kept]  # noqa: PLR2004 - one of two


def again(first: Links, dice: random.Random) -> list[tuple[str, str]]:
    """What is to be measured again: hosts that stand out with some that do not, and links that do."""
    doubtful = [own.names[0] for own in first.hosts if own.because]
    good = [own.names[0] for own in first.hosts if not own.because]
    pairs = [(host, other) for host in doubtful for other in dice.sample(good, min(AGAIN, len(good)))]
    return pairs + [(own.names[0], own.names[1]) for own in first.links if own.because]


def without(measured: Sequence[Pair], first: Links) -> list[Pair]:
    """The pairs that are not measured again."""
    doubtful = {own.names[0] for own in first.hosts if own.because}
    links = {frozenset(own.names) for own in first.links if own.because}
    return [
        own
        for own in measured
        if own.a not in doubtful and own.b not in doubtful and frozenset((own.a, own.b)) not in links
    ]


def judged(measured: Sequence[Pair]) -> Links:
    """Compares each host's pairs with all pairs, then pairs without a slow host with one another."""
    pairs: dict[str, list[tuple[float, float, float]]] = {}
    for own in measured:
        for host in (own.a, own.b):
            pairs.setdefault(host, []).append(own.of(host))
    names = [(host,) for host in sorted(pairs)]
    values = np.array([np.median(np.array(pairs[host]), axis=0) for (host,) in names]).reshape(-1, 3)
    tests = 3 * (len(names) + len(measured))
    said = ("round trip", "throughput to it", "throughput from it")
    hosts, hosts_visible = _tested(names, values, _of_hosts(values, measured), [said] * len(names), tests)
    slow = {own.names[0] for own in hosts if own.because}
    others = [own for own in measured if own.a not in slow and own.b not in slow]
    figures = _figures(others)
    links, links_visible = _tested(
        [(own.a, own.b) for own in others],
        figures,
        naming.distances(_slowness(figures), np.zeros_like(figures)),
        [("round trip", f"throughput to {own.b}", f"throughput to {own.a}") for own in others],
        tests,
    )
    # Nothing is said of a pair by itself whose host is slow.
    rest = [Tested((own.a, own.b), "ok", ()) for own in measured if own.a in slow or own.b in slow]
    return Links(_in_order(hosts), _in_order([*links, *rest]), hosts_visible, links_visible)


def _figures(pairs: Sequence[Pair]) -> naming.Floats:
    return np.array([(own.rtt_ns, own.to, own.back) for own in pairs]).reshape(-1, 3)


def _of_hosts(values: naming.Floats, measured: Sequence[Pair]) -> naming.Distances:
    """Hosts' medians against one another; of few hosts against all pairs, which are more, and say more.

    Where hosts differ by τ and links by ε, pairs differ by √(2τ² + ε²), and medians of k pairs by less than
    √(τ² + 1.57 ε²/k): four fifths of the former are more in either case, from three pairs on. Half of the
    pairs are taken, since a slow host of six has a third of them.
    """
    if len(values) >= _MANY:
        return naming.distances(_slowness(values), np.zeros_like(values))
    logs = _slowness(_figures(measured))
    pools = (logs[:, 0], logs[:, 1:].ravel(), logs[:, 1:].ravel())
    ratio, error, degrees = np.full_like(values, np.nan), np.full_like(values, np.nan), np.zeros(3)
    if len(values) >= naming.LEAST_HOSTS:
        for column, pool in enumerate(pools):
            mean, deviation, degrees[column], count = naming.spread(pool, _HALF)
            ratio[:, column] = _slowness(values)[:, column] - mean
            error[:, column] = _OF_PAIRS * deviation * math.sqrt(1 + 1 / count)
    return naming.Distances(ratio, error, degrees)


def confirmed(first: Links, second: Links) -> Links:
    """The second of two surveys, for which those that stood out in the first were measured again."""

    def both(before: Sequence[Tested], after: Sequence[Tested]) -> tuple[Tested, ...]:
        earlier = {frozenset(own.names): own for own in before}
        found: list[Tested] = []
        for own in after:
            old = earlier.get(frozenset(own.names), own)
            if own.kind == "slow" and not old.because:
                found.append(replace(own, kind="suspect"))
            elif old.kind == "slow" and not own.because:
                found.append(replace(old, kind="suspect"))
            else:
                found.append(own)
        seen = {frozenset(own.names) for own in after}
        return _in_order([*found, *(own for own in before if frozenset(own.names) not in seen)])

    return replace(second, hosts=both(first.hosts, second.hosts), links=both(first.links, second.links))


def _slowness(figures: naming.Floats) -> naming.Floats:
    """Logarithms of round trip and throughputs, such that more is slower."""
    logs: naming.Floats = np.log(figures) * np.array([1.0, -1.0, -1.0])
    return logs


_UNITS: Final[tuple[Unit, ...]] = ("ns", "bytes_per_s", "bytes_per_s")


def _tested(
    names: Sequence[tuple[str, ...]],
    values: naming.Floats,
    distances: naming.Distances,
    said: Sequence[tuple[str, ...]],
    tests: int,
) -> tuple[list[Tested], tuple[float, float] | None]:
    """What is said of each, and from which ratio one would be named."""

    def reason_at(at: tuple[int, int]) -> Reason:
        row, column = at
        name = said[row][column]
        return reason(Key(_PROBE, name), name, float(values[at]), _UNITS[column], distances, at)

    found = [
        Tested(own, kind, tuple(reasons))
        for own, (kind, reasons) in zip(names, verdicts(distances, tests, reason_at), strict=True)
    ]
    if len(names) < naming.LEAST_HOSTS:
        return found, None
    visible = np.exp(np.median(distances.visible(naming.level(naming.ALARMS, tests)), axis=0))
    return found, (float(visible[0]), float(visible[1:].mean()))


def _in_order(tested: Sequence[Tested]) -> tuple[Tested, ...]:
    return tuple(sorted(tested, key=lambda own: (*rank(own.kind, own.because), own.names)))
