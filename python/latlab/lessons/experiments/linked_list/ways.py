"""The ways of creating the list in C: what each is, how it is run, and what shows that it was the one meant."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from latlab.lessons import compiled
from latlab.lessons.bench import Bench, Cannot, Times
from latlab.units import format_count

WAYS: Final = {
    "malloc": "malloc, one call a node (as published)",
    "again": "malloc, from memory freed before",
    "linear": "linear allocator: advances a pointer",
    "populated": "linear, all pages in one call (MAP_POPULATE)",
    "huge": "linear, in pages of 2 MiB (madvise)",
    "touched": "linear, pages already present",
    "prefetched": "linear, each line prefetched 512 bytes ahead",
    "aligned": "linear, a line of 64 bytes for each node",
    "across": "linear, each node across two lines",
    "pool": "pool: nodes freed before",
    "top_pad": "malloc, heap grown by 64 MiB (top_pad)",
    "mmap_threshold": "malloc, mmap_threshold of 32 MiB",
    "hugetlb": "malloc, heap in huge pages (hugetlb)",
    "jemalloc": "malloc of jemalloc, preloaded",
    "tcmalloc": "malloc of tcmalloc, preloaded",
    "mimalloc": "malloc of mimalloc, preloaded",
}
#: Those of the program list_ways.c, with the bytes from node to node.
_OWN: Final = dict.fromkeys(("linear", "populated", "huge", "touched", "prefetched"), 32) | {
    "aligned": 64,
    "across": 64,
    "pool": 32,
}
#: Those whose memory was prepared beforehand.
PREPARED: Final = ("malloc", "again", "touched", "pool")
PAD: Final = 64 << 20
TUNABLES: Final = {
    "top_pad": f"glibc.malloc.top_pad={PAD}",
    "mmap_threshold": f"glibc.malloc.mmap_threshold={32 << 20}",
    "hugetlb": "glibc.malloc.hugetlb=1",
}
#: Names of the libraries, and Debian's packages.
ALLOCATORS: Final = {
    "jemalloc": (("libjemalloc.so.2", "libjemalloc.so"), "libjemalloc2"),
    "tcmalloc": (
        ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc_minimal.so"),
        "libtcmalloc-minimal4",
    ),
    "mimalloc": (
        ("libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"),
        "libmimalloc2.0",
    ),
}
LIST: Final = "the list from malloc"

#: What a program says: names and values.
Words = dict[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything.

    Attributes:
        nodes: In C.
        rounds: Of the ways and of the walks, at most.
        runs: Under explain.
        python_nodes: In Python.
        python_rounds: Of them.
        probes: Of the Rust probe.
        profile: Its profile.
        native_s: Its seconds.
        turns_s: Seconds of the rounds of the ways, and again of the walks.
    """

    nodes: int
    rounds: int
    runs: int
    python_nodes: int
    python_rounds: int
    probes: str = "alloc.nodes,alloc.malloc"
    profile: str = "standard"
    native_s: float = 12.0
    turns_s: float = 10.0


PLANS: Final = {
    "small": Plan(100_000, 12, 10, 10_000, 3, "alloc.nodes", "quick", 1.2, turns_s=2.0),
    "default": Plan(1_000_000, 12, 30, 300_000, 3, turns_s=15.0),
    "original": Plan(1_000_000, 21, 100, 1_000_000, 5, turns_s=math.inf),
}


@dataclass(frozen=True, slots=True)
class Made:
    """One way of creating the list: seconds of each part, page faults, bytes a node, share of nodes across lines."""

    created: Times
    faults: Times
    freed: Times
    bytes: float
    across: float


