"""The published "latency numbers every programmer should know", by year, with their sources.

Figures only: what a table does not list is absent, never filled in from another year. None of these tables
lists an L3 cache. A figure is nanoseconds for the operation named by its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

#: What the keys of :attr:`Textbook.figures_ns` mean.
OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "L1": "L1 cache reference",
        "branch": "branch mispredict",
        "L2": "L2 cache reference",
        "mutex": "mutex lock and unlock",
        "RAM": "main memory reference",
        "compress_1k": "compress 1,000 bytes with Zippy (Snappy)",
        "send_2k": "send 2,000 bytes over a 1 Gbps network",
        "ssd_random_4k": "read 4,096 bytes at random from an SSD",
        "read_1mb_memory": "read 1,000,000 bytes sequentially from memory",
        "datacenter_round_trip": "round trip within a data centre",
        "read_1mb_ssd": "read 1,000,000 bytes sequentially from an SSD",
        "disk_seek": "disk seek",
        "read_1mb_disk": "read 1,000,000 bytes sequentially from a disk",
        "packet_overseas": "packet from California to the Netherlands and back",
    }
)


@dataclass(frozen=True, slots=True)
class Textbook:
    """One published table.

    Attributes:
        year: The year that its figures are about.
        source: Who published it, where.
        figures_ns: Nanoseconds by key of :data:`OPERATIONS`.
    """

    year: int
    source: str
    figures_ns: Mapping[str, float]

    def get(self, key: str) -> float | None:
        """The figure for `key`, ns; absent where this table does not list it."""
        return self.figures_ns.get(key)


NORVIG_2001 = Textbook(
    2001,
    "Peter Norvig, Teach Yourself Programming in Ten Years (2001), norvig.com/21-days.html",
    MappingProxyType(
        {
            "L1": 0.5,
            "branch": 5.0,
            "L2": 7.0,
            "mutex": 25.0,
            "RAM": 100.0,
            "send_2k": 20e3,
            "read_1mb_memory": 250e3,
            "disk_seek": 8e6,
            "read_1mb_disk": 20e6,
            "packet_overseas": 150e6,
        }
    ),
)

DEAN_2009 = Textbook(
    2009,
    "Jeff Dean, Designs, Lessons and Advice from Building Large Distributed Systems (LADIS 2009), slide 24",
    MappingProxyType(
        {
            "L1": 0.5,
            "branch": 5.0,
            "L2": 7.0,
            "mutex": 25.0,
            "RAM": 100.0,
            "compress_1k": 3e3,
            "send_2k": 20e3,
            "read_1mb_memory": 250e3,
            "datacenter_round_trip": 500e3,
            "disk_seek": 10e6,
            "read_1mb_disk": 20e6,
            "packet_overseas": 150e6,
        }
    ),
)

# The gist sends 1,000 bytes in 10 us, not 2,000 in 20 us: that row is another operation and is left out.
BONER_2012 = Textbook(
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

#: The published tables, oldest first.
TABLES: tuple[Textbook, ...] = (NORVIG_2001, DEAN_2009, BONER_2012)

#: The one that stands beside the ladder unless another year is asked for: the table most people have seen.
USUAL = BONER_2012

SCOTT_SOURCE = (
    "Colin Scott, Latency Numbers Every Programmer Should Know by year "
    "(colin-scott.github.io/personal_website/research/interactive_latency.html): trends, not measurements"
)


#: Outside of these the trends mean nothing.
_SCOTT_YEARS = range(1990, 2101)


def scott(year: int) -> Textbook:
    """Colin Scott's trend figures for the caches and memory in `year`.

    His model: a clock that stopped at 3 GHz in 2005 and doubled every two years before; L1 3 cycles, L2 13, a
    branch mispredict 10, a mutex 50; memory latency 100 ns since 2000, 7 % worse for each year before; memory
    bandwidth 4 GB/s in 2001, doubling every three years (as coded there, with 0.33 for a third on one side).

    Raises:
        ValueError: The year is outside of 1990 to 2100.
    """
    if year not in _SCOTT_YEARS:
        raise ValueError(f"the trends cover {_SCOTT_YEARS[0]} to {_SCOTT_YEARS[-1]}, not {year}")
    cycle_ns = 1 / 3 * 2 ** (max(0, 2005 - year) / 2)
    first = 1982  # the page counts years from here, which matters only because of the 0.33
    bytes_per_ns = 4.0 * 2 ** ((year - first) / 3 - (2001 - first) * 0.33)
    figures = {
        "L1": 3 * cycle_ns,
        "branch": 10 * cycle_ns,
        "L2": 13 * cycle_ns,
        "mutex": 50 * cycle_ns,
        "RAM": 100.0 * 0.93 ** min(0, year - 2000),
        "read_1mb_memory": 1e6 / bytes_per_ns,
        "datacenter_round_trip": 500e3,
        "packet_overseas": 150e6,
    }
    return Textbook(year, SCOTT_SOURCE, MappingProxyType(figures))


def of_year(year: int) -> Textbook:
    """The published table of exactly this year, or Colin Scott's trend figures for it.

    Raises:
        ValueError: No table and no trend covers the year.
    """
    for table in TABLES:
        if table.year == year:
            return table
    return scott(year)
