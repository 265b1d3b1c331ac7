"""What reading each clock costs, and the smallest step that it shows."""

from __future__ import annotations

from typing import Any

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_ns
from latlab.view.axes import duration_x, widened
from latlab.view.drawing import inline, layered
from latlab.view.points import drawable, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "clocks"
TITLE = "What does it cost to look at the clock, and how finely does it tell time?"
PROBE = "clock.read"
_COST, _STEP = "one reading costs", "smallest step that it shows"


def records(run: Run) -> list[Record]:
    """One record a clock, the cheapest first."""
    found = [record for record in with_figures(run, PROBE, "batch_mean") if record.point.clock]
    return sorted(found, key=lambda record: (record.summary.p50 or 0.0) if record.summary else 0.0)


def step_ns(record: Record) -> float | None:
    """The smallest difference between two readings, as measured; zero and less is no step."""
    step = record.findings.get("resolution_ns") if isinstance(record.findings, dict) else None
    return float(step) if isinstance(step, int | float) and drawable(step) else None


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if records(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """A point for the cost and one for the step of each clock."""
    found = records(run)
    if not found:
        return None
    values: list[dict[str, Any]] = []
    for record in found:
        name = str(record.point.clock)
        cost = record.summary.p50 if record.summary else None
        for what, value in ((_COST, cost), (_STEP, step_ns(record))):
            if value is not None:
                values.append(
                    {"clock": name, "what": what, "x": value, "text": f"{name}: {what} {format_ns(value)}"}
                )
    low, high = widened((row["x"] for row in values), down=2.0, up=2.0)
    x = duration_x("x", "logarithmic", low, high)
    y = alt.Y(
        "clock:N",
        title=None,
        scale=alt.Scale(domain=[str(record.point.clock) for record in found]),
        sort=None,
        axis=alt.Axis(grid=True),
    )
    color = alt.Color("what:N", title=None, scale=alt.Scale(domain=[_COST, _STEP]))
    shape = alt.Shape(
        "what:N", title=None, scale=alt.Scale(domain=[_COST, _STEP], range=["circle", "triangle-up"])
    )
    points = alt.Chart(inline(values)).mark_point(size=90, filled=True, opacity=1)
    layer = points.encode(x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N"))
    return layered([layer], width=520, height=26 * len(found))


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for record in records(run):
        cost = format_ns(record.summary.p50) if record.summary else "unknown"
        parts.append(f"{record.point.clock} {cost}, step {format_ns(step_ns(record))}")
    return (
        "Dot chart on a logarithmic axis: cost of one reading and smallest step of each clock. "
        + "; ".join(parts)
        + "."
    )


def table(run: Run) -> Table:
    """Every clock."""
    columns = (
        Column("clock"),
        Column("one reading, median", "ns"),
        Column("95 % from", "ns"),
        Column("95 % to", "ns"),
        Column("smallest step", "ns"),
        Column("samples", "count"),
    )
    rows = []
    for record in records(run):
        low, high = record.ends
        median = record.summary.p50 if record.summary else None
        rows.append((str(record.point.clock), median, low, high, step_ns(record), record.samples))
    return Table(columns, tuple(rows))
