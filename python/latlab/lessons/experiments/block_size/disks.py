"""Whether solid state is ahead of spinning, above all for small: by two disks, or by what is published.

A disk is recognised by its reads, not by what it is called: a head that moves takes milliseconds. A slow stick or card
may take as long, and is taken for one that spins; so the verdict says by which reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from latlab.lessons import words
from latlab.lessons.bench import Times
from latlab.lessons.experiments.latency_ladder import SPINS_S
from latlab.lessons.figures import Cell
from latlab.units import format_bytes, format_ns

#: Times by size and way.
Curve = Mapping[int, Mapping[str, Times]]
Verdict = tuple[str, str]

MEMORY: Final = frozenset({"tmpfs", "ramfs"})
_REMOTE: Final = ("nfs", "cifs", "smb", "fuse", "9p", "ceph", "virtiofs", "afs", "lustre")
NEVER_COLD: Final = "its files are in memory and are never read cold"
WHAT: Final = {"write": "written", "read_cold": "read"}
_PUBLISHED: Final = {"solid": ("ssd_random_4k", "read_1mb_ssd"), "spinning": ("disk_seek", "read_1mb_disk")}
_UNTOLD: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that was measured: its times, of which those that are missing say why, and its file system."""

    curve: Curve
    system: str = ""

    @property
    def in_memory(self) -> bool:
        """Whether its files are in memory."""
        return self.system in MEMORY

    @property
    def remote(self) -> bool:
        """Whether a program or a network is on the way, whose time is no disk's."""
        return self.system.startswith(_REMOTE)

    @property
    def small(self) -> Times:
        """Cold reads of the smallest file."""
        return self.curve[min(self.curve)]["read_cold"]

    @property
    def kind(self) -> str:
        """`memory`, `solid` or `spinning`; `unknown` where nothing was read cold, or not from a disk alone."""
        if self.in_memory:
            return "memory"
        if not self.small or self.remote:
            return _UNTOLD
        return "spinning" if self.small.median >= SPINS_S else "solid"

    @property
    def said(self) -> str:
        """What it is and by what, to be put after a name."""
        if self.in_memory:
            return f"is memory, not a disk: {NEVER_COLD}"
        if not self.small:
            return "could not be read cold, so whether it spins is unknown"
        if self.remote:
            return f"is accessed through {self.system}, so its times are not those of a disk alone"
        small = format_bytes(min(self.curve), decimal=True)
        return f"reads {small} cold in {format_ns(self.small.median * 1e9)}, like {_named(self.kind)}"


def _named(kind: str) -> str:
    return "a spinning disk" if kind == "spinning" else "solid state"


def references() -> Iterator[tuple[str, str, Cell, Cell]]:
    """Solid state and spinning in the table of textbooks: name, title, 4 KiB at random and 1 MB in sequence."""
    from latlab.run.textbook import USUAL  # noqa: PLC0415 - figures only, but not needed at once

    why = f"reference, not measured here, {USUAL.source}"
    for kind, keys in _PUBLISHED.items():
        small, large = (Cell("s", (USUAL.get(key) or 0.0) / 1e9, why=why) for key in keys)
        yield kind, f"{_named(kind)} (reference, not measured here, {USUAL.year})", small, large


def by_the_published(disk: Disk) -> Verdict:
    """The rule by published figures, and where the one disk stands that was measured."""
    solid, spinning = ([each.number or 0.0 for each in cells] for _, _, *cells in references())
    small, large = (theirs / own for own, theirs in zip(solid, spinning, strict=True))
    verdict = "true" if small > large > 1 else "false"
    return (
        f"by the published figures: {verdict}; not measured here",
        f"solid state ahead {words.plain(small)} times at 4 KiB, {words.plain(large)} times at 1 MB;"
        f" the one disk that was measured {disk.said}",
    )


def by_two(first: Disk, second: Disk) -> Verdict:
    """The rule by two disks: decided where one of them spins and the other does not."""
    kinds = first.kind, second.kind
    if set(kinds) == {"solid", "spinning"}:
        solid, spinning = (first, second) if first.kind == "solid" else (second, first)
        found, small = ratios(spinning, solid), format_bytes(min(spinning.curve), decimal=True)
        return (
            _decided(found),
            f"{small} cold in {format_ns(spinning.small.median * 1e9)} and {format_ns(solid.small.median * 1e9)}; times as long on the slower one: {_listed(found)}",
        )
    shown = f"times as long on the second: {_listed(ratios(second, first))}"
    if first.kind == second.kind != _UNTOLD and first.kind != "memory":
        return "both are solid" if first.kind == "solid" else "both are as slow as spinning disks", shown
    said = f"the first {first.said}; the second {second.said}"
    return "undecided", f"{said}; {shown}"


def ratios(disk: Disk, other: Disk) -> dict[str, dict[int, Cell]]:
    """How many times as long as `other` a disk takes, by way and size; only what both have."""
    return {
        way: {
            size: own[way].over(other.curve[size][way])
            for size, own in disk.curve.items()
            if own[way] and other.curve[size][way]
        }
        for way in WHAT
    }


def _decided(found: Mapping[str, Mapping[int, Cell]]) -> str:
    """Whether it is ahead at all sizes, and more at the smallest than at the largest, beyond the repeats."""
    every = [list(sizes.values()) for sizes in found.values()]
    ahead = _all([(cell.above(1), cell.below(1)) for cells in every for cell in cells])
    ends = [(cells[0], cells[-1]) for cells in every if len(cells) > 1]
    above_all = _all(
        [(small.above(large.high or 0.0), small.below(large.low or 0.0)) for small, large in ends]
    )
    return ahead if ahead == above_all or ahead != "true" else f"true; especially for small: {above_all}"


def _all(found: list[tuple[bool, bool]]) -> str:
    if any(against for _, against in found):
        return "false"
    return "true" if found and all(held for held, _ in found) else "undecided"


def _listed(found: Mapping[str, Mapping[int, Cell]]) -> str:
    return "; ".join(
        f"{WHAT[way]} "
        + ", ".join(f"{format_bytes(size, decimal=True)} {words.ratio(cell)}" for size, cell in sizes.items())
        for way, sizes in found.items()
        if sizes
    )
