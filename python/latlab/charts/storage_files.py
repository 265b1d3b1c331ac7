"""Where the time goes when the same bytes are in many files instead of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt

from latlab.run.findings import found, positive
from latlab.run.model import Machine, Record
from latlab.run.run import Run
from latlab.topics.disk import timed
from latlab.units import format_bytes, format_count, format_ns
from latlab.view.axes import DURATION_FROM_ZERO
from latlab.view.drawing import inline, layered
from latlab.view.points import drawable, is_disturbed, why_absent
from latlab.view.table import Column, Table

ID = "storage_files"
TITLE = "Why are many small files slower than one large one?"
PROBE = "storage.files"
#: The two ends that are compared; what lies between is in the table.
ONE, MANY = 1, 1000
OPERATIONS = {"write": "write", "read-warm": "read, warm cache", "read-cold": "read, cold data"}
ENGINES = {"psync": "native", "python": "Python"}
PHASES = ("create", "open", "write", "read", "fsync", "close", "stat", "rename", "unlink")
#: A part of a bar bears its name where that fits: width of a letter, and of what stays free beside, pixels.
_LETTER, _BESIDE = 7.5, 8
_WIDTH, _ROW = 720, 36


@dataclass(frozen=True, slots=True)
class Pass:
    """All files of a point, one pass.

    Attributes:
        operation: What was done to each file, with how it was made durable.
        engine: `psync` or `python`.
        files: How many.
        file_bytes: Size of each.
        file_ns: One file, mean: what its phases add up to.
        total_ns: All files together.
        phases: ns a file by phase, in the order in which they were done.
        median_ns: One file, median.
        p99_ns: One file, 99th percentile; absent with too few.
        drift: Later blocks over earlier ones; absent when unknown.
        share_of_wall: What the phases are of the pass's wall time.
        disturbed: Something else ran while it was measured.
        repeats_ns: One file, mean of each repeat.
        record: What all of that was taken from.
    """

    operation: str
    engine: str
    files: int
    file_bytes: int
    file_ns: float
    total_ns: float
    phases: dict[str, float]
    median_ns: float
    p99_ns: float | None
    drift: float | None
    share_of_wall: float | None
    disturbed: bool
    repeats_ns: tuple[float, ...]
    record: Record

    def twin_of(self, many: Pass) -> bool:
        """Whether it is the one large file that those many are compared with."""
        return (self.files, self.operation, self.engine) == (ONE, many.operation, many.engine)

    @property
    def name(self) -> str:
        """`1,000 × 10 KB, Python`."""
        size = format_bytes(self.file_bytes, decimal=self.file_bytes % 1000 == 0)
        return f"{format_count(self.files)} × {size}, {ENGINES.get(self.engine, self.engine)}"


def passes(run: Run) -> list[Pass]:
    """Every point with a figure, grouped by operation, many files first."""
    known = list(OPERATIONS)
    own = [each for record in timed(run, PROBE) if (each := _pass(record)) is not None]
    return sorted(
        own,
        key=lambda each: (
            known.index(each.operation) if each.operation in known else len(known),
            each.operation,
            -each.files,
            each.engine != "psync",
        ),
    )


def _pass(record: Record) -> Pass | None:
    point, own = record.point, found(record)
    if not point.files or point.file_bytes is None or record.summary is None:
        return None
    phases = {
        channel.name: channel.summary.mean * channel.samples / record.samples
        for channel in record.channels
        if drawable(channel.summary.mean) and record.samples
    }
    mean = sum(phases.values()) or record.summary.mean or record.value or 0.0
    total_s = positive(own, "total_s")
    return Pass(
        operation=" ".join(part for part in (point.operation, point.sync) if part),
        engine=point.engine or "psync",
        files=point.files,
        file_bytes=point.file_bytes,
        file_ns=mean,
        total_ns=total_s * 1e9 if total_s is not None else mean * point.files,
        phases=phases,
        median_ns=record.value or 0.0,
        p99_ns=record.summary.p99,
        drift=positive(own, "drift"),
        share_of_wall=positive(own, "phases_share_of_wall"),
        disturbed=is_disturbed(record),
        repeats_ns=_repeats(own),
        record=record,
    )


def _repeats(own: Machine) -> tuple[float, ...]:
    means = own.at("block_means_ns")
    if not isinstance(means, list):
        return ()
    return tuple(float(mean) for mean in means if isinstance(mean, int | float) and drawable(mean))


def compared(run: Run) -> dict[str, list[Pass]]:
    """One large file against a thousand, by operation; only what has both."""
    out: dict[str, list[Pass]] = {}
    for each in passes(run):
        if each.operation in OPERATIONS and each.files in {ONE, MANY} and each.phases:
            out.setdefault(each.operation, []).append(each)
    return {name: own for name, own in out.items() if {each.files for each in own} == {ONE, MANY}}


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    if compared(run):
        return None
    return "one file and many files were not both measured" if passes(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """One panel an operation with its own axis; a bar is all files together, its parts are the phases."""
    panels = compared(run)
    if not panels:
        return None
    rows = list(dict.fromkeys(each.name for own in panels.values() for each in own))
    seen = {phase for own in panels.values() for each in own for phase in each.phases}
    phases = [phase for phase in PHASES if phase in seen] + sorted(seen - set(PHASES))
    width = (_WIDTH - 150 - 24 * (len(panels) - 1)) // len(panels)
    drawn = [
        _panel(OPERATIONS[operation], own, rows, phases, width, first=number == 0)
        for number, (operation, own) in enumerate(panels.items())
    ]
    return alt.hconcat(*drawn, spacing=24)


def _panel(
    title: str, own: list[Pass], rows: list[str], phases: list[str], width: int, *, first: bool
) -> alt.LayerChart:
    longest = max(sum(each.phases.values()) * each.files for each in own)
    # A figure stands to the right of its bar.
    top = 1.55 * longest
    values: list[dict[str, Any]] = []
    sums = []
    for each in own:
        at = 0.0
        for phase in phases:
            part = each.phases.get(phase, 0.0) * each.files
            if part:
                values.append(
                    {
                        "row": each.name,
                        "phase": phase,
                        "from": at,
                        "to": at + part,
                        "middle": at + part / 2,
                        "label": phase if part / top * width > _LETTER * len(phase) + _BESIDE else "",
                        "text": (
                            f"{each.name}: {phase} {format_ns(part)}, {format_ns(part / each.files)} a file"
                        ),
                    }
                )
            at += part
        sums.append({"row": each.name, "to": at, "text": format_ns(at)})
    axis = alt.Axis(grid=False, ticks=False, domain=False, labels=first, labelPadding=6, labelLimit=190)
    y = alt.Y("row:N", title=None, sort=None, scale=alt.Scale(domain=rows, paddingInner=0.35), axis=axis)
    x = alt.X(
        "from:Q",
        title="all files together",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(labelExpr=DURATION_FROM_ZERO, tickCount=3, grid=True),
    )
    color = alt.Color("phase:N", legend=alt.Legend(title=None), scale=alt.Scale(domain=phases))
    bars = alt.Chart(inline(values))
    at_end = alt.X("to:Q")
    layers = [
        bars.mark_bar(height=20).encode(
            x=x, x2=alt.X2("to:Q"), y=y, color=color, tooltip=alt.Tooltip("text:N")
        ),
        bars.transform_filter("datum.label != ''")
        .mark_text(style="on-level")
        .encode(x=alt.X("middle:Q"), y=y, text=alt.Text("label:N")),
        alt.Chart(inline(sums))
        .mark_text(style="name", align="left", dx=5)
        .encode(x=at_end, y=y, text=alt.Text("text:N")),
    ]
    return layered(layers, width=width, height=_ROW * len(rows), title=title)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for operation, own in compared(run).items():
        for each in own:
            phases = ", ".join(f"{name} {format_ns(ns)}" for name, ns in each.phases.items())
            total = format_ns(each.file_ns * each.files)
            parts.append(f"{OPERATIONS[operation]}, {each.name}: {total} ({phases} a file)")
    return "Stacked bars: the same bytes in one file and in many, by phase. " + "; ".join(parts) + "."


def table(run: Run) -> Table:
    """Every phase of every pass, also of those between and beyond."""
    columns = (
        Column("operation"),
        Column("files"),
        Column("phase"),
        Column("a file, mean of all repeats", "ns"),
        Column("all files at that mean", "ns"),
    )
    rows = tuple(
        (OPERATIONS.get(each.operation, each.operation), each.name, phase, ns, ns * each.files)
        for each in passes(run)
        for phase, ns in each.phases.items()
    )
    return Table(columns, rows)
