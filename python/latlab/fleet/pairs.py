"""A survey of links: what was measured between pairs of hosts, and what is said of it (see `judging`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from latlab.fleet import naming
from latlab.fleet.standings import Failure, Tested
from latlab.units import format_factor, format_percent, format_span

#: What has less than this share of what it has alone, shares something that limits it.
_SHARED: Final = 1 / naming.LEAST_RATIO


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


class Spread(NamedTuple):
    """A ratio: the median of some pairs, the lowest and the highest."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Contention:
    """What a pair has when all hosts are measured at once, over what it has alone.

    Attributes:
        pairs: How many were measured alone, too.
        across: Whether they were of hosts of different groups.
        throughput: Of both directions together.
        round_trip: Likewise.
    """

    pairs: int
    across: bool
    throughput: Spread
    round_trip: Spread

    @property
    def shared(self) -> bool | None:
        """Whether something that pairs share limits their throughput; None where they do not agree."""
        if self.throughput.high < _SHARED:
            return True
        return False if self.throughput.low > _SHARED else None

    @property
    def words(self) -> str:
        """What is said of it, a sentence."""
        rates = format_span(self.throughput.low, self.throughput.high, format_percent)
        trips = format_span(self.round_trip.low, self.round_trip.high, lambda own: format_factor(own, 2))
        means = {
            True: ": they share something that limits them",
            False: ": nothing that they share limits them",
            None: "",
        }[self.shared]
        return (
            f"All at once, pairs{' across groups' if self.across else ''} have"
            f" {format_percent(self.throughput.ratio)} of the throughput that they have alone ({rates}),"
            f" and {format_factor(self.round_trip.ratio, 2)} times the round trip ({trips}),"
            f" by {self.pairs} pairs{means}."
        )

    def as_json(self) -> dict[str, Any]:
        """As a survey has it."""
        own = {"pairs": self.pairs, "across_groups": self.across, "throughput": self.throughput.ratio}
        ends = {"low": self.throughput.low, "high": self.throughput.high}
        return own | ends | {"round_trip": self.round_trip._asdict()}


@dataclass(frozen=True, slots=True)
class Links:
    """A survey of links.

    Attributes:
        boundaries: What is said of each boundary, the slow ones first.
        hosts: What is said of each host, likewise.
        links: What is said of each pair that was measured, likewise.
        visible: From which ratio a boundary, host or link would have been named, by its round trip and by its
            throughput; without those of which there are too few.
        groups: The group of each host.
        measured: The last measurement of each pair at the same time as others.
        contention: What pairs lose when all are measured at once; None where it is unknown.
        failed: Hosts that could not be measured.
        broken: Both ends of a pair that could not be measured, and why.
        notes: What else there is to know, a sentence each.
    """

    boundaries: tuple[Tested, ...]
    hosts: tuple[Tested, ...]
    links: tuple[Tested, ...]
    visible: Mapping[str, tuple[float, float]]
    groups: Mapping[str, str]
    measured: tuple[Pair, ...]
    contention: Contention | None = None
    failed: tuple[Failure, ...] = ()
    broken: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def tested(self) -> tuple[Tested, ...]:
        """Boundaries, hosts and links."""
        return (*self.boundaries, *self.hosts, *self.links)

    @property
    def named(self) -> tuple[Tested, ...]:
        """Those that are slow."""
        return tuple(own for own in self.tested if own.kind == "slow")

    @property
    def possible(self) -> int:
        """How many pairs there are."""
        return math.comb(len(self.hosts), 2)

    @property
    def grouped(self) -> int:
        """How many groups the hosts are in; those without one are none."""
        return len({group for group in self.groups.values() if group})

    def as_json(self) -> dict[str, Any]:
        """As `latlab fleet survey --links --json` prints it."""

        def said(own: Tested) -> dict[str, Any]:
            return {"verdict": own.kind, "because": [each.as_json() for each in own.because]}

        hosts: list[dict[str, Any]] = [
            {"name": own.names[0], "group": self.groups[own.names[0]], "class": 1, **said(own)}
            for own in self.hosts
        ]
        hosts += [own.as_json() for own in self.failed]
        links = [{"from": own.names[0], "to": own.names[1], **said(own)} for own in self.links]
        links += [
            {"from": a, "to": b, "verdict": "failed", "because": [], "reason": why}
            for a, b, why in self.broken
        ]
        return {
            "hosts": hosts,
            "boundaries": [{"groups": list(own.names), **said(own)} for own in self.boundaries],
            "links": links,
            "pairs": {"tested": len(self.links), "possible": self.possible},
            "contention": None if self.contention is None else self.contention.as_json(),
            "named": [str(own) for own in self.named],
            "false_naming": naming.ALARMS,
            "notes": list(self.notes),
        }
