"""Round trips to another process on this machine."""

from __future__ import annotations

from latlab.charts import network_roundtrip as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings
from latlab.run.model import Record
from latlab.run.operations import PLACEMENTS, operation_rungs
from latlab.run.run import Run
from latlab.units import format_bytes_as_asked, format_ns
from latlab.view.evidence import evidence
from latlab.view.points import with_figures
from latlab.view.table import Column, Listing, Table

_CAPTION = (
    "Messages of 64 B, there and back. Two CPUs, both sleep: each message wakes an idle CPU, twice in a round"
    " trip. Two CPUs, both poll: nobody is woken, what is left is the way through the kernel. On one CPU the"
    " two take turns."
)
_COLUMNS = (
    Column("transport"),
    Column("message"),
    Column("the two sides"),
    Column("median", "ns"),
    Column("95 % from", "ns"),
    Column("95 % to", "ns"),
    Column("p99", "ns"),
    Column("p99.9", "ns"),
    Column("slowest", "ns"),
    Column("round trips", "count"),
)


def section(run: Run, probes: Probes) -> Section:
    """Distributions by placement, and what of a round trip is waking up."""
    records = sorted(with_figures(run, chart.PROBE, "per_op"), key=_place)
    table = Table(_COLUMNS, tuple(_row(record) for record in records))
    return Section(
        id="network_roundtrip",
        title=chart.TITLE,
        sentences=_sentences(run),
        listings=(Listing("Round trips", table),) if records else (),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=tuple(evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence="" if records else chart.absence(run) or "",
    )


def _place(record: Record) -> tuple[int, int, int]:
    point = record.point
    transports, places = list(chart.TRANSPORTS), list(PLACEMENTS)
    return (
        transports.index(point.transport) if point.transport in transports else len(transports),
        point.message_bytes or 0,
        places.index(point.placement) if point.placement in places else len(places),
    )


def _row(record: Record) -> tuple[str | float | int | None, ...]:
    point, s = record.point, record.summary
    low, high = record.ends
    return (
        chart.TRANSPORTS.get(point.transport or "", point.transport or "?"),
        format_bytes_as_asked(point.message_bytes or 0),
        chart.placement(record),
        record.value,
        low,
        high,
        *((s.p99, s.p999, s.max) if s else (None, None, None)),
        record.samples,
    )


def _sentences(run: Run) -> tuple[str, ...]:
    own = chart.small(run)
    first = next(iter(own), None)
    if first is None:
        return ()
    named = {record.point.placement: record for record in own[first] if record.value is not None}
    figures = [
        f"{record.stated()} {PLACEMENTS[place]}"
        for place in PLACEMENTS
        if (record := named.get(place)) is not None
    ]
    if not figures:
        return ()
    name = chart.TRANSPORTS[first]
    if len(figures) == 1:
        return (f"A round trip of 64 B by {name} takes {figures[0]}.",)
    count = {2: "two", 3: "three"}[len(figures)]
    sentence = (
        f'"The" loopback round trip is {count} figures ({name}, 64 B): {", ".join(figures[:-1])} and'
        f" {figures[-1]}; say where the two sides run before you compare."
    )
    return (sentence, *_wake_up(run, first))


def _wake_up(run: Run, transport: str) -> tuple[str, ...]:
    """What sleeping adds, and one wake-up by itself beside it."""
    rows = findings(run, chart.PROBE).sections("transports")
    row = next((row for row in rows if row.text("transport") == transport), None)
    wake_up, share = (row.number("wake_up_ns"), row.number("wake_up_share")) if row else (None, None)
    if wake_up is None or share is None or wake_up <= 0:
        return ()
    text = f"Of the first, {format_ns(wake_up)} ({share:.0%}) is waking two CPUs that sleep"
    alone = next((rung.latency_p50_ns for rung in operation_rungs(run) if rung.key == "wakeup"), None)
    return (f"{text}; one wake-up by a futex takes {format_ns(alone)}." if alone else f"{text}.",)
