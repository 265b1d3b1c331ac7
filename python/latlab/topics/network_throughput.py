"""Bytes a second to another process against the number of connections, and against the size of a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.network_roundtrip import TRANSPORTS, transport
from latlab.topics.transfers import ends
from latlab.units import format_bytes_as_asked, format_count, format_rate, format_span
from latlab.view.evidence import evidence
from latlab.view.figure import Absent
from latlab.view.plot import Axis, Beside, Plane, yes_or_no
from latlab.view.points import Spot, is_disturbed, median_and_ends, place_in, series, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, Topic

PROBE: Final = "network.throughput"
#: Where the system moves the threads as it likes, as it does with most programs.
_ANYWHERE: Final = "anywhere"
#: What most tools send at once.
_USUAL_BYTES: Final = 128 << 10
_PLACES: Final = {
    _ANYWHERE: "anywhere",
    "same-cpu": "both ends on one CPU",
    "across-blocking": "on two CPUs",
}
_WIDTH, _SPACING = 720, 20


def _measured(run: Run) -> list[Record]:
    return with_figures(run, PROBE, "batch_mean")


def records(run: Run) -> list[Record]:
    """Every point with a figure."""
    return sorted(_measured(run), key=_place)


def _place(record: Record) -> tuple[int, int, int, int]:
    point = record.point
    return (
        place_in(TRANSPORTS, point.transport),
        point.message_bytes or 0,
        point.streams or 0,
        place_in(_PLACES, point.placement),
    )


def by_streams(run: Run) -> dict[str, list[Spot]]:
    """One curve a transport, the usual message, threads anywhere."""
    own = [
        r for r in _measured(run) if (r.point.message_bytes, r.point.placement) == (_USUAL_BYTES, _ANYWHERE)
    ]
    return series(own, TRANSPORTS, lambda r: r.point.transport, lambda r: r.point.streams)


def by_message(run: Run) -> dict[str, list[Spot]]:
    """The same of one stream against what one call hands over; nothing where one size was measured."""
    own = [r for r in _measured(run) if (r.point.streams, r.point.placement) == (1, _ANYWHERE)]
    curves = series(own, TRANSPORTS, lambda r: r.point.transport, lambda r: r.point.message_bytes)
    return {name: curve for name, curve in curves.items() if len(curve) > 1}


def _picture(run: Run) -> Beside | Absent | None:
    """Rates from the same axis: connections on the left, sizes of messages on the right."""
    streams, sizes = by_streams(run), by_message(run)
    if not streams:
        moved = _measured(run)
        return Absent("no stream was measured where threads may move") if moved else None
    plane = partial(
        Plane,
        y=Axis("bytes a second, all together", "bytes_per_s"),
        width=(_WIDTH - 80 - _SPACING) // 2 if sizes else _WIDTH,
        height=300,
    )
    planes = [
        plane(Axis("connections at the same time", "count", 1.1, 1.1), lines=streams, said="{y} with {x}")
    ]
    words = (
        "Line charts, both axes logarithmic: bytes a second to another process against the number of"
        f" connections. {planes[0].ends}."
    )
    if sizes:
        planes.append(plane(Axis("handed over by one call, one connection", "bytes"), lines=sizes))
        words += f" Against the size of a message: {planes[1].ends}."
    return Beside(planes, words, spacing=_SPACING)


def _caption(run: Run) -> str:
    both = "Left: messages of 128 KiB. Right: one connection." if by_message(run) else "Messages of 128 KiB."
    return (
        "Bytes that the receiver read from its sockets. Each connection has a thread at either end; "
        f"the system may move the threads. {both}"
    )


def _find(own: Sequence[Record], carrier: str, streams: int, placement: str) -> Record | None:
    wanted = (carrier, streams, placement, _USUAL_BYTES)
    return next(
        (
            record
            for record in own
            for at in [record.point]
            if (at.transport, at.streams, at.placement, at.message_bytes) == wanted
        ),
        None,
    )


def _rate(record: Record) -> str:
    return record.stated(format_rate)


def prose(run: Run) -> Iterator[str]:
    """One TCP stream, more of them together, and both ends on one CPU."""
    own = records(run)
    one = _find(own, "tcp", 1, _ANYWHERE)
    if one is None or not one.value:
        return
    more = [
        record
        for streams in sorted({record.point.streams or 0 for record in own})
        if streams > 1 and (record := _find(own, "tcp", streams, _ANYWHERE)) is not None
    ]
    together = ""
    if more:
        most = max(more, key=lambda record: record.value or 0.0)
        by = f"{_rate(most)} by {most.point.streams} streams"
        times = (most.value or 0.0) / one.value
        together = (
            f" and {by} together, {times:.1f} times as much"
            if times > 1
            else f"; more streams together carry no more: {by}"
        )
    yield f"Another process on this machine gets {_rate(one)} by one TCP stream{together}."
    same, across = _find(own, "tcp", 1, "same-cpu"), _find(own, "tcp", 1, "across-blocking")
    if same is not None and across is not None:
        yield f"With both ends on one CPU a stream carries {_rate(same)}, on two CPUs {_rate(across)}."


def _message(record: Record) -> str:
    return format_bytes_as_asked(record.point.message_bytes or 0)


def _two_ends(record: Record) -> str:
    return _PLACES.get(record.point.placement or "", record.point.placement or "?")


def _windows(record: Record) -> str | None:
    s = record.summary
    return format_span(s.min, s.max, format_rate) if s and s.min is not None and s.max else None


def _listings(run: Run) -> Iterator[Listing]:
    """Every point, and what TCP says of it: of all streams and blocks the median, and least to most."""

    def trips(record: Record) -> str:
        both = ends(found(record), "tcp.rtt_ns_least_most")
        return format_span(*both) if both else "not kept"

    def segments(record: Record) -> str:
        both = ends(found(record), "tcp.congestion_window_least_most")
        return format_span(*both, format_count) if both else "not kept"

    yield from listed(
        "Streams",
        records(run),
        ("transport", "text", transport),
        ("message", "text", _message),
        ("streams", "count", lambda record: record.point.streams),
        ("the two ends", "text", _two_ends),
        *median_and_ends("bytes_per_s"),
        ("slowest to fastest window", "text", _windows),
        ("windows", "count", lambda record: record.samples),
        ("disturbed", "text", lambda record: yes_or_no(is_disturbed(record))),
    )
    trip, window = "tcp.rtt_ns", "tcp.congestion_window_segments"
    yield from listed(
        "TCP figures at the sender (medians)",
        [r for r in records(run) if all(positive(found(r), name) is not None for name in (trip, window))],
        ("message", "text", _message),
        ("streams", "count", lambda record: record.point.streams),
        ("the two ends", "text", _two_ends),
        ("round trip", "ns", lambda record: positive(found(record), trip)),
        ("least to most", "text", trips),
        ("window, segments", "count", lambda record: positive(found(record), window)),
        ("least to most", "text", segments),
        (
            "most retransmits of one",
            "count",
            lambda record: found(record).number("tcp.most_retransmits_of_a_connection"),
        ),
    )


def _evidence(run: Run) -> Iterator[str]:
    """With a Unix socket beside it, and for what TCP waited, of one stream."""
    own = records(run)
    unix = _find(own, "unix", 1, _ANYWHERE)
    if unix is not None:
        yield f"A Unix socket, which bypasses the network layers, carries {_rate(unix)}."
    for record in own:
        receiver = found(record).number("tcp.receiver_limited_share")
        buffer = found(record).number("tcp.buffer_limited_share")
        if record.point.streams == 1 and receiver is not None and buffer is not None:
            yield (
                f"While it had data to send, one stream ({record.point.label()}) waited for the "
                f"receiver's window {receiver:.0%} of the time, and for its own send buffer "
                f"{buffer:.0%} (TCP_INFO)."
            )
            break
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="network_throughput",
        title="What bandwidth does another process get, and do more connections carry more?",
        caption=_caption,
        probe=PROBE,
        measured=_picture,
        table=lambda beside: beside.planes[0].table("connections"),
    ),
    shown=records,
    prose=prose,
    listings=_listings,
    evidence=_evidence,
)
