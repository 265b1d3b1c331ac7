"""Round trips of small messages: how often one takes how long, by transport and placement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.findings import findings
from latlab.run.model import Record
from latlab.run.operations import PLACEMENTS, operation_rungs
from latlab.run.run import Run
from latlab.units import format_bytes_as_asked, format_ns
from latlab.view.plot import Stair, Stairs
from latlab.view.points import median_and_ends, place_in, quantiles, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, StairsOfSeveral, Topic

PROBE: Final = "network.roundtrip"
#: Carriers of messages, by the point's `transport`.
TRANSPORTS: Final = {"tcp": "TCP", "udp": "UDP", "unix": "Unix socket"}
#: Points of one staircase: nine are embedded.
_MOST_STEPS: Final = 110


def transport(record: Record) -> str:
    """What carried the message."""
    return TRANSPORTS.get(record.point.transport or "", record.point.transport or "?")


def placement(record: Record) -> str:
    """Where the two sides were, and how they waited."""
    return PLACEMENTS.get(record.point.placement or "", record.point.placement or "?")


def small(run: Run) -> dict[str, list[Record]]:
    """Records of the smallest message with their distribution, by transport."""
    records = [r for r in with_figures(run, PROBE, "per_op") if r.histogram is not None]
    least = min((r.point.message_bytes or 0 for r in records), default=0)
    drawn = [r for r in records if r.point.placement in PLACEMENTS and (r.point.message_bytes or 0) == least]
    drawn.sort(key=lambda r: place_in(PLACEMENTS, r.point.placement))
    own = {carrier: [r for r in drawn if r.point.transport == carrier] for carrier in TRANSPORTS}
    return {carrier: of for carrier, of in own.items() if of}


def _name(record: Record) -> str:
    return f"{transport(record)}, {placement(record)}"


def _drawn(run: Run) -> list[Record]:
    return [record for own in small(run).values() for record in own]


def _stairs(run: Run) -> Stairs | None:
    """One panel a transport on the same axes: what moves to the right is slower."""
    own = _drawn(run)
    placed = {placement(record) for record in own}
    if not own:
        return None
    return Stairs(
        [Stair(transport(record), placement(record), _name(record), record) for record in own],
        x="a round trip takes at least",
        y="share of round trips",
        about="Staircase charts, both axes logarithmic: share of round trips that take at least a time, by"
        " transport and placement.",
        names=[place for place in PLACEMENTS.values() if place in placed],
        most=_MOST_STEPS,
    )


def prose(run: Run) -> Iterator[str]:
    """The first transport by placement, and what of a round trip is waking up."""
    for carrier, own in list(small(run).items())[:1]:
        named = {placement(record): record for record in own if record.value is not None}
        figures = [f"{record.stated()} {place}" for place, record in named.items()]
        name = TRANSPORTS[carrier]
        if len(figures) == 1:
            yield f"A round trip of 64 B by {name} takes {figures[0]}."
        elif figures:
            count = {2: "two", 3: "three"}[len(figures)]
            yield (
                f'"The" loopback round trip is {count} figures ({name}, 64 B): {", ".join(figures[:-1])} and'
                f" {figures[-1]}; state where the two sides run before you compare."
            )
            yield from _wake_up(run, carrier)


def _wake_up(run: Run, carrier: str) -> Iterator[str]:
    """What sleeping adds, and one wake-up by itself beside it."""
    rows = findings(run, PROBE).sections("transports")
    row = next((row for row in rows if row.text("transport") == carrier), None)
    wake_up, share = (row.number("wake_up_ns"), row.number("wake_up_share")) if row else (None, None)
    if wake_up is not None and share is not None and wake_up > 0:
        alone = next((rung.latency_p50_ns for rung in operation_rungs(run) if rung.key == "wakeup"), None)
        beside = f"; one wake-up by a futex takes {format_ns(alone)}" if alone else ""
        yield f"Of the first, {format_ns(wake_up)} ({share:.0%}) is waking two CPUs that sleep{beside}."


def _measured(run: Run) -> list[Record]:
    return with_figures(run, PROBE, "per_op")


def _place(record: Record) -> tuple[int, int, int]:
    point = record.point
    return (
        place_in(TRANSPORTS, point.transport),
        point.message_bytes or 0,
        place_in(PLACEMENTS, point.placement),
    )


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "Round trips",
        sorted(_measured(run), key=_place),
        ("transport", "text", transport),
        ("message", "text", lambda record: format_bytes_as_asked(record.point.message_bytes or 0)),
        ("the two sides", "text", placement),
        *median_and_ends("ns"),
        *quantiles("p99", "p999", "max"),
        ("round trips", "count", lambda record: record.samples),
    )


TOPIC: Final = Topic(
    Chart(
        id="network_roundtrip",
        title="How long does a message to another process and its answer take?",
        caption="Messages of 64 B, there and back. Two CPUs, both sleep: each message wakes an idle CPU,"
        " twice in a round trip. Two CPUs, both poll: no wake-up; what remains is the path through "
        "the kernel. On one CPU, the two alternate.",
        probe=PROBE,
        measured=_stairs,
        table=lambda stairs: stairs.table("a round trip takes"),
        several=StairsOfSeveral(
            lambda run: {_name(record): record for record in _drawn(run)},
            "a round trip takes at least this long",
        ),
    ),
    shown=_measured,
    prose=prose,
    listings=_listings,
)
