"""Random blocks of a disk, one at a time and many."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from latlab.charts import storage_depth, storage_random
from latlab.report.disk import commands, device_times, disk_evidence, notices, sound, tail_words
from latlab.report.document import Listing, Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.run import Run
from latlab.units import format_count, format_ns
from latlab.view.table import Cell, Column, Table

_PROBES = (storage_random.READ, storage_random.WRITE)
_SHARES = "Past the page cache. Shapes stand at 1 in 10, 1 in 100 and so on, and at the slowest block."
_DEPTHS = (
    "Requests under way are kept at their number; how many there really were follows from rate and latency"
    " (Little's law) and is in the table. Where the left lines are level, more requests only wait."
)
#: Of the highest rate.
_NEARLY = 0.95
_NINE_TENTHS = "From which depth the disk gives nine tenths of the highest rate measured"
_SATURATION = (
    Column("operation"),
    Column("block", "bytes"),
    Column("from depth", "count"),
    Column("blocks a second there", "count"),
    Column("deeper ones were tried"),
)
#: A queue that needs the deepest that was tried may need a deeper one.
_TRIED: Mapping[bool | None, str] = MappingProxyType({True: "yes", False: "no: more depth may give more"})


def section(run: Run, probes: Probes) -> Section:
    """Distributions, then depth."""
    rows = _saturation(run)
    doubts = notices(run, *_PROBES)
    return Section(
        id="storage_random",
        title=storage_random.TITLE,
        sentences=_sentences(run),
        listings=(
            *((Listing(_NINE_TENTHS, Table(_SATURATION, tuple(rows))),) if rows else ()),
            *device_times(run, *_PROBES),
        ),
        figures=(*figure(run, storage_random.ID, _SHARES), *figure(run, storage_depth.ID, _DEPTHS)),
        notices=doubts,
        evidence=(
            *tail_words(storage_random.distributions(run).get("read, depth 1")),
            *disk_evidence(run, *_PROBES),
            *commands(storage_random.distributions(run).values()),
        ),
        methods=probes.methods_of(*_PROBES),
        absence=(storage_random.absence(run) or "") if storage_depth.absence(run) else "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    found = storage_random.distributions(run)
    alone = found.get("read, depth 1")
    if alone is None or alone.value is None or not sound(run, [alone]):
        return ()
    text = f"A random block of 4 KiB is read in {format_ns(alone.value)}"
    p99 = alone.summary.p99 if alone.summary else None
    text += f", one in a hundred takes {format_ns(p99)} or longer." if p99 else "."
    depths = sound(run, storage_depth.lines(run).get("read 4 KiB", []))
    if len(depths) < 2:  # noqa: PLR2004 - nothing to compare
        return (text,)
    best = max(storage_depth.rate(record) or 0.0 for record in depths)
    one = depths[0]
    # The fewest that do nearly as much as any number: beyond, requests only wait.
    most = next(record for record in depths if (storage_depth.rate(record) or 0.0) >= _NEARLY * best)
    if most is one:
        return (text, "More requests under way gain nothing here.")
    return (
        text,
        f"With {format_count(most.point.queue_depth)} under way the disk reads"
        f" {format_count(storage_depth.rate(most))} a second instead of"
        f" {format_count(storage_depth.rate(one))}, and"
        f" each takes {format_ns(most.value)}.",
    )


def _saturation(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for probe, verb in storage_random.VERBS.items():
        for entry in findings(run, probe).sections("saturation"):
            figures = [positive(entry, name) for name in ("block_bytes", "depth", "rate_per_s")]
            if all(figure is not None for figure in figures):
                rows.append((verb, *figures, _TRIED.get(entry.flag("reached"))))
    return rows
