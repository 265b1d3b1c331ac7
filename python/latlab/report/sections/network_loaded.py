"""Round trips while throughput runs."""

from __future__ import annotations

from latlab.charts import network_loaded as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_rate
from latlab.view.evidence import evidence
from latlab.view.points import is_disturbed, with_figures
from latlab.view.prose import sentence
from latlab.view.table import Column, Listing, Table

_CAPTION = (
    "Messages of 64 B by TCP, there and back, one after the other, without and with streams to the same side."
    " What lies to the right of idle is waiting behind them."
)
_COLUMNS = (
    Column("path"),
    Column("streams", "count"),
    Column("they carry", "bytes_per_s"),
    Column("median", "ns"),
    Column("95 % from", "ns"),
    Column("95 % to", "ns"),
    Column("p99", "ns"),
    Column("slowest", "ns"),
    Column("round trips a minute", "count"),
    Column("round trips", "count"),
    Column("disturbed"),
)


def section(run: Run, probes: Probes) -> Section:
    """Loaded against idle, by path."""
    places = list(chart.PATHS)
    records = sorted(
        (r for r in with_figures(run, chart.PROBE, "per_op") if r.point.path in chart.PATHS),
        key=lambda r: (places.index(r.point.path or ""), r.point.streams or 0),
    )
    table = Table(_COLUMNS, tuple(_row(record) for record in records))
    labels = dict.fromkeys(
        sentence(flag) for record in records for flag in record.flags if flag.startswith("emulated")
    )
    return Section(
        id="network_loaded",
        title=chart.TITLE,
        sentences=_sentences(records),
        listings=(Listing("Loaded against idle", table),) if records else (),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=(*labels, *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence="" if records else chart.absence(run) or "",
    )


def _row(record: Record) -> tuple[str | float | int | None, ...]:
    s = record.summary
    low, high = record.ends
    told = found(record)
    return (
        chart.PATHS.get(record.point.path or "", "?"),
        record.point.streams,
        positive(told, "load_bytes_per_s"),
        record.value,
        low,
        high,
        *((s.p99, s.max) if s else (None, None)),
        _a_minute(record),
        record.samples,
        "yes" if is_disturbed(record) else "no",
    )


def _a_minute(record: Record) -> int | None:
    trips = positive(found(record), "round_trips_per_minute")
    return round(trips) if trips else None


def _sentences(records: list[Record]) -> tuple[str, ...]:
    """One for each path, what was asked for first."""
    out = []
    for path, name in chart.PATHS.items():
        own = [record for record in records if record.point.path == path]
        idle = next((r for r in own if not r.point.streams), None)
        full = max((r for r in own if r.point.streams), key=lambda r: r.value or 0.0, default=None)
        if idle is None or full is None or not idle.value or not full.value:
            continue
        carried = positive(found(full), "load_bytes_per_s")
        meanwhile = f" while {chart.load(full)} carry {format_rate(carried)}" if carried else ""
        minute = _a_minute(full)
        trips = f": by their mean {format_count(minute)} round trips a minute" if minute else ""
        out.append(
            f"Over the {name} a round trip takes {idle.stated()} idle and"
            f" {full.stated()}"
            f"{meanwhile}, {full.value / idle.value:.1f} times as long{trips}."
        )
    return tuple(out)
