"""The long tail: what a normal would make of it, what kept the slow ones, whether a power law is possible."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from latlab.charts import long_tail, over_time, tail_causes, tail_data
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.stats import tails
from latlab.stats.tails import PowerLaw
from latlab.units import format_count, format_factor, format_ns, format_percent
from latlab.view.points import drawable
from latlab.view.table import Cell, Column, Listing, Table

#: Records in the table: those with most operations, one of a probe.
_MOST_RECORDS = 10
_SLOWEST: Final = 1e-3
_PERCENTILES: Final = {"p90": "p90", "p99": "p99", "p999": "p99.9", "p9999": "p99.99"}
_TAIL_CAPTION = (
    "The same operations twice. Dashed: a normal distribution with their mean and deviation. Dotted lines:"
    " the mean, and one and six standard deviations above it."
)
_CAUSES_CAPTION = (
    "Left: how many of a million operations take at least so long, stacked by what kept them. Right: the"
    " same, each place on the axis as a whole. A cause is the one with the largest part of an operation;"
    " what no evidence names is unexplained."
)
_TIME_CAPTION = (
    "Dots: single operations that took over the threshold from which times are kept. Grey: blocks, with a"
    " short mark at their median; between them something else was measured."
)


def section(run: Run, probes: Probes) -> Section:
    """One sentence a question, the pictures, and every probe's tail in a table."""
    del probes  # The methods stand with the sections of the probes.
    record = tail_data.record_of(run)
    return Section(
        id="long_tail",
        title="What does the long tail look like?",
        sentences=() if record is None else (verdict(record), law(record)),
        figures=(
            *figure(run, long_tail.ID, _TAIL_CAPTION),
            *figure(run, tail_causes.ID, _CAUSES_CAPTION),
            *figure(run, over_time.ID, _TIME_CAPTION),
        ),
        listings=_listings(run),
        absence=tail_data.why_absent(run) if record is None else "",
    )


def verdict(record: Record) -> str:
    """What a normal puts beyond six deviations, and what was seen: `1 in 10⁹; observed: 2 of 180,000`."""
    claim = tails.normal_claim(record)
    name = tail_data.name_of(record)
    if claim is None:
        return f"All {name} took the same time: there is no tail."
    if claim.seen == 0:
        return (
            f"None of {format_count(claim.total)} {name} lies beyond six standard deviations above the mean"
            f" ({format_ns(claim.beyond)}): no long tail here."
        )
    return (
        f"A normal distribution with their mean and deviation predicts 1 in 10⁹ {name} above"
        f" {format_ns(claim.beyond)}; observed:"
        f" {format_count(claim.seen)} of {format_count(claim.total)} (1 in"
        f" {format_count(claim.total / claim.seen)})."
    )


def law(record: Record) -> str:
    """Whether a power law is possible, and what the tail means for averages."""
    found, share = _power_law(record), tails.slowest_share(record, _SLOWEST)
    slowest = (
        f" The slowest 1 in 1,000 take {format_percent(share)} of all time." if share is not None else ""
    )
    if found is None:
        why = "one of p90, p99 and p99.9 has no usable range, or p99.9 is not clearly above p90"
        return f"Whether a power law fits is not known: {why}.{slowest}"
    quantiles = [(_PERCENTILES[quantile], _quantile(record, quantile)) for quantile in found.quantiles]
    ratios = ", ".join(
        f"{outer} is {format_factor(high / low, 2)} times {inner}"
        for (inner, low), (outer, high) in pairwise(quantiles)
        if drawable(low) and drawable(high)
    )
    if not found.possible:
        return f"No power law fits: its ratio would stay the same, but {ratios}.{slowest}"
    edge = format_factor(tails.HEAVY, 2)
    averages = {
        True: f"Averages settle as far as {quantiles[-1][0]}: the last ratio is below {edge}.",
        False: f"Averages depend on the slowest few: the last ratio is above {edge}. Use percentiles.",
        None: "Too few operations are this slow to tell whether averages settle. Use percentiles.",
    }[found.settles]
    fits = f"A power law is possible: {ratios}, and within their ranges these ratios can be equal."
    return f"{fits} {averages}{slowest}"


def _power_law(record: Record) -> PowerLaw | None:
    if record.summary is None:
        return None
    return tails.power_law(record.summary.intervals, record.resolution_ns or 0.0)


def _quantile(record: Record, name: str) -> float | None:
    return getattr(record.summary, name, None)


def _listings(run: Run) -> tuple[Listing, ...]:
    shown = tail_data.record_of(run)
    largest = {} if shown is None else {shown.probe: shown}
    for record in tail_data.long_ones(run):
        holder = largest.get(record.probe)
        if holder is None or (holder is not shown and record.samples > holder.samples):
            largest[record.probe] = record
    chosen = sorted(largest.values(), key=lambda record: -record.samples)[:_MOST_RECORDS]
    rows = tuple(_row(record) for record in run.records if any(record is one for one in chosen))
    if not rows:
        return ()
    columns = (
        Column("operation"),
        Column("number", "count"),
        Column("p90", "ns"),
        Column("p99", "ns"),
        Column("p99.9", "ns"),
        Column("mean + 6 deviations", "ns"),
        Column("seen beyond", "count"),
        Column("power law"),
    )
    return (Listing("The tail of each probe's longest record", Table(columns, rows)),)


def _row(record: Record) -> tuple[Cell, ...]:
    claim, found = tails.normal_claim(record), _power_law(record)
    return (
        tail_data.name_of(record),
        record.samples,
        *(_quantile(record, name) for name in ("p90", "p99", "p999")),
        *((None, None) if claim is None else (claim.beyond, claim.seen)),
        None if found is None else "possible" if found.possible else "no",
    )
