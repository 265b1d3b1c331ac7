"""Bandwidth by working set, operation and threads."""

from __future__ import annotations

from latlab.charts import bandwidth as chart
from latlab.charts import bandwidth_threads
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.run import Run
from latlab.units import format_bytes, format_digits, format_rate
from latlab.view.evidence import evidence
from latlab.view.prose import sentence
from latlab.view.table import Column, Listing, Table

_CAPTION = "Bands are 95 % intervals. What a byte counts differs by operation: see the lines below."
_THREADS_CAPTION = "Threads have arrays of their own; a working set is what all of them touch together."

_BEST = (
    Column("operation"),
    Column("level"),
    Column("working set", "bytes"),
    Column("bytes a second", "bytes_per_s"),
    Column("bytes a cycle", "number"),
    Column("at most", "number"),
    Column("share", "share"),
    Column("where that is from"),
)


def section(run: Run, probes: Probes) -> Section:
    """Single thread, then all threads."""
    figures = (*figure(run, chart.ID, _CAPTION), *figure(run, bandwidth_threads.ID, _THREADS_CAPTION))
    meanings = tuple(
        sentence(f"A byte of {name}: {meaning}") for name, meaning in chart.conventions(run).items()
    )
    best = _best(run)
    return Section(
        id="bandwidth",
        title=chart.TITLE,
        sentences=(*_single(run), *_threads(run)),
        listings=(Listing("One core against the most that it could move", best),) if best.rows else (),
        figures=figures,
        evidence=(*meanings, *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=(chart.absence(run) or "") if not figures else "",
    )


def _best(run: Run) -> Table:
    """Bytes a core cycle at each level, beside the most that the processor's makers give for it."""
    rows = []
    found = findings(run, chart.PROBE)
    levels = [
        (what, level)
        for name, what in (("levels", "read"), ("write", "write"), ("copy", "copy"))
        for level in found.sections(name)
    ]
    for what, level in levels:
        cycle, most = positive(level, "bytes_per_cycle"), positive(level, "best_bytes_per_cycle")
        if cycle is None:
            continue
        share = cycle / most if most is not None else None
        size, rate = positive(level, "working_set_bytes"), positive(level, "bytes_per_s")
        rows.append(
            (what, level.text("name") or "?", size, rate, cycle, most, share, level.text("source") or "")
        )
    return Table(_BEST, tuple(rows))


def _single(run: Run) -> tuple[str, ...]:
    reads = chart.lines(run).get(chart.OPERATIONS["read"])
    if not reads:
        return ()
    first, last = reads[0], reads[-1]
    text = f"One thread reads {format_rate(first.value)} from {format_bytes(first.x)}"
    if last.x > first.x:
        text += f" and {format_rate(last.value)} from {format_bytes(last.x)}"
    return (text + ".",)


def _threads(run: Run) -> tuple[str, ...]:
    curves = bandwidth_threads.lines(run)
    if not curves:
        return ()
    size, curve = list(curves.items())[-1]
    first, last = curve[0], curve[-1]
    factor = last.value / first.value
    return (
        f"From {size}, {last.x:.0f} threads together read {format_rate(last.value)},"
        f" {format_digits(factor, 2)} times what {'one does' if first.x == 1 else f'{first.x:.0f} do'}.",
    )
