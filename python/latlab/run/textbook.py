"""The published "latency numbers every programmer should know" that stand beside a machine's figures.

Figures only: what the table does not list (an L3 cache) is absent, never filled in from another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Textbook(NamedTuple):
    """One published table: its year, who published it where, and nanoseconds by operation."""

    year: int
    source: str
    figures_ns: Mapping[str, float]

    def get(self, key: str) -> float | None:
        """The figure for `key`, ns; absent where this table does not list it."""
        return self.figures_ns.get(key)


#: The table most people have seen, without its row of 1,000 bytes over a network in 10 us: earlier ones send
#: 2,000 in 20 us.
USUAL = Textbook(
    2012,
    "Jeff Dean's table as kept by Jonas Bonér (2012), gist.github.com/jboner/2841832",
    MappingProxyType(
        {
            "L1": 0.5,
            "branch": 5.0,
            "L2": 7.0,
            "mutex": 25.0,
            "RAM": 100.0,
            "compress_1k": 3e3,
            "ssd_random_4k": 150e3,
            "read_1mb_memory": 250e3,
            "datacenter_round_trip": 500e3,
            "read_1mb_ssd": 1e6,
            "disk_seek": 10e6,
            "read_1mb_disk": 20e6,
            "packet_overseas": 150e6,
        }
    ),
)
