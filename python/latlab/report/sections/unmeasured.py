"""What was not measured, and why."""

from __future__ import annotations

from collections import Counter

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count
from latlab.view.table import Column, Listing, Table

_COLUMNS = (Column("probe"), Column("where"), Column("why"), Column("points", "count"))
_MOST_POINTS_NAMED = 3


def section(run: Run, probes: Probes) -> Section:
    """Absent records joined by reason, probes left out, quantiles refused, disks not looked at."""
    rows = [*_absent(run), *_left_out(run, probes)]
    disks = _disks(run)
    sentences = []
    if rows:
        sentences.append("These figures are missing from this run, each with its reason.")
    else:
        sentences.append("Everything that was planned has a figure.")
    refused = sum(
        not name.endswith(" interval")
        for record in run.records
        if record.summary is not None
        for name in record.summary.refused
    )
    if refused:
        sentences.append(f"{format_count(refused)} quantiles are missing because they had too few samples.")
    listings = [Listing("Not measured", Table(_COLUMNS, tuple(rows)))] if rows else []
    if disks:
        columns = (Column("mounted at"), Column("file system"), Column("device"), Column("size", "bytes"))
        listings.append(Listing("Mounted but not measured", Table(columns, tuple(disks))))
    return Section(
        id="unmeasured",
        title="What was not measured, and why?",
        sentences=tuple(sentences),
        listings=tuple(listings),
    )


def _absent(run: Run) -> list[tuple[str | int, ...]]:
    reasons: dict[tuple[str, str], list[str]] = {}
    together: Counter[tuple[str, str]] = Counter()
    for record in run.records:
        if record.error is not None:
            reasons.setdefault((record.probe, record.error.text), []).append(record.point.label())
            together[record.probe, record.error.text] += _others(record)
        failed = [check for check in record.checks if not check.ok]
        if failed:
            text = f"proof of work failed: {failed[0].name}: {failed[0].detail}"
            reasons.setdefault((record.probe, text), []).append(record.point.label())
    rows: list[tuple[str | int, ...]] = []
    for (probe, why), points in reasons.items():
        named = "; ".join(point for point in points[:_MOST_POINTS_NAMED] if point)
        more = len(points) - _MOST_POINTS_NAMED
        count = len(points) + together[probe, why]
        rows.append((probe, named + (f"; {more} more" if more > 0 else ""), why, count))
    return rows


def _others(record: Record) -> int:
    """Points beside one that a record of what was not reached stands for."""
    points = record.findings.get("points") if isinstance(record.findings, dict) else None
    return len(points) - 1 if isinstance(points, list) and points else 0


def _left_out(run: Run, probes: Probes) -> list[tuple[str | int, ...]]:
    """Probes of this version that the run did not plan."""
    known = set(run.probes) | {planned.id for planned in run.header.plan}
    chosen = bool(run.settings.only or run.settings.skip)
    why = (
        "left out by --only, --skip or --gentle"
        if chosen or run.settings.gentle
        else "not part of this run's plan"
    )
    return [(probe, "", why, 0) for probe in probes.methods if probe not in known]


def _disks(run: Run) -> list[tuple[str | float | None, ...]]:
    """File systems that can hold data and were not measured: all but the one of the run's directory."""
    measured = any(record.probe.startswith("storage.") and record.value is not None for record in run.records)
    own = run.machine.text("dir.file_system.mount_point") if measured else None
    return [
        (system.text("mount_point"), system.text("kind"), system.text("source"), system.number("total_bytes"))
        for system in run.machine.sections("file_systems")
        if not system.flag("in_memory") and (own is None or system.text("mount_point") != own)
    ]
