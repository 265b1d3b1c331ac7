"""A list of a million nodes, built in several ways: what each way of getting memory costs a node."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt

from latlab.run.run import Run
from latlab.units import format_ns, format_percent
from latlab.view.drawing import inline, layered
from latlab.view.points import is_disturbed, why_absent, with_figures
from latlab.view.table import Column, Table, range_cells

ID = "nodes"
TITLE = "How should a program get memory for many small nodes?"
PROBE = "alloc.nodes"
VARIANTS = {
    "malloc": "malloc, one a node",
    "malloc-kept": "malloc, memory kept from before",
    "arena": "arena: one large block",
    "arena-aligned": "arena, a cache line a node",
    "arena-prefetch": "arena, prefetched",
    "pool": "pool of freed nodes",
    "arena-touched": "arena, touched before",
    "vec": "array with indices",
}
#: Measured for the sum of the parts; no way to build a list.
_PARTS = {"touch", "stores"}
_FAULTS, _REST = "page faults", "everything else"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way.

    Attributes:
        operation: Its name in the record.
        name: Its name for people.
        value: Time a node, ns.
        low: Lower end of its 95 % interval.
        high: Upper end likewise.
        fault_share: Share of it that page faults take; absent when that is not known.
        disturbed: Something else ran while it was measured.
    """

    operation: str
    name: str
    value: float
    low: float
    high: float
    fault_share: float | None
    disturbed: bool

    @property
    def faults_ns(self) -> float | None:
        """Time in page faults, ns."""
        return None if self.fault_share is None else self.value * self.fault_share


def lines(run: Run) -> list[Variant]:
    """The ways that were measured, in the order of their story."""
    order = list(VARIANTS)
    records = sorted(
        (r for r in with_figures(run, PROBE, "batch_mean") if r.point.operation not in _PARTS),
        key=lambda r: order.index(r.point.operation) if r.point.operation in VARIANTS else len(order),
    )
    found = []
    for record in records:
        operation, value = record.point.operation or "", record.value or 0.0
        share = record.finding("fault_share")
        known = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
        low, high = record.interval or (value, value)
        found.append(
            Variant(
                operation,
                VARIANTS.get(operation, operation),
                value,
                low,
                high,
                float(share) if known and isinstance(share, int | float) else None,
                is_disturbed(record),
            )
        )
    return found


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """One bar a way, on a linear axis from zero: lengths are times; the part in page faults first."""
    found = lines(run)
    if not found:
        return None
    values = []
    for variant in found:
        parts = [(_FAULTS, variant.faults_ns or 0.0), (_REST, variant.value - (variant.faults_ns or 0.0))]
        at = 0.0
        for part, length in parts:
            text = f"{variant.name}: {format_ns(length)} of {format_ns(variant.value)} in {part}"
            values.append({"name": variant.name, "part": part, "from": at, "to": at + length, "text": text})
            at += length
    known = any(variant.fault_share is not None for variant in found)
    top = 1.12 * max(variant.value for variant in found)
    scale = alt.Scale(domain=[0, top], nice=False)
    title = "a node, ns"
    axis = alt.Axis(grid=True, tickCount=7)
    start, end = (alt.X(f"{field}:Q", title=title, scale=scale, axis=axis) for field in ("from", "value"))
    names = [variant.name for variant in found]
    rows = alt.Axis(grid=False, ticks=False, domain=False, labelPadding=8)
    y = alt.Y("name:N", title=None, sort=None, scale=alt.Scale(domain=names), axis=rows)
    # The second series' colour is the warm one.
    order = alt.Scale(domain=[_REST, _FAULTS])
    legend = alt.Legend(title=None, symbolType="square") if known else None
    color = alt.Color("part:N", legend=legend, scale=order)
    totals = alt.Chart(
        inline(
            [
                {
                    "name": variant.name,
                    "value": variant.value,
                    "figure": _figure(variant),
                    "doubt": int(variant.disturbed),
                }
                for variant in found
            ]
        )
    )
    layers = [
        alt.Chart(inline(values))
        .mark_bar(height=20)
        .encode(x=start, x2=alt.X2("to:Q"), y=y, color=color, tooltip=alt.Tooltip("text:N")),
        totals.mark_text(style="name", align="left", dx=11).encode(x=end, y=y, text=alt.Text("figure:N")),
        totals.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=end, y=y),
    ]
    return layered(layers, width=560, height=34 * len(found))


def _figure(variant: Variant) -> str:
    return format_ns(variant.value)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for variant in lines(run):
        share = f", {format_percent(variant.fault_share)} of it page faults" if variant.fault_share else ""
        parts.append(f"{variant.name} {format_ns(variant.value)}{share}")
    return f"Bar chart: time to add one node to a long list, by where its memory is from. {'; '.join(parts)}."


def table(run: Run) -> Table:
    """Every way."""
    columns = (
        Column("memory from"),
        Column("a node", "ns"),
        Column("95 % from", "ns"),
        Column("95 % to", "ns"),
        Column("of it page faults", "share"),
        Column("disturbed"),
    )
    rows = tuple(
        (v.name, v.value, *range_cells(v.low, v.high), v.fault_share, "yes" if v.disturbed else "no")
        for v in lines(run)
    )
    return Table(columns, rows)
