"""malloc and free together against size, by allocator: memory new to the process, and memory used before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.findings import findings, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.text import clean
from latlab.units import format_bytes, format_ns
from latlab.view.evidence import evidence
from latlab.view.plot import Axis, Ends, Mark, Plane, Row, labelled
from latlab.view.points import Spot, spots, with_figures
from latlab.view.prose import sentence
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, Topic

PROBE: Final = "alloc.malloc"
_STATES: Final = {"reused": "memory used before", "fresh": "new memory"}
_MOST_CURVES: Final = 6
_SMALL: Final = 32


def allocators(run: Run) -> list[str]:
    """Names of the allocators with figures, the system's first."""
    names = {record.point.allocator or "system" for record in with_figures(run, PROBE, "batch_mean")}
    return sorted(names, key=lambda name: (name != "system", name))


def library(run: Run, allocator: str) -> str:
    """The library and version that answered: `glibc 2.36`; the allocator's name when that is unknown."""
    for record in with_figures(run, PROBE, "batch_mean"):
        if (record.point.allocator or "system") == allocator and record.engine:
            # Without the file that it came from.
            return clean(record.engine.partition(" (")[0], most=40)
    return clean(allocator, most=40)


def of(run: Run, allocator: str, state: str, placement: str = "same-thread") -> list[Spot]:
    """Cost by size of one allocator."""

    def wanted(record: Record) -> bool:
        point = record.point
        return (
            (point.allocator or "system") == allocator
            and (point.state or "reused") == state
            and (point.placement or "same-thread") == placement
        )

    chosen = [record for record in with_figures(run, PROBE, "batch_mean") if wanted(record)]
    return spots(chosen, lambda record: record.point.size_bytes or None)


def _by_size(run: Run, allocator: str, state: str) -> dict[float, float]:
    return {spot.x: spot.value for spot in of(run, allocator, state)}


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each allocator and state of its memory."""
    found = {
        f"{library(run, allocator)}, {called}": curve
        for allocator in allocators(run)
        for state, called in _STATES.items()
        if (curve := of(run, allocator, state))
    }
    return dict(list(found.items())[:_MOST_CURVES])


def thresholds(run: Run) -> dict[str, float]:
    """From which size an allocator maps memory for each request alone, bytes, by what is to be said of it.

    glibc's threshold rises with what is freed, up to a largest one.
    """
    found = {}
    for entry in findings(run, PROBE).sections("allocators"):
        name = library(run, entry.text("allocator") or "system")
        first = positive(entry, "mmap_threshold_bytes")
        largest = positive(entry, "mmap_threshold_largest_bytes")
        if first is not None:
            at_first = " at first" if largest is not None and largest > first else ""
            found[f"{name} maps each{at_first} from {format_bytes(first)}"] = first
        if largest is not None and (first is None or largest > first):
            found[f"{name} maps each always from {format_bytes(largest)}"] = largest
    return found


def _plane(run: Run) -> Plane | None:
    """Two curves an allocator; dotted where it begins to map each request alone."""
    own, alone = lines(run), thresholds(run)

    def marks(ends: Ends) -> Iterator[Mark]:
        rules: list[Row] = [
            {"x": size, "y": ends.top, "name": name}
            for name, size in alone.items()
            if ends.left < size < ends.right
        ]
        # Towards the middle of the chart, where there is room for it.
        farther = rules and rules[0]["x"] ** 2 > ends.left * ends.right
        align, dx = ("right", -4) if farther else ("left", 4)
        yield from labelled("rule", rules, "reported", style="note", align=align, dx=dx, dy=9)

    if not own:
        return None
    return Plane(
        Axis("size asked for", "bytes", 1.3, 1.3),
        Axis("one malloc and free", "ns", names=1.6),
        own,
        about="Line chart, both axes logarithmic: time of one malloc and free against the size asked for.",
        said="{y} for {x}",
        after=f"{'; '.join(alone)}." if alone else "",
        marks=marks,
    )


def prose(run: Run) -> Iterator[str]:
    """Of the first allocator: something small, and the largest."""
    for allocator in allocators(run):
        reused, fresh = (_by_size(run, allocator, state) for state in _STATES)
        if not reused:
            continue
        size = min(reused, key=lambda size: abs(size - _SMALL))
        new = ""
        if size in fresh and fresh[size] > 1.2 * reused[size]:
            new = f", and in {format_ns(fresh[size])} when the memory is new to the process"
        yield (
            f"{library(run, allocator)} allocates and frees {format_bytes(size)} in"
            f" {format_ns(reused[size])}{new}."
        )
        largest = max(reused.keys() & fresh.keys(), default=size)
        if largest > size:
            times = f"{format_ns(reused[largest])} and {format_ns(fresh[largest])}"
            yield f"For {format_bytes(largest)} it is {times}."
        return


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "Memory that is allocated by one thread and freed by another",
        [
            (library(run, allocator), spot, _by_size(run, allocator, "reused").get(spot.x))
            for allocator in allocators(run)
            for spot in of(run, allocator, "reused", "across-threads")
        ],
        ("allocator", "text", lambda at: at[0]),
        ("size", "bytes", lambda at: at[1].x),
        ("freed by the same thread", "ns", lambda at: at[2]),
        ("freed by another thread", "ns", lambda at: at[1].value),
        ("times", "number", lambda at: at[1].value / at[2] if at[2] else None),
    )


def _evidence(run: Run) -> Iterator[str]:
    """With where an allocator gives memory back to the kernel at each free, and pays for it again."""
    for entry in findings(run, PROBE).sections("allocators"):
        size, before, after = (
            positive(entry, f"trim_cliff.{name}") for name in ("size_bytes", "before_ns", "after_ns")
        )
        if size is not None and before is not None and after is not None:
            cliff = entry.estimate("trim_cliff.size_bytes")
            ends = cliff.ends if cliff else None
            since = " and ".join(map(format_bytes, ends)) if ends else format_bytes(size)
            yield (
                f"{library(run, entry.text('allocator') or 'system')} starts "
                f"{'between' if ends else 'at'} {since} to return memory at each free:"
                f" {format_ns(after)} instead of {format_ns(before)}."
            )
    if missing := findings(run, PROBE).texts("not_installed"):
        yield sentence(f"Not installed here, so not measured: {', '.join(missing)}")
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="allocation",
        title="What do allocating and freeing memory cost?",
        caption="Lower lines: memory that this process has used before. Upper lines: memory new to "
        "it, with the page faults of the first touch. Dotted: from this size, each request gets its "
        "own mapping.",
        probe=PROBE,
        measured=_plane,
        table=lambda plane: plane.table("size"),
    ),
    prose=prose,
    listings=_listings,
    evidence=_evidence,
)
