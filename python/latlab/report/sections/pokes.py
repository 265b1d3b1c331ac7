"""The course notebook's experiment."""

from __future__ import annotations

from latlab.charts import poke_histogram, pokes_read_write
from latlab.charts import pokes as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.causes import slow_causes
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_ns
from latlab.view.distribution import normal_share, single_pokes, size_name, slower_than
from latlab.view.evidence import evidence
from latlab.view.table import Listing

_SLOW_NS = 10_000.0
_CAPTION = (
    "Right is slower, down is rarer. Dashed: what a normal distribution with the same mean and"
    " standard deviation would"
    " do. Grey: an empty poke reads this much, so a reading there says nothing about memory."
    " Shapes mark 1 in 10, 1 in 100"
    " and so on, and the slowest."
)
_HISTOGRAM_CAPTION = (
    "Dashed: what a normal distribution with the same mean and standard deviation predicts. Bins are"
    " whole steps of the clock."
)


def section(run: Run, probes: Probes) -> Section:
    """Pokes of all sizes."""
    figures = (
        *figure(run, chart.ID, _CAPTION),
        *figure(run, pokes_read_write.ID, _CAPTION),
        *figure(run, poke_histogram.ID, _HISTOGRAM_CAPTION),
    )
    table = chart.summary(run)
    return Section(
        id="pokes",
        title=chart.TITLE,
        sentences=_sentences(run),
        listings=(Listing("Random pokes, timed one by one; timer overhead is included", table),)
        if table.rows
        else (),
        figures=figures,
        evidence=evidence(run, chart.PROBE),
        methods=probes.methods_of(chart.PROBE),
        absence=(chart.absence(run) or "") if not figures else "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    reads = single_pokes(run, "read")
    largest = reads[-1] if reads else None
    sentences = []
    if largest is not None and largest.summary is not None and largest.summary.max is not None:
        sentences.append(_slowest(largest, largest.summary.max))
    empty = next((record for record in reads if not record.point.working_set_bytes), None)
    share = None if empty is None else slower_than(empty, _SLOW_NS)
    made_of = _made_of(run)
    limit = format_ns(_SLOW_NS, digits=2)
    if made_of is None and share:
        sentences.append(
            f"1 in {format_count(1 / share)} empty pokes took over {limit} too, without touching memory: such"
            " delays are the machine's, not the array's."
        )
    elif made_of is None and share is not None:
        sentences.append(f"No empty poke took over {limit}.")
    elif made_of is not None:
        also = f"; so did 1 in {format_count(1 / share)} empty pokes, which touch no memory" if share else ""
        sentences.append(f"{made_of}{also}.")
    return tuple(sentences)


def _slowest(record: Record, slowest: float) -> str:
    summary = record.summary
    text = (
        f"The slowest of {format_count(record.samples)} read pokes in {size_name(record)} took"
        f" {format_ns(slowest)}"
    )
    if summary is None or summary.mean is None or not summary.std:
        return text + "."
    text += f", {format_count((slowest - summary.mean) / summary.std)} standard deviations above the mean"
    expected = (normal_share(record, slowest) or 0.0) * record.samples
    never = 1e-6
    return text + ("; a normal distribution would never show it." if expected < never else ".")


def _made_of(run: Run) -> str | None:
    """The notebook's question answered: how often, and what it was. Nothing when no cause was looked for."""
    # The empty poke is the instrument's own, and has a sentence of its own.
    records = [record for record in single_pokes(run) if record.point.working_set_bytes]
    causes = slow_causes(records, _SLOW_NS)
    pokes = sum(record.samples for record in records)
    slow = round(sum(slower_than(record, _SLOW_NS) * record.samples for record in records))
    seconds = sum(block.duration_ns for record in records for block in record.blocks) / 1e9
    if causes is None or not slow:
        return None
    a_second = f", {format_count(slow / seconds)} a second" if seconds > 0 else ""
    return (
        f"1 poke in {format_count(pokes / slow)} took over {format_ns(_SLOW_NS, digits=2)}{a_second}:"
        f" {causes.shares()}"
    )
