"""malloc and free."""

from __future__ import annotations

from latlab.charts import allocation as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view.evidence import evidence
from latlab.view.prose import sentence
from latlab.view.table import Cell, Column, Listing, Table

_SMALL = 32
_CAPTION = (
    "Lower lines: memory that this program has used before. Upper lines: memory that is new to it, with the"
    " page faults of the first touch. Dotted: from there on each request is mapped alone."
)
_COLUMNS = (
    Column("allocator"),
    Column("size", "bytes"),
    Column("freed by the same thread", "ns"),
    Column("freed by another thread", "ns"),
    Column("times", "number"),
)


def section(run: Run, probes: Probes) -> Section:
    """By size and allocator; across threads; the threshold; what giving back costs."""
    rows = _across(run)
    title = "Memory that is allocated by one thread and freed by another"
    return Section(
        id="allocation",
        title=chart.TITLE,
        sentences=_sentences(run),
        listings=(Listing(title, Table(_COLUMNS, tuple(rows))),) if rows else (),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=(*_cliffs(run), *_missing(run), *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    for allocator in chart.allocators(run):
        reused = {spot.x: spot.value for spot in chart.of(run, allocator, "reused")}
        fresh = {spot.x: spot.value for spot in chart.of(run, allocator, "fresh")}
        if not reused:
            continue
        size = min(reused, key=lambda size: abs(size - _SMALL))
        text = f"{chart.library(run, allocator)} hands out and takes back {format_bytes(size)} in"
        text += f" {format_ns(reused[size])}"
        if size in fresh and fresh[size] > 1.2 * reused[size]:
            text += f", and in {format_ns(fresh[size])} when the memory is new to the program"
        sentences = [text + "."]
        largest = max(reused.keys() & fresh.keys(), default=size)
        if largest > size:
            times = f"{format_ns(reused[largest])} and {format_ns(fresh[largest])}"
            sentences.append(f"For {format_bytes(largest)} it is {times}.")
        return tuple(sentences)
    return ()


def _across(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for allocator in chart.allocators(run):
        same = {spot.x: spot.value for spot in chart.of(run, allocator, "reused")}
        for spot in chart.of(run, allocator, "reused", "across-threads"):
            own = same.get(spot.x)
            times = spot.value / own if own else None
            rows.append((chart.library(run, allocator), spot.x, own, spot.value, times))
    return rows


def _cliffs(run: Run) -> tuple[str, ...]:
    """Where an allocator gives memory back to the kernel at each free, and pays for it again."""
    lines = []
    for entry in findings(run, chart.PROBE).sections("allocators"):
        size, before, after = (
            positive(entry, f"trim_cliff.{name}") for name in ("size_bytes", "before_ns", "after_ns")
        )
        if size is not None and before is not None and after is not None:
            name = chart.library(run, entry.text("allocator") or "system")
            cliff = entry.estimate("trim_cliff.size_bytes")
            ends = cliff.ends if cliff else None
            since = (
                f"between {format_bytes(ends[0])} and {format_bytes(ends[1])}"
                if ends
                else f"at {format_bytes(size)}"
            )
            lines.append(
                f"{name} begins {since} to give memory back at each free: {format_ns(after)} instead of"
                f" {format_ns(before)}."
            )
    return tuple(lines)


def _missing(run: Run) -> tuple[str, ...]:
    names = findings(run, chart.PROBE).texts("not_installed")
    return (sentence(f"Not installed here, so not measured: {', '.join(names)}"),) if names else ()
