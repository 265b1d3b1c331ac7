"""How often `latlab fleet` names what is slow in a simulated fleet, rightly or wrongly.

    .venv/bin/python benches/fleet.py [--only hosts|links] [--save]

Hosts of a fleet have twelve figures. Each figure's spread between hosts is what runs of one machine differ by
in one of the probes of benches/results/compare-spread.csv; one kind of fleet has heavier tails (Student's t
with five degrees of freedom). A row for each kind: how many fleets, in how many a host was named that is not
slow, how many of the slow hosts were named.

Surveys of links are simulated as they are done: rounds of pairs, what stands out measured again. Hosts,
links, racks and measurements each differ by 5 %, in some kinds of fleets with the same heavier tails. A
false name is that of a host, a link or a boundary that is not slow.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from latlab.fleet import naming

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fleet.simulated import Simulated, leaving, racks
from tools import evidence

_FIGURES: Final = 12
_TAILS: Final = {False: "normal", True: "Student t, 5 degrees"}


def fleet(dice: np.random.Generator, hosts: int, spreads: naming.Floats, *, heavy: bool) -> naming.Floats:
    """Logarithms of the figures of hosts that are alike."""
    shape = (hosts, _FIGURES)
    own = dice.standard_t(5, shape) / math.sqrt(5 / 3) if heavy else dice.standard_normal(shape)
    values: naming.Floats = own * dice.choice(spreads, _FIGURES)
    return values


def host_rows() -> Iterator[dict[str, object]]:
    """A row for each kind of fleet."""
    spreads = np.array([float(own["median"]) for own in evidence.read("compare-spread.csv")])
    dice = np.random.default_rng(1)
    for hosts, fleets, slow, times, heavy in (
        (20, 10_000, 0, 1.0, False),
        (20, 10_000, 0, 1.0, True),
        (20, 1_000, 2, 1.5, False),
        (20, 1_000, 2, 3.0, False),
        (1_000, 20, 2, 1.5, False),
    ):
        started, wrong, found = time.monotonic(), 0, 0
        for _ in range(fleets):
            values = fleet(dice, hosts, spreads, heavy=heavy)
            values[:slow] += math.log(times)
            own = naming.distances(values, np.zeros_like(values))
            named = np.any(own.beyond(naming.level(naming.ALARMS, values.size)), axis=1)
            wrong += bool(named[slow:].any())
            found += int(named[:slow].sum())
        yield {
            "hosts": hosts,
            "tails": _TAILS[heavy],
            "fleets": fleets,
            "fleets_with_a_false_name": wrong,
            "slow_hosts": f"{slow} a fleet, {times:g} times slower" if slow else "none",
            "of_these_named": f"{100 * found / (slow * fleets):.1f} %" if slow else "",
            "ms_a_fleet": f"{1000 * (time.monotonic() - started) / fleets:.1f}",
        }


def link_rows() -> Iterator[dict[str, object]]:
    """A row for each kind of fleet."""
    for hosts, groups, fleets, times, heavy in (
        (20, 1, 10_000, 1.0, False),
        (20, 1, 10_000, 1.0, True),
        (20, 5, 10_000, 1.0, False),
        (20, 5, 10_000, 1.0, True),
        (60, 10, 1_000, 10.0, False),
        (1_000, 50, 20, 10.0, False),
        (10_000, 500, 1, 10.0, False),
    ):
        started, wrong, found = time.monotonic(), 0, 0
        for seed in range(fleets):
            own = Simulated(racks(hosts, groups), seed, spread=0.05, heavy=heavy, lasting=True)
            slow: set[tuple[str, ...]] = set()
            if times > 1:
                slow = {("node1",), (f"node{hosts // 2}",), ("rack3",)}
                own.hosts = {name: times for (name,) in slow}
                own.ways = leaving("rack3", times)
            named = {each.names for each in own.survey().named}
            wrong += bool(named - slow)
            found += len(named & slow)
        yield {
            "hosts": hosts,
            "racks": groups,
            "tails": _TAILS[heavy],
            "fleets": fleets,
            "fleets_with_a_false_name": wrong,
            "slow": f"2 hosts and the uplink of a rack, {times:g} times" if times > 1 else "nothing",
            "of_these_named": f"{100 * found / (3 * fleets):.1f} %" if times > 1 else "",
            "s_a_fleet": f"{(time.monotonic() - started) / fleets:.2g}",
        }


_TABLES: Final = {"hosts": ("fleet-names.csv", host_rows), "links": ("fleet-links.csv", link_rows)}


def main() -> None:
    """Prints the tables, and keeps them where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=_TABLES, help="one of the two tables")
    parser.add_argument("--save", action="store_true", help="keep them in benches/results")
    asked = parser.parse_args()
    for file, rows in (own for name, own in _TABLES.items() if asked.only in {None, name}):
        found = evidence.printed(rows())
        if asked.save:
            evidence.keep(file, found, "benches/fleet.py")


if __name__ == "__main__":
    main()
