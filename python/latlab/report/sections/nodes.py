"""A million nodes, in several ways."""

from __future__ import annotations

from latlab.charts import nodes as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive, stated
from latlab.run.run import Run
from latlab.units import format_count, format_digits, format_ns, format_percent
from latlab.view.evidence import evidence
from latlab.view.table import Cell, Column, Listing, Table

_CAPTION = "Lengths are times. A way whose page faults are not known has one colour."
_COLUMNS = (
    Column("memory from"),
    Column("a node", "ns"),
    Column("times as fast as malloc", "number"),
    Column("of it page faults", "share"),
)


def section(run: Run, probes: Probes) -> Section:
    """Steps with their gains, and whether the parts explain the whole."""
    rows = _rows(run)
    return Section(
        id="nodes",
        title=chart.TITLE,
        sentences=_sentences(run),
        listings=(Listing("Each way, compared with malloc", Table(_COLUMNS, tuple(rows))),) if rows else (),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=(*_closure(run), *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _rows(run: Run) -> list[tuple[Cell, ...]]:
    found = chart.lines(run)
    malloc = next((variant.value for variant in found if variant.operation == "malloc"), None)
    return [(v.name, v.value, malloc / v.value if malloc else None, v.fault_share) for v in found]


def _sentences(run: Run) -> tuple[str, ...]:
    found = chart.lines(run)
    malloc = next((variant for variant in found if variant.operation == "malloc"), None)
    if malloc is None:
        return ()
    text = f"A node from malloc costs {format_ns(malloc.value)}"
    if malloc.fault_share:
        text += f", of which {format_percent(malloc.fault_share)} are page faults"
    best = min(found, key=lambda variant: variant.value)
    if best is malloc or malloc.value < 1.1 * best.value:
        return (text + "; no other way is faster by a tenth.",)
    second = (
        f"The fastest way here ({best.name}) costs {format_ns(best.value)}: malloc takes"
        f" {format_digits(malloc.value / best.value, 2)} times as long."
    )
    return (text + ".", second)


def _closure(run: Run) -> tuple[str, ...]:
    """Whether what the parts cost alone adds up to the whole."""
    found = findings(run, chart.PROBE)
    parts = {
        name: value
        for key, name in (("allocator", "allocator"), ("faults", "page faults"), ("stores", "stores"))
        if (value := positive(found, f"parts.{key}_ns")) is not None
    }
    whole, total = positive(found, "parts.whole_ns"), positive(found, "parts.sum_ns")
    if not parts or whole is None or total is None:
        return ()
    added = " + ".join(f"{name} {format_ns(value)}" for name, value in parts.items())
    many = f"With {format_count(count)} nodes, the" if (count := found.integer("nodes")) else "The"
    return (
        f"{many} parts measured alone: {added} = {format_ns(total)}; the whole with malloc is"
        f" {format_ns(whole)}, so they explain {stated(found, 'parts.closure', format_percent)} of it.",
    )
