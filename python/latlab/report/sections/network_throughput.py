"""Throughput to another process on this machine."""

from __future__ import annotations

from latlab.charts import network_throughput as chart
from latlab.charts.network_transfers import ends
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.network_roundtrip import TRANSPORTS
from latlab.units import format_bytes_as_asked, format_count, format_rate, format_span
from latlab.view.evidence import evidence
from latlab.view.points import is_disturbed
from latlab.view.table import Column, Listing, Table

PLACES = {
    "anywhere": "anywhere",
    "same-cpu": "both ends on one CPU",
    "across-blocking": "on two CPUs",
}
_CAPTION = (
    "What the receiving program took out of its sockets. Each connection has a thread at either end; the"
    " system moves the threads as it likes."
)
_BOTH = " Left: messages of 128 KiB. Right: one connection."
_STREAMS_ALONE = " Messages of 128 KiB."
_COLUMNS = (
    Column("transport"),
    Column("message"),
    Column("streams", "count"),
    Column("the two ends"),
    Column("median", "bytes_per_s"),
    Column("95 % from", "bytes_per_s"),
    Column("95 % to", "bytes_per_s"),
    Column("slowest to fastest window"),
    Column("windows", "count"),
    Column("disturbed"),
)
#: Of all streams and blocks: the median, and from the least to the most.
_TCP = (
    Column("message"),
    Column("streams", "count"),
    Column("the two ends"),
    Column("round trip", "ns"),
    Column("least to most"),
    Column("window, segments", "count"),
    Column("least to most"),
    Column("most sent again by one", "count"),
)


def section(run: Run, probes: Probes) -> Section:
    """By connections, by message, by placement, with what TCP says."""
    own = sorted(chart.records(run), key=_place)
    tables = {
        "Streams": Table(_COLUMNS, tuple(_row(record) for record in own)),
        "What TCP says at the sender's end (medians)": Table(_TCP, tuple(filter(None, map(_tcp, own)))),
    }
    return Section(
        id="network_throughput",
        title=chart.TITLE,
        sentences=_sentences(own),
        listings=tuple(Listing(title, table) for title, table in tables.items() if table.rows),
        figures=figure(run, chart.ID, _CAPTION + (_BOTH if chart.by_message(run) else _STREAMS_ALONE)),
        evidence=(*_unix(own), *_limits(own), *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence="" if own else chart.absence(run) or "",
    )


def _place(record: Record) -> tuple[int, int, int, int]:
    point = record.point
    transports, places = list(TRANSPORTS), list(PLACES)
    return (
        transports.index(point.transport) if point.transport in transports else len(transports),
        point.message_bytes or 0,
        point.streams or 0,
        places.index(point.placement) if point.placement in places else len(places),
    )


def _row(record: Record) -> tuple[str | float | int | None, ...]:
    point, s = record.point, record.summary
    low, high = record.ends
    return (
        TRANSPORTS.get(point.transport or "", point.transport or "?"),
        format_bytes_as_asked(point.message_bytes or 0),
        point.streams,
        PLACES.get(point.placement or "", point.placement or "?"),
        record.value,
        low,
        high,
        format_span(s.min, s.max, format_rate) if s and s.min is not None and s.max else None,
        record.samples,
        "yes" if is_disturbed(record) else "no",
    )


def _tcp(record: Record) -> tuple[str | float | int | None, ...] | None:
    told, point = found(record), record.point
    trip, window = positive(told, "tcp.rtt_ns"), positive(told, "tcp.congestion_window_segments")
    if trip is None or window is None:
        return None
    trips, windows = (ends(told, f"tcp.{name}_least_most") for name in ("rtt_ns", "congestion_window"))
    return (
        format_bytes_as_asked(point.message_bytes or 0),
        point.streams,
        PLACES.get(point.placement or "", point.placement or "?"),
        trip,
        format_span(*trips) if trips else "not kept",
        window,
        format_span(*windows, format_count) if windows else "not kept",
        told.number("tcp.most_retransmits_of_a_connection"),
    )


def _find(own: list[Record], transport: str, streams: int, placement: str) -> Record | None:
    for record in own:
        point = record.point
        if (point.transport, point.streams, point.placement, point.message_bytes) == (
            transport,
            streams,
            placement,
            chart.USUAL_BYTES,
        ):
            return record
    return None


def _rate(record: Record) -> str:
    return record.stated(format_rate)


def _sentences(own: list[Record]) -> tuple[str, ...]:
    one = _find(own, "tcp", 1, chart.ANYWHERE)
    if one is None or not one.value:
        return ()
    first = f"Another process on this machine gets {_rate(one)} by one TCP stream"
    more = [
        record
        for streams in sorted({record.point.streams or 0 for record in own})
        if streams > 1 and (record := _find(own, "tcp", streams, chart.ANYWHERE)) is not None
    ]
    if more:
        most = max(more, key=lambda record: record.value or 0.0)
        by = f"{_rate(most)} by {most.point.streams} streams"
        times = (most.value or 0.0) / one.value
        first += (
            f" and {by} together, {times:.1f} times as much."
            if times > 1
            else f"; more streams together carry no more: {by}."
        )
    else:
        first += "."
    sentences = [first]
    same, across = _find(own, "tcp", 1, "same-cpu"), _find(own, "tcp", 1, "across-blocking")
    if same is not None and across is not None:
        sentences.append(
            f"With both ends on one CPU a stream carries {_rate(same)}, on two CPUs {_rate(across)}."
        )
    return tuple(sentences)


def _unix(own: list[Record]) -> tuple[str, ...]:
    record = _find(own, "unix", 1, chart.ANYWHERE)
    if record is None:
        return ()
    return (f"A Unix socket, which goes past the network's layers, carries {_rate(record)}.",)


def _limits(own: list[Record]) -> tuple[str, ...]:
    """For what TCP waited, of one stream."""
    for record in own:
        receiver = found(record).number("tcp.receiver_limited_share")
        buffer = found(record).number("tcp.buffer_limited_share")
        if record.point.streams == 1 and receiver is not None and buffer is not None:
            return (
                f"One stream ({record.point.label()}) waited for room at the receiver for {receiver:.0%} of"
                " the time in which it had something to send, and for room in the sender's buffer for"
                f" {buffer:.0%} (TCP_INFO).",
            )
    return ()
