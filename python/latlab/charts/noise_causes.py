"""What takes the CPU away: how often, and how much of its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from latlab.run.disturbances import EVIDENCE, PROBE, UNEXPLAINED, cause_name, heard_in, rate
from latlab.run.noise import CauseRow
from latlab.run.run import Run
from latlab.units import format_ns
from latlab.view.axes import DURATION_FROM_ZERO
from latlab.view.drawing import inline, layered
from latlab.view.points import why_absent
from latlab.view.table import Column, Table

ID = "noise_causes"
TITLE = "What takes the CPU away, and how much of it?"
_WIDTH, _ROW = 215, 30


def causes(run: Run) -> tuple[CauseRow, ...]:
    """The one with most time first; what nothing explains is among them even when there is none of it."""
    heard = heard_in(run)
    if heard is None or not heard[1].gaps:
        return ()
    rows = heard[1].causes
    if any(row.cause == UNEXPLAINED for row in rows):
        return rows
    return (*rows, CauseRow(UNEXPLAINED, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if causes(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """Two panels of bars from zero with the same rows: gaps a second, and time a second."""
    rows = causes(run)
    if not rows:
        return None
    often = [(row, row.per_s, rate(row.per_s)) for row in rows]
    long = [(row, row.ns_per_s, format_ns(row.ns_per_s, digits=2)) for row in rows]
    return alt.hconcat(
        _panel("gaps a second", often, "format(datum.value, ',~r')", first=True),
        _panel("time in gaps, a second", long, DURATION_FROM_ZERO, first=False),
        spacing=24,
    )


def _panel(
    title: str, own: Sequence[tuple[CauseRow, float, str]], label: str, *, first: bool
) -> alt.LayerChart:
    values: list[dict[str, Any]] = [
        {
            "row": cause_name(row.cause),
            "x": value,
            "label": text,
            "text": f"{cause_name(row.cause)}: {rate(row.per_s)} a second, median {format_ns(row.median_ns)},"
            f" largest {format_ns(row.largest_ns)}",
        }
        for row, value, text in own
    ]
    names = [value["row"] for value in values]
    # A figure stands to the right of its bar.
    top = 1.4 * max(value["x"] for value in values)
    axis = alt.Axis(grid=False, ticks=False, domain=False, labels=first, labelPadding=6, labelLimit=190)
    y = alt.Y("row:N", title=None, sort=None, scale=alt.Scale(domain=names, paddingInner=0.35), axis=axis)
    x = alt.X(
        "x:Q",
        title=title,
        scale=alt.Scale(domain=[0, top or 1.0], nice=False),
        axis=alt.Axis(labelExpr=label, tickCount=3, grid=True),
    )
    base = alt.Chart()
    return layered(
        [
            base.mark_bar(style="level", height=17).encode(x=x, y=y, tooltip=alt.Tooltip("text:N")),
            base.mark_text(style="name", align="left", dx=5).encode(x=x, y=y, text=alt.Text("label:N")),
        ],
        data=inline(values),
        width=_WIDTH,
        height=_ROW * len(names),
    )


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = [
        f"{cause_name(row.cause)}: {rate(row.per_s)} a second, {format_ns(row.ns_per_s)} of each second"
        for row in causes(run)
    ]
    return f"Bars: gaps a second and their time, by cause. {'; '.join(parts) or 'None was heard'}."


def table(run: Run) -> Table:
    """One row a cause."""
    columns = (
        Column("cause"),
        Column("gaps a second", "number"),
        Column("time a second", "ns"),
        Column("median", "ns"),
        Column("largest", "ns"),
        Column("share of the time in gaps", "share"),
        Column("evidence"),
    )
    rows = tuple(
        (
            cause_name(row.cause),
            float(f"{row.per_s:.4g}"),
            row.ns_per_s,
            row.median_ns,
            row.largest_ns,
            row.share_time,
            ", ".join(EVIDENCE.get(name, name) for name in row.evidence) or "none",
        )
        for row in causes(run)
    )
    return Table(columns, rows)
