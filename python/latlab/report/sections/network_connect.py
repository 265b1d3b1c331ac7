"""What a connection costs before it carries anything."""

from __future__ import annotations

from latlab.charts.network_transfers import ALL_PATHS as PATHS
from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.view.evidence import evidence
from latlab.view.points import why_absent, with_figures
from latlab.view.table import Column, Listing, Table

_PROBE = "network.connect"
_TITLE = "What does setting up a connection cost?"
_STEPS = {"resolve": "name", "tcp": "TCP connection", "tls": "TLS handshake"}
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
        sentences=_sentences(records),
        listings=(Listing("Steps of a new connection", table),) if records else (),
        evidence=(*_labels(records), *evidence(run, _PROBE)),
        methods=probes.methods_of(_PROBE),
        absence="" if records else why_absent(run, _PROBE),
    )


def _row(record: Record) -> tuple[str | float | int | None, ...]:
    s = record.summary
    low, high = record.ends
    return (
        PATHS[record.point.path or ""],
        _step(record),
        s.min if s else None,
        record.value,
        low,
        high,
        *((s.p99, s.max) if s else (None, None)),
        record.samples,
    )


def _step(record: Record) -> str:
    step = _STEPS[record.point.operation or ""]
    local = record.point.operation == "resolve" and record.point.path != "url"
    return f"{step} (localhost)" if local else step


def _labels(records: list[Record]) -> tuple[str, ...]:
    flags = (flag for record in records for flag in record.flags if flag.startswith("emulated: "))
    return tuple(dict.fromkeys(flags))


def _sentences(records: list[Record]) -> tuple[str, ...]:
    sentences = []
    for path, name in PATHS.items():
        steps = {r.point.operation: r for r in records if r.point.path == path}
        tcp, tls = steps.get("tcp"), steps.get("tls")
        if tcp is None or tcp.value is None:
            continue
        text = f"Over the {name} a connection" if path != "url" else "To the server of --url a connection"
        text += f" is open after {tcp.stated()}"
        more = f"; a TLS handshake takes {tls.stated()} more." if tls and tls.value else "."
        sentences.append(text + more)
    return tuple(sentences[:2])
