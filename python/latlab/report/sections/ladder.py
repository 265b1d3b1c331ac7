"""The first screen: every level in one table and one picture, and what is surprising about them."""

from __future__ import annotations

from latlab.charts import ladder as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.ladder import ladder
from latlab.run.run import Run
from latlab.run.rung import Rung, apart, flagged
from latlab.topics.surprises import surprises
from latlab.units import format_count, format_ns, format_span
from latlab.view.prose import sentence
from latlab.view.table import Column, Listing, Table

_COLUMNS = (
    Column("level"),
    Column("one access", "ns"),
    Column("95 % interval, or spread"),
    Column("slow end", "ns"),
    Column("which is"),
    Column("one thread reads", "bytes_per_s"),
    Column("1 MiB takes", "seconds"),
    Column("1 GiB takes", "seconds"),
    Column("= L1 hits", "number"),
    Column("textbook", "ns"),
)
_OPERATIONS = (
    Column("operation"),
    Column("one", "ns"),
    Column("95 % interval, or spread"),
    Column("slow end", "ns"),
    Column("which is"),
    Column("= L1 hits", "number"),
    Column("textbook", "ns"),
)
_CAPTION = (
    "Levels of memory first, below them what a program asks of the kernel, the allocator and other CPUs. "
    "Each grid line is ten times the one before it. A whisker reaches to the slow end: p99.9, or"
    " the highest percentile"
    " with samples enough. The slow end of window means is not the tail of single accesses:"
    " within a window, slow ones"
    " are averaged away."
)


def section(run: Run, probes: Probes) -> Section:
    """The ladder."""
    everything = ladder(run)
    levels = [rung for rung in everything if rung.group == "levels"]
    levels = [rung for rung in levels if not rung.key.startswith("poke:")] or levels
    operations = [rung for rung in everything if rung.group == "operations"]
    rungs = [*levels, *operations]
    listings = [Listing("The ladder", Table(_COLUMNS, tuple(_row(rung) for rung in levels)), _notes(levels))]
    if operations:
        table = Table(_OPERATIONS, tuple(_operation(rung) for rung in operations))
        listings.append(Listing("What a program asks for, in the same measure", table, _notes(operations)))
    notes = [sentence(f"{rung.level}: {rung.note}") for rung in rungs if rung.note and rung.measured]
    notes += map(sentence, flagged([rung for rung in rungs if rung.measured]))
    sources = sorted({rung.textbook_source for rung in rungs if rung.textbook_source})
    return Section(
        id="ladder",
        title=chart.TITLE,
        sentences=_sentences(chart.rungs(run)),
        listings=tuple(listings),
        figures=figure(run, chart.ID, _CAPTION),
        points=tuple(surprise.text for surprise in surprises(run)),
        evidence=(*notes, *(sentence(f"Textbook: {source}") for source in sources)),
        methods=probes.methods_of("memory.load.dependent"),
        absence=chart.absence(run) or "",
    )


def _notes(rungs: list[Rung]) -> tuple[str, ...]:
    return tuple(sentence(line) for line in apart(rungs))


def _sentences(measured: list[Rung]) -> tuple[str, ...]:
    levels = [rung for rung in measured if rung.group == "levels"]
    if len(levels) < 2:  # noqa: PLR2004 - nothing to compare
        return ()
    first, last = levels[0], levels[-1]
    text = (
        f"The nearest level, {first.level}, answers in {format_ns(first.latency_p50_ns)}; the farthest"
        f" measured in {format_ns(last.latency_p50_ns)}"
    )
    text += f", as long as {format_count(last.l1_hits)} L1 hits." if last.l1_hits else "."
    hits = {rung.key: rung.l1_hits for rung in measured}
    parts = [
        f"{name} {format_count(rough(cost))}"
        for key, name in (
            ("syscall", "a system call"),
            ("page-fault", "a page fault"),
            ("thread", "a thread"),
        )
        if (cost := hits.get(key)) is not None
    ]
    return (text, f"In the same measure: {', '.join(parts)}.") if parts else (text,)


def _operation(rung: Rung) -> tuple[str | float | None, ...]:
    if not rung.measured:
        return (rung.level, None, rung.note, None, None, None, rung.textbook_ns)
    noun = "single operations" if rung.tail and rung.tail.kind == "single accesses" else "window means"
    slow = (rung.tail.value_ns, f"{rung.tail.quantile}, {noun}") if rung.tail else (None, rung.refused)
    median = "a range" if rung.is_range else rung.latency_p50_ns
    return (rung.level, median, _interval(rung), *slow, rough(rung.l1_hits), rung.textbook_ns)


def _interval(rung: Rung) -> str | None:
    """Its ends, with what they are of where that is no 95 % interval: `1.05 – 1.07 ns over its sizes`."""
    if rung.interval is None:
        return rung.why_no_interval if rung.measured else None
    of_what = rung.interval_kind.removeprefix("spread ")
    ends = format_span(*rung.interval)
    return ends if of_what == rung.interval_kind else f"{ends} {of_what}"


def rough(ratio: float | None) -> float | None:
    """Three digits, which is more than a ratio of two medians is worth."""
    return None if ratio is None else float(f"{ratio:.3g}")


def _row(rung: Rung) -> tuple[str | float | None, ...]:
    name = f"{rung.level}, {rung.size_text}" if rung.size_text else rung.level
    slow = (
        (rung.tail.value_ns, f"{rung.tail.quantile}, {rung.tail.kind}") if rung.tail else (None, rung.refused)
    )
    median = "a range" if rung.is_range else rung.latency_p50_ns
    if not rung.measured:
        return (name, None, rung.note, *slow, rung.bandwidth, None, None, None, rung.textbook_ns)
    times = (rung.seconds_1MiB, rung.seconds_1GiB)
    return (name, median, _interval(rung), *slow, rung.bandwidth, *times, rung.l1_hits, rung.textbook_ns)
