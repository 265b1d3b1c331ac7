"""What a connection costs before it carries anything."""

from __future__ import annotations

from latlab.charts.network_transfers import PATHS
from latlab.charts.points import why_absent, with_figures
from latlab.charts.table import Column, Table
from latlab.report.document import Listing, Section
from latlab.report.evidence import evidence
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_ns

_PROBE = "network.connect"
_TITLE = "What is paid before a request can go?"
_STEPS = {"resolve": "name (localhost)", "tcp": "TCP connection", "tls": "TLS handshake"}
_COLUMNS = (
    Column("path"),
    Column("step"),
    Column("fastest", "ns"),
    Column("median", "ns"),
    Column("95 % from", "ns"),
    Column("95 % to", "ns"),
    Column("p99", "ns"),
    Column("slowest", "ns"),
    Column("connections", "count"),
)


def section(run: Run, probes: Probes) -> Section:
    """Each step with its distribution."""
    records = sorted(
        (
            r
            for r in with_figures(run, _PROBE, "per_op")
            if r.point.path in PATHS and r.point.operation in _STEPS
        ),
        key=lambda r: (list(PATHS).index(r.point.path or ""), list(_STEPS).index(r.point.operation or "")),
    )
    table = Table(_COLUMNS, tuple(_row(record) for record in records))
    return Section(
        id="network_connect",
        title=_TITLE,
        sentences=_sentences(run) if records else (),
        listings=(Listing("Steps of a new connection", table),) if records else (),
        evidence=(*_labels(records), *evidence(run, _PROBE)),
        methods=probes.methods_of(_PROBE),
        absence="" if records else why_absent(run, _PROBE),
    )


def _row(record: Record) -> tuple[str | float | int | None, ...]:
    s = record.summary
    low, high = record.interval or (None, None)
    return (
        PATHS[record.point.path or ""],
        _STEPS[record.point.operation or ""],
        s.min if s else None,
        record.value,
        low,
        high,
        *((s.p99, s.max) if s else (None, None)),
        record.samples,
    )


def _labels(records: list[Record]) -> tuple[str, ...]:
    flags = (flag for record in records for flag in record.flags if flag.startswith("emulated: "))
    return tuple(dict.fromkeys(flags))


def _sentences(run: Run) -> tuple[str, ...]:
    sentences = []
    for row in findings(run, _PROBE).sections("paths"):
        path, tcp, tls = row.text("path"), positive(row, "tcp_ns"), positive(row, "tls_ns")
        if path not in PATHS or tcp is None:
            continue
        text = f"Over the {PATHS[path]} a connection is open after {format_ns(tcp)}"
        sentences.append(text + (f", with TLS after {format_ns(tcp + tls)}." if tls else "."))
    return tuple(sentences[:2])
