"""Bytes a second to another process against the number of connections, and against the size of a message."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.network_roundtrip import TRANSPORTS
from latlab.units import format_bytes_as_asked, format_rate
from latlab.view import curves
from latlab.view.axes import count_axis, rate_y, size_axis, widened
from latlab.view.drawing import layered
from latlab.view.plot import as_table
from latlab.view.points import Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "network_throughput"
TITLE = "How many bytes a second go to another process, and do more connections carry more?"
PROBE = "network.throughput"
#: Where the system moves the threads as it likes, as it does with most programs.
ANYWHERE = "anywhere"
#: What most tools send at once.
USUAL_BYTES = 128 << 10
_WIDTH, _HEIGHT, _SPACING = 720, 300, 20


def records(run: Run) -> list[Record]:
    """Every point with a figure."""
    return with_figures(run, PROBE, "batch_mean")


def by_streams(run: Run) -> dict[str, list[Spot]]:
    """One curve a transport, the usual message, threads anywhere."""
    return _curves(
        [r for r in records(run) if r.point.message_bytes == USUAL_BYTES],
        lambda record: record.point.streams,
    )


def by_message(run: Run) -> dict[str, list[Spot]]:
    """The same of one stream against what one call hands over; nothing where one size was measured."""
    own = _curves(
        [r for r in records(run) if r.point.streams == 1], lambda record: record.point.message_bytes
    )
    return {name: curve for name, curve in own.items() if len(curve) > 1}


def _curves(own: list[Record], x: Callable[[Record], float | None]) -> dict[str, list[Spot]]:
    found = {
        name: spots([r for r in own if (r.point.transport, r.point.placement) == (transport, ANYWHERE)], x)
        for transport, name in TRANSPORTS.items()
    }
    return {name: curve for name, curve in found.items() if curve}


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    if by_streams(run):
        return None
    return "no stream was measured where threads may move" if records(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """Rates from the same axis: connections on the left, sizes of messages on the right."""
    streams, sizes = by_streams(run), by_message(run)
    if not streams:
        return None
    bottom, top = widened([*curves.ends(streams), *curves.ends(sizes)])
    width = _WIDTH if not sizes else (_WIDTH - 80 - _SPACING) // 2
    counts = sorted({round(spot.x) for spot in curves.everywhere(streams)})
    panels = [
        layered(
            curves.layers(
                streams,
                count_axis("x", "connections at the same time", counts),
                rate_y("value", "bytes a second, all together", bottom, top),
            ),
            data=curves.rows(streams, lambda spot: f"{spot.x:.0f}: {spot.stated(format_rate)}"),
            width=width,
            height=_HEIGHT,
        )
    ]
    if sizes:
        low, high = widened(spot.x for spot in curves.everywhere(sizes))
        panels.append(
            layered(
                curves.layers(
                    sizes,
                    size_axis("x", "handed over by one call, one connection", low, high),
                    rate_y("value", "", bottom, top),
                ),
                data=curves.rows(
                    sizes, lambda spot: f"{format_bytes_as_asked(round(spot.x))}: {spot.stated(format_rate)}"
                ),
                width=width,
                height=_HEIGHT,
            )
        )
    return alt.hconcat(*panels, spacing=_SPACING)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(by_streams(run), lambda spot: f"{format_rate(spot.value)} with {spot.x:.0f}")
    text = (
        "Line charts, both axes logarithmic: bytes a second to another process against the number of"
        " connections"
    )
    sizes = curves.in_words(
        by_message(run), lambda spot: f"{format_rate(spot.value)} at {format_bytes_as_asked(round(spot.x))}"
    )
    return f"{text}. {words}." + (f" Against the size of a message: {sizes}." if sizes else "")


def table(run: Run) -> Table:
    """Every point of the curves of connections."""
    return as_table(by_streams(run), Column("connections", "count"), "bytes_per_s")
