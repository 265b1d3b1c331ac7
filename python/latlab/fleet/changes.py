"""What changed between two surveys of a fleet: on all hosts, and on single ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from latlab.compare import Figure, together, visible
from latlab.compare.verdict import Kind
from latlab.fleet import naming
from latlab.fleet.host import Key
from latlab.run.model import Unit

OfHost: TypeAlias = Literal["changed", "ok", "no-peers", "not-comparable"]


@dataclass(frozen=True, slots=True)
class Part:
    """A survey that is one side.

    Attributes:
        label: How it is called.
        hosts: How many it has.
        runs: Of all of them.
    """

    label: str
    hosts: int
    runs: int


@dataclass(frozen=True, slots=True)
class Shared:
    """A figure over the hosts of a group.

    Attributes:
        figure: Both sides, geometric means over hosts with the lowest and the highest, and the verdict.
        group: Place of the group.
        hosts: How many are compared.
        agreeing: How many of them changed in the direction of the mean.
    """

    figure: Figure
    group: int
    hosts: int
    agreeing: int


@dataclass(frozen=True, slots=True)
class Apart:
    """A figure of one host that did not change as on the others.

    Attributes:
        key: The figure.
        name: What people call it.
        unit: Of its values.
        a: Before.
        b: After.
        others: How many times as large it became on the others, their mean.
        low: By how much slower than the others' the host's change is: lower end of its 95 % interval.
        high: Upper end.
    """

    key: Key
    name: str
    unit: Unit
    a: float
    b: float
    others: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.b / self.a

    @property
    def relative(self) -> float:
        """How many times slower the host became than the others; less than 1: faster."""
        relative = self.ratio / self.others
        return relative if self.unit == "ns" else 1 / relative

    def as_json(self) -> dict[str, object]:
        """The figure before and after, and what it became on the others."""
        probe, point = self.key
        return {
            "probe": probe,
            "point": point,
            "a": self.a,
            "b": self.b,
            "ratio": self.ratio,
            "others": self.others,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True, slots=True)
class Compared:
    """A host that is in both surveys.

    Attributes:
        name: How it is called.
        group: Place of its group; None where it cannot be compared.
        kind: `changed`: otherwise than the others; `no-peers`: its group has fewer than five hosts.
        because: By which figures, the clearest first.
        differs: What its description says now and did not before.
        why: Why it cannot be compared.
        ratios: Each figure after over before.
        largest: The figure that changed most, with its unit; None where there is none.
    """

    name: str
    group: int | None
    kind: OfHost
    because: tuple[Apart, ...]
    differs: tuple[str, ...]
    why: str
    ratios: Mapping[Key, float]
    largest: tuple[str, Unit, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """As `latlab compare --json` has it."""
        return {
            "name": self.name,
            "group": self.group,
            "verdict": self.kind,
            "because": [each.as_json() for each in self.because],
            "differs": list(self.differs),
            "why": self.why,
            "figures": [
                {"probe": key.probe, "point": key.point, "ratio": ratio} for key, ratio in self.ratios.items()
            ],
        }


@dataclass(frozen=True, slots=True)
class Changes:
    """Two surveys.

    Attributes:
        a: The first.
        b: The second, which is compared with the first.
        same: Changes up to this share count as none.
        groups: What distinguishes each group of hosts from the others, and how many hosts it has.
        figures: Changes that hosts of a group share; those that changed most first.
        hosts: Those in both surveys, changed ones first.
        only: Hosts of the first survey alone, and of the second alone.
        environment: What else differs, and on how many hosts.
    """

    a: Part
    b: Part
    same: float
    groups: tuple[tuple[str, int], ...]
    figures: tuple[Shared, ...]
    hosts: tuple[Compared, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    environment: tuple[str, ...]

    @property
    def changed(self) -> tuple[Compared, ...]:
        """Hosts that changed otherwise than the others."""
        return tuple(own for own in self.hosts if own.kind == "changed")

    def of_group(self, group: int) -> tuple[Figure, ...]:
        """The figures of a group."""
        return tuple(own.figure for own in self.figures if own.group == group)

    @property
    def compared(self) -> int:
        """How many hosts can be compared."""
        return sum(count for _, count in self.groups)

    @property
    def kind(self) -> Kind:
        """The overall verdict."""
        return "changed" if self.changed else together(own.figure for own in self.figures)

    @property
    def visible(self) -> tuple[float, float] | None:
        """What would have been seen on all hosts of a group: in half of the figures, and in all."""
        return visible(own.figure for own in self.figures)

    def as_json(self) -> dict[str, Any]:
        """As `latlab compare --json` prints it."""
        return {
            "same": self.same,
            "sides": [{"label": own.label, "hosts": own.hosts, "runs": own.runs} for own in (self.a, self.b)],
            "verdict": self.kind,
            "environment": list(self.environment),
            "groups": [{"label": label, "hosts": count} for label, count in self.groups],
            "figures": [
                own.figure.as_json()
                | {"group": own.group, "hosts": own.hosts, "agreeing": own.agreeing, "more_runs": None}
                for own in self.figures
            ],
            "hosts": [own.as_json() for own in self.hosts],
            "only_a": list(self.only[0]),
            "only_b": list(self.only[1]),
            "false_naming": naming.ALARMS,
        }
