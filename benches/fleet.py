"""How often `latlab fleet` names a host of a simulated fleet, rightly or wrongly.

    .venv/bin/python benches/fleet.py [--save]

Hosts of a fleet have twelve figures. Each figure's spread between hosts is what runs of one machine differ by
in one of the probes of benches/results/compare-spread.csv; one kind of fleet has heavier tails (Student's t
with five degrees of freedom). A row for each kind: how many fleets, in how many a host was named that is not
slow, how many of the slow hosts were named.
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

from tools import evidence

_FIGURES: Final = 12


def fleet(dice: np.random.Generator, hosts: int, spreads: naming.Floats, *, heavy: bool) -> naming.Floats:
    """Logarithms of the figures of hosts that are alike."""
    shape = (hosts, _FIGURES)
    own = dice.standard_t(5, shape) / math.sqrt(5 / 3) if heavy else dice.standard_normal(shape)
    values: naming.Floats = own * dice.choice(spreads, _FIGURES)
    return values


def rows(spreads: naming.Floats) -> Iterator[dict[str, object]]:
    """A row for each kind of fleet."""
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
            "tails": "Student t, 5 degrees" if heavy else "normal",
            "fleets": fleets,
            "fleets_with_a_false_name": wrong,
            "slow_hosts": f"{slow} a fleet, {times:g} times slower" if slow else "none",
            "of_these_named": f"{100 * found / (slow * fleets):.1f} %" if slow else "",
            "ms_a_fleet": f"{1000 * (time.monotonic() - started) / fleets:.1f}",
        }


def main() -> None:
    """Prints the table, and keeps it where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", action="store_true", help="keep it in benches/results")
    asked = parser.parse_args()
    found = []
    for row in rows(np.array([float(own["median"]) for own in evidence.read("compare-spread.csv")])):
        print("  ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
        found.append(row)
    if asked.save:
        made = evidence.origin("benches/fleet.py")
        evidence.write("fleet-names.csv", [{**row, **made} for row in found])


if __name__ == "__main__":
    main()
