"""Round trips of small messages: how often one takes how long, by transport and placement."""

from __future__ import annotations

import altair as alt

from latlab.run.model import Record
from latlab.run.operations import PLACEMENTS
from latlab.run.run import Run
from latlab.view import distribution, stairs
from latlab.view.points import why_absent, with_figures
from latlab.view.table import Table

ID = "network_roundtrip"
TITLE = "How long does a message to another process and its answer take?"
PROBE = "network.roundtrip"
#: Carriers of messages, by the point's `transport`.
TRANSPORTS = {"tcp": "TCP", "udp": "UDP", "unix": "Unix socket"}
#: Points of one staircase: nine are embedded.
_MOST_STEPS = 110
_HEIGHT = 320


def small(run: Run) -> dict[str, list[Record]]:
    """Records of the smallest message with their distribution, by transport."""
    records = [r for r in with_figures(run, PROBE, "per_op") if r.histogram is not None]
    least = min((r.point.message_bytes or 0 for r in records), default=0)
    places = list(PLACEMENTS)
    own = {
        transport: [
            r
            for r in records
            if (r.point.transport, r.point.message_bytes or 0) == (transport, least)
            and r.point.placement in PLACEMENTS
        ]
        for transport in TRANSPORTS
    }
    return {
        transport: sorted(of, key=lambda r: places.index(r.point.placement or ""))
        for transport, of in own.items()
        if of
    }


def placement(record: Record) -> str:
    """Where the two sides were, and how they waited."""
    return PLACEMENTS.get(record.point.placement or "", record.point.placement or "?")


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if small(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """One panel a transport on the same axes: what moves to the right is slower."""
    panels = {
        TRANSPORTS[transport]: {placement(record): distribution.steps(record, _MOST_STEPS) for record in own}
        for transport, own in small(run).items()
    }
    names = [place for place in PLACEMENTS.values() if any(place in own for own in panels.values())]
    titles = ("a round trip takes at least", "share of round trips")
    return stairs.beside(panels, names, titles, _HEIGHT)


def by_name(run: Run) -> dict[str, Record]:
    """Every record by what it is called in a table."""
    return {
        f"{TRANSPORTS[transport]}, {placement(record)}": record
        for transport, own in small(run).items()
        for record in own
    }


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    text = (
        "Staircase charts, both axes logarithmic: share of round trips that take at least a time, by"
        " transport and placement. "
    )
    return text + distribution.in_words(by_name(run)) + "."


def table(run: Run) -> Table:
    """Points of every staircase."""
    return distribution.table(by_name(run), "a round trip takes")
