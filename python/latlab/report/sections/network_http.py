"""HTTP requests at a fixed rate."""

from __future__ import annotations

from latlab.charts import network_http as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import found
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_digits, format_ns
from latlab.view.evidence import evidence
from latlab.view.table import Column, Listing, Table

_CAPTION = (
    "The same requests, counted in two ways. Open loop: from when each was due, as its user waits. Closed"
    " loop: from when it was sent, as a client reports that asks again only after an answer; while the server"
    " stalls such a client asks nothing, and its quantiles hide the stall (coordinated omission)."
)
_COLUMNS = (
    Column("asked for in a second", "count"),
    Column("due, as the moments fell", "count"),
    Column("answered in a second", "count"),
    Column("counted"),
    Column("median", "ns"),
    Column("p90", "ns"),
    Column("p99", "ns"),
    Column("p99.9", "ns"),
    Column("slowest", "ns"),
    Column("requests", "count"),
    Column("waited for a connection", "count"),
)
#: Below this the two ways to count differ by no more than their intervals usually do.
_OMITTED = 1.5


def section(run: Run, probes: Probes) -> Section:
    """Both distributions, and what the closed one leaves out."""
    records = chart.records(run)
    rows = [row for record in records for row in _rows(record)]
    return Section(
        id="network_http",
        title=chart.TITLE,
        sentences=_sentences(records),
        listings=(Listing("Requests", Table(_COLUMNS, tuple(rows))),) if rows else (),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=tuple(evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence="" if records else chart.absence(run) or "",
    )


def _rows(record: Record) -> list[tuple[str | float | int | None, ...]]:
    told = found(record)
    rows: list[tuple[str | float | int | None, ...]] = []
    for name, view in chart.views(record).items():
        s = view.summary
        own = name == chart.OPEN
        rows.append(
            (
                record.point.rate_per_s,
                told.number("offered_per_s"),
                told.number("achieved_per_s"),
                name,
                *((s.p50, s.p90, s.p99, s.p999, s.max) if s else (None,) * 5),
                record.samples,
                told.number("held_back") if own else None,
            )
        )
    return rows


def _sentences(records: list[Record]) -> tuple[str, ...]:
    if not records:
        return ()
    record = max(records, key=_omitted)
    opened, closed = _tails(record)
    rate = format_count(record.point.rate_per_s)
    away = found(record).text("server") == "the URL's"
    who = "the URL's server" if away else "latlab's own server, on this machine,"
    name, at = ("p99", opened) if opened is not None else ("the median", record.value)
    first = (
        f"At {rate} requests a second {who} answers with {name} {format_ns(at)},"
        " counted from when each request was due."
    )
    if opened is None or closed is None:
        return (first,)
    if _omitted(record) < _OMITTED:
        return (
            first,
            f"A client that waits for each answer would have reported {format_ns(closed)}: nothing stalled"
            f" for long while this was measured, so both views agree within a factor of {_OMITTED}.",
        )
    return (
        first,
        f"A client that waits for each answer would have reported {format_ns(closed)},"
        f" {format_digits(opened / closed, 2)} times less: it asks nothing while the server stalls,"
        " and leaves out who would have waited.",
    )


def _tails(record: Record) -> tuple[float | None, float | None]:
    inner = chart.service(record)
    return (
        record.summary.p99 if record.summary else None,
        inner.summary.p99 if inner else None,
    )


def _omitted(record: Record) -> float:
    """How many times longer the tail is than a closed loop would have it."""
    opened, closed = _tails(record)
    return opened / closed if opened and closed else 0.0