def created(bench: Bench, plan: Plan, listed: Path, own: Path | None) -> dict[str, Made]:
    """Every way that this machine has, alternately; without malloc's list none, as all are compared with it."""
    nodes = plan.nodes
    asked: dict[str, Callable[[], Words]] = {"malloc": lambda: compiled.reported(listed, nodes, "proof")}
    if own is not None:
        asked |= {name: functools.partial(compiled.reported, own, name, nodes) for name in _OWN}
    asked |= {name: functools.partial(tuned, listed, nodes, name) for name in TUNABLES}
    asked |= {name: functools.partial(preloaded, listed, nodes, name) for name in ALLOCATORS}
    arms = {name: (WAYS[name], functools.partial(whole, work, nodes)) for name, work in asked.items()}
    firsts = {name: bench.attempt(*arm) for name, arm in arms.items()}
    able = {name: first for name, first in firsts.items() if first is not None}
    _without_huge_pages(bench, able)
    kept = bench.rounds({name: arms[name] for name in able}, plan.rounds, plan.turns_s)
    if "malloc" not in kept:
        bench.keep_why(LIST, f"there is no list from malloc to compare with: {bench.why(WAYS['malloc'])}")
        return {}
    made = {name: _made(name, found, nodes) for name, found in kept.items()}
    again = (_all(kept["malloc"], "again_s"), _all(kept["malloc"], "again_faults"), Times())
    return made | {"again": Made(*again, made["malloc"].bytes, made["malloc"].across)}


def _made(name: str, found: list[Words], nodes: int) -> Made:
    return Made(
        _all(found, "created_s"),
        _all(found, "created_faults"),
        _all(found, "freed_s"),
        float(_OWN.get(name, 0) or found[0]["apart"]),
        float(found[0]["across"]) / nodes,
    )


def _without_huge_pages(bench: Bench, able: dict[str, Words]) -> None:
    """Takes away the ways with huge pages where none came."""
    for name, usual in (("huge", "linear"), ("hugetlb", "malloc")):
        small = able.get(usual) or able.get("malloc")
        if name not in able or small is None:
            continue
        faults, without = (float(found["created_faults"]) for found in (able[name], small))
        if faults > without / 2:
            bench.lacks(
                WAYS[name],
                f"few or no huge pages were provided ({_huge_pages()}): {format_count(faults)} page "
                f"faults, without them {format_count(without)}",
            )
            del able[name]


def _all(kept: list[Words], name: str) -> Times:
    return Times(tuple(float(each[name]) for each in kept))


def whole(work: Callable[[], Words], nodes: int) -> Words:
    """What a program says, when it met each node of the list with its text.

    Raises:
        Cannot: it did not.
    """
    found = work()
    if found.get("whole") != str(nodes):
        raise Cannot(f"a proof failed: {found.get('whole', 'none')} of {nodes} nodes were whole")
    return found


def tuned(listed: Path, nodes: int, name: str) -> Words:
    """The published program with a setting of glibc's malloc.

    Raises:
        Cannot: another C library, or the setting had no effect.
    """
    if platform.libc_ver()[0] != "glibc":
        raise Cannot("these settings are for glibc, which is not the C library here")
    found = compiled.reported(listed, nodes, "proof", environment={"GLIBC_TUNABLES": TUNABLES[name]})
    if name == "top_pad" and int(found["ahead"]) < PAD:
        raise Cannot("the setting had no effect: the heap was not grown by 64 MiB")
    return found


def preloaded(listed: Path, nodes: int, name: str) -> Words:
    """The published program with another allocator.

    Raises:
        Cannot: it is not installed, or did not answer.
    """
    library = library_of(name)
    if library is None:
        raise Cannot(f"it is not installed (Debian: apt install {ALLOCATORS[name][1]})")
    found = compiled.reported(listed, nodes, "proof", environment={"LD_PRELOAD": str(library)})
    if name not in Path(found["library"]).name:
        raise Cannot(f"{library} was preloaded, but malloc is that of {found['library']}")
    return found


def library_of(name: str) -> Path | None:
    """Where an allocator lies; None where it does not."""
    roots = [Path(root) for root in ("/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib")]
    triple = f"{platform.machine()}-linux-gnu"
    folders = [Path(text) for text in os.environ.get("LD_LIBRARY_PATH", "").split(":") if text]
    folders += [folder for root in roots for folder in (root / triple, root)]
    return next(
        (path for folder in folders for file in ALLOCATORS[name][0] if (path := folder / file).is_file()),
        None,
    )


def _huge_pages() -> str:
    with contextlib.suppress(OSError):
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="ascii")
        return f"transparent_hugepage is {text.partition('[')[2].partition(']')[0]}"
    return "this kernel has no transparent huge pages"
