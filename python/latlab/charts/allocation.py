"""malloc and free together against size, by allocator: memory new to the process, and memory used before."""

from __future__ import annotations

from typing import Any

import altair as alt

from latlab.run.findings import findings, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.text import clean
from latlab.units import format_bytes, format_ns
from latlab.view import curves
from latlab.view.axes import duration_y, size_axis, widened
from latlab.view.drawing import inline, layered
from latlab.view.plot import as_table
from latlab.view.points import Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "allocation"
TITLE = "What does it cost to allocate memory and give it back?"
PROBE = "alloc.malloc"
STATES = {"reused": "memory used before", "fresh": "new memory"}
_MOST_CURVES = 6


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


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each allocator and state of its memory."""
    found = {}
    for allocator in allocators(run):
        for state, called in STATES.items():
            curve = of(run, allocator, state)
            if curve:
                found[f"{library(run, allocator)}, {called}"] = curve
    return dict(list(found.items())[:_MOST_CURVES])


def thresholds(run: Run) -> dict[str, float]:
    """From which size an allocator maps memory for each request alone, bytes, by what is to be said of it.

    glibc's threshold rises with what is freed, up to a largest one.
    """
    found = {}
    for entry in findings(run, PROBE).sections("allocators"):
        name = library(run, entry.text("allocator") or "system")
        first, largest = (
            positive(entry, "mmap_threshold_bytes"),
            positive(entry, "mmap_threshold_largest_bytes"),
        )
        if first is not None:
            at_first = " at first" if largest is not None and largest > first else ""
            found[f"{name} maps each{at_first} from {format_bytes(first)}"] = first
        if largest is not None and (first is None or largest > first):
            found[f"{name} maps each always from {format_bytes(largest)}"] = largest
    return found


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """Two curves an allocator, both axes logarithmic; dotted where it begins to map each request alone."""
    found = lines(run)
    if not found:
        return None
    low, high = widened((spot.x for spot in curves.everywhere(found)), down=1.3, up=1.3)
    bottom, top = widened(curves.ends(found))
    top *= 1.6  # room for the thresholds' names
    x = size_axis("x", "size asked for", low, high)
    y = duration_y("value", "one malloc and free", bottom, top)
    data = curves.rows(found, lambda spot: f"{format_bytes(spot.x)}: {spot.stated(format_ns)}")
    rules: list[dict[str, Any]] = [
        {"x": size, "y": top, "name": name} for name, size in thresholds(run).items() if low < size < high
    ]
    layers = curves.layers(found, x, y)
    if rules:
        places = alt.Chart(inline(rules))
        # Towards the middle of the chart, where there is room for it.
        farther = rules[0]["x"] ** 2 > low * high
        text = places.mark_text(
            style="note", align="right" if farther else "left", dx=-4 if farther else 4, dy=9
        )
        layers = [
            places.mark_rule(style="reported").encode(x=x),
            text.encode(x=x, y=alt.Y("y:Q"), text=alt.Text("name:N")),
            *layers,
        ]
    return layered(layers, data=data, width=curves.WIDTH, height=curves.HEIGHT)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(lines(run), lambda spot: f"{format_ns(spot.value)} for {format_bytes(spot.x)}")
    ends = list(thresholds(run))
    text = "Line chart, both axes logarithmic: time of one malloc and free against the size asked for. "
    return text + words + "." + (f" {'; '.join(ends)}." if ends else "")


def table(run: Run) -> Table:
    """Every point of every curve."""
    return as_table(lines(run), Column("size", "bytes"), "ns")
