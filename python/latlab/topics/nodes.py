"""A list of a million nodes, built in several ways: what each way of getting memory costs a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.run.findings import findings, positive, stated
from latlab.run.run import Run
from latlab.units import format_count, format_digits, format_ns, format_percent
from latlab.view.evidence import evidence
from latlab.view.plot import Drawing, Row, yes_or_no
from latlab.view.points import is_disturbed, place_in, with_figures
from latlab.view.table import Listing, Table, listed, of_range, table_of
from latlab.view.topic import Chart, Topic

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

PROBE: Final = "alloc.nodes"
_VARIANTS: Final = {
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
_PARTS: Final = {"touch", "stores"}
_FAULTS, _REST = "page faults", "everything else"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way: ns a node with the 95 % interval, and which share page faults take, where that is known."""

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
    records = sorted(
        (r for r in with_figures(run, PROBE, "batch_mean") if r.point.operation not in _PARTS),
        key=lambda r: place_in(_VARIANTS, r.point.operation),
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
                _VARIANTS.get(operation, operation),
                value,
                low,
                high,
                float(share) if known and isinstance(share, int | float) else None,
                is_disturbed(record),
            )
        )
    return found


def _picture(own: Sequence[Variant]) -> Drawing:
    parts = []
    for variant in own:
        share = f", {format_percent(variant.fault_share)} of it page faults" if variant.fault_share else ""
        parts.append(f"{variant.name} {format_ns(variant.value)}{share}")
    about = "Bar chart: time to add one node to a long list, by where its memory is from."
    return Drawing(f"{about} {'; '.join(parts)}.", lambda: _drawn(own))


def _drawn(found: Sequence[Variant]) -> AnyChart:
    """One bar a way, on a linear axis from zero: lengths are times; the part in page faults first."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view.axes import names_y  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - as above

    values: list[Row] = []
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
    y = names_y("name", [variant.name for variant in found], {"labelPadding": 8})
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
                    "figure": format_ns(variant.value),
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


def _table(own: Sequence[Variant]) -> Table:
    return table_of(
        own,
        ("memory from", "text", lambda way: way.name),
        ("a node", "ns", lambda way: way.value),
        *of_range("ns", lambda way: way),
        ("of it page faults", "share", lambda way: way.fault_share),
        ("disturbed", "text", lambda way: yes_or_no(way.disturbed)),
    )


def _malloc(own: Sequence[Variant]) -> Variant | None:
    return next((way for way in own if way.operation == "malloc"), None)


def prose(run: Run) -> Iterator[str]:
    """malloc, and the fastest way."""
    own = lines(run)
    malloc = _malloc(own)
    if malloc is None:
        return
    faults = f", of which {format_percent(malloc.fault_share)} are page faults" if malloc.fault_share else ""
    text = f"A node from malloc costs {format_ns(malloc.value)}{faults}"
    best = min(own, key=lambda way: way.value)
    if best is malloc or malloc.value < 1.1 * best.value:
        yield f"{text}; no other way is at least 10 % faster."
    else:
        yield f"{text}."
        yield (
            f"The fastest way here ({best.name}) costs {format_ns(best.value)}: malloc takes"
            f" {format_digits(malloc.value / best.value, 2)} times as long."
        )


def _listings(run: Run) -> tuple[Listing, ...]:
    own = lines(run)
    malloc = _malloc(own)
    return listed(
        "Each way, compared with malloc",
        own,
        ("memory from", "text", lambda way: way.name),
        ("a node", "ns", lambda way: way.value),
        ("times as fast as malloc", "number", lambda way: malloc.value / way.value if malloc else None),
        ("of it page faults", "share", lambda way: way.fault_share),
    )


def _evidence(run: Run) -> Iterator[str]:
    """With whether what the parts cost alone adds up to the whole."""
    found = findings(run, PROBE)
    parts = {
        name: value
        for key, name in (("allocator", "allocator"), ("faults", "page faults"), ("stores", "stores"))
        if (value := positive(found, f"parts.{key}_ns")) is not None
    }
    whole, total = positive(found, "parts.whole_ns"), positive(found, "parts.sum_ns")
    if parts and whole is not None and total is not None:
        added = " + ".join(f"{name} {format_ns(value)}" for name, value in parts.items())
        many = f"With {format_count(count)} nodes, the" if (count := found.integer("nodes")) else "The"
        yield (
            f"{many} parts measured alone: {added} = {format_ns(total)}; the whole with malloc takes "
            f"{format_ns(whole)}, so they explain {stated(found, 'parts.closure', format_percent)} of "
            "it."
        )
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="nodes",
        title="How should a program get memory for many small nodes?",
        caption="Lengths are times. A way whose page faults are unknown has one colour.",
        probe=PROBE,
        measured=lines,
        picture=_picture,
        table=_table,
    ),
    prose=prose,
    listings=_listings,
    evidence=_evidence,
)
