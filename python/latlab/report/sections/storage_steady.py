"""One long stream: its levels, and whether what it ends with may be called sustained."""

from __future__ import annotations

from latlab.charts import storage_steady as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.disk import commands, disk_evidence, notices
from latlab.units import format_percent
from latlab.view.prose import sentence

#: No level of fewer seconds is called sustained, whatever a run file says.
LEAST_S = 20.0
_CAPTION = (
    "One block of 1 MiB after the other, past the page cache. Points: a quarter of a second each. Thick"
    " lines: levels, by change points."
)


def section(run: Run, probes: Probes) -> Section:
    """By stream: written, read."""
    doubts = notices(run, chart.PROBE)
    own = chart.records(run)
    return Section(
        id="storage_steady",
        title=chart.TITLE,
        sentences=() if doubts else tuple(_sentence(record) for record in own),
        figures=figure(run, chart.ID, _CAPTION),
        points=tuple(sentence(f"{chart.name(r)}: {text}") for r in own for text in found(r).texts("steps")),
        notices=doubts,
        evidence=(*disk_evidence(run, chart.PROBE), *_busy(own), *commands(own)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def is_sustained(record: Record) -> bool:
    """Whether the run says so, and has seconds enough for that word."""
    length_s = positive(found(record), "slice_s") or 0.0
    return found(record).flag("sustained") is True and len(chart.slices(record)) * length_s >= LEAST_S


def _sentence(record: Record) -> str:
    start = f"{chart.name(record)[:1].upper()}{chart.name(record)[1:]}: {chart.levels_in_words(record)}"
    why = found(record).text("why") or "the run does not say why"
    if is_sustained(record):
        return sentence(f"{start}; sustained as far as was measured: {why}")
    return sentence(f"{start}; not to be called sustained: {why}")


def _busy(records: list[Record]) -> tuple[str, ...]:
    shares = [share for record in records if (share := positive(found(record), "busy_share")) is not None]
    if not shares:
        return ()
    return (f"Transfers fill {format_percent(min(*shares, 1.0))} of the time or more.",)
