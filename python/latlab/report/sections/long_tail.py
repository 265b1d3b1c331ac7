"""The long tail: what a normal would make of it, which family is closest, whether one number says it."""

from __future__ import annotations

from latlab.charts import hill, long_tail, over_time, tail_causes, tail_data
from latlab.charts.table import Cell, Column, Table
from latlab.report.document import Listing, Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.stats import tails
from latlab.stats.tails import Values
from latlab.units import format_count, format_ns

#: Records in the table: those with most operations, one of a probe.
_MOST_RECORDS = 10
#: A family that is off by less, wherever ten operations lie beyond, describes the tail.
_DESCRIBES = 2.0
#: Below this index a power law has no variance, and a mean no interval.
_HEAVY = 2.0
_TAIL_CAPTION = (
    "The same operations twice. Dotted lines: the mean, and one and six standard deviations above it."
    " Families are fitted to all operations by maximum likelihood; the legend has the best first."
)
_CAUSES_CAPTION = (
    "Left: how many of a million operations take at least so long, stacked by what kept them. Right: the"
    " same, each place on the axis as a whole. A cause is the one with the largest part of an operation;"
    " what no evidence names is unexplained."
)
_HILL_CAPTION = (
    "Each point is fitted to what lies beyond one threshold; shaded: 95 % interval, where the order of"
    " measuring is known for enough operations. Where no curve stands still there is no tail index:"
    " usually several causes lie over each other."
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
        sentences=() if record is None else (verdict(record), _more(record)),
        figures=(
            *figure(run, long_tail.ID, _TAIL_CAPTION),
            *figure(run, tail_causes.ID, _CAUSES_CAPTION),
            *figure(run, hill.ID, _HILL_CAPTION),
            *figure(run, over_time.ID, _TIME_CAPTION),
        ),
        listings=_listings(run),
        absence=tail_data.why_absent(run) if record is None else "",
    )


def verdict(record: Record) -> str:
    """What a normal would put beyond six deviations, and what was seen: `1 in 10⁹; you saw 2 of 180,000`."""
    values = tails.of_record(record)
    claim = tails.normal_claim(values)
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


def _more(record: Record) -> str:
    values = tails.of_record(record)
    return " ".join(filter(None, (_groups(values), _regimes(record), _family(values), _index(values))))


def _family(values: Values) -> str:
    found = tail_data.fitted(values)
    if found is None:
        return ""
    best = found.best
    name = tail_data.NAMES[best.family]
    if best.furthest_off is None:
        return f"The closest family is {name}."
    at, seen, expected = best.furthest_off
    if best.factor_off < _DESCRIBES:
        return (
            f"{name.capitalize()} describes them: nowhere in the slowest tenth off by"
            f" {tail_data.factor(_DESCRIBES)}."
        )
    few = "too few" if expected < seen else "too many"
    return (
        f"No family describes body and tail. The closest is {name}, which puts {few} beyond {format_ns(at)},"
        " by"
        f" {tail_data.factor(best.factor_off)}: there is more than one cause, or a law that is none of these."
    )


def _groups(values: Values) -> str:
    groups = tails.modes(values).modes
    if len(groups) < 2:  # noqa: PLR2004 - one group is no news
        return ""
    named = [f"{format_ns(group.p50_ns)} ({group.share:.1%})".replace("%", " %") for group in groups]
    return f"They fall into {len(groups)} groups: {', '.join(named)}."


def _regimes(record: Record) -> str:
    """Where the median of the blocks changed its level while the record was taken."""
    blocks = over_time.blocks(record)
    found = tails.regimes([median for *_, median in blocks])
    if found is None or len(found.levels) < 2:  # noqa: PLR2004 - one level is no news
        return ""
    parts = [f"{format_ns(found.levels[0].median)} at first"]
    parts += [
        f"{format_ns(level.median)} from second {blocks[level.first][0]:.1f} on" for level in found.levels[1:]
    ]
    return f"The typical time changed with time: {', '.join(parts)}."


def _index(values: Values) -> str:
    tail = tail_data.tail_of(values)
    if tail.index is None:
        return f"No power law fits: {tail.why_no_index}." if tail.why_no_index else ""
    at = tail.index.at
    interval = "" if at.interval is None else f" ({at.interval[0]:.2f} to {at.interval[1]:.2f})"
    heavy = "; the mean depends on the slowest few" if at.index < _HEAVY else ""
    return (
        f"Above {format_ns(at.threshold)} the tail falls as a power {at.index:.2f}{interval} of the time,"
        f" over a factor of {tail.index.span:.0f}{heavy}."
    )


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
        Column("mean + 6 deviations", "ns"),
        Column("seen beyond", "count"),
        Column("closest family"),
        Column("misses the tail by"),
        Column("tail index"),
    )
    return (Listing("The tail of each probe's longest record", Table(columns, rows)),)


def _row(record: Record) -> tuple[Cell, ...]:
    values = tails.of_record(record)
    claim = tails.normal_claim(values)
    found = tail_data.fitted(values)
    index = tail_data.tail_of(values).index
    return (
        tail_data.name_of(record),
        values.total,
        *((None, None) if claim is None else (claim.beyond, claim.seen)),
        None if found is None else tail_data.NAMES[found.best.family],
        None if found is None else _times(found.best.factor_off),
        "none holds" if index is None else f"{index.at.index:.2f}",
    )


def _times(factor: float) -> str:
    """`3.2 times`; short, as it stands in the last columns of a wide table."""
    most, few = 1_000, 10
    if not factor < most:
        return f"over {most:,} times"
    return f"{factor:.2g} times" if factor < few else f"{factor:.0f} times"
