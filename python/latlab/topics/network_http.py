"""HTTP requests at a fixed rate: what each waited since it was due, and what a client that waits reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from latlab.run.findings import found
from latlab.run.model import Channel, Record
from latlab.run.run import Run
from latlab.units import format_count, format_digits, format_ns
from latlab.view.plot import Stair, Stairs
from latlab.view.points import quantile, quantiles, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, Topic

PROBE: Final = "network.http"
OPEN: Final = "open loop: from when it was due"
CLOSED: Final = "closed loop: from when it was sent"
_SERVICE: Final = "service"
#: Panels side by side; the slowest, a middle and the fastest rate are enough to see what changes.
_MOST_PANELS: Final = 3
#: Below this the two ways to count differ by no more than their intervals usually do.
_OMITTED: Final = 1.5


def records(run: Run) -> list[Record]:
    """Rates with their distributions, ascending."""
    own = [
        record
        for record in with_figures(run, PROBE, "per_op")
        if record.point.rate_per_s and record.histogram is not None
    ]
    return sorted(own, key=lambda record: record.point.rate_per_s or 0)


def _service(record: Record) -> Channel | None:
    """The same requests from when they were sent."""
    return next((channel for channel in record.channels if channel.name == _SERVICE), None)


def views(record: Record) -> dict[str, Record]:
    """Both ways to count the same requests."""
    inner = _service(record)
    if inner is None or not inner.samples:
        return {OPEN: record}
    closed = msgspec.structs.replace(record, summary=inner.summary, histogram=inner.histogram)
    return {OPEN: record, CLOSED: closed}


def drawn(run: Run) -> list[Record]:
    """The rates that have a panel."""
    own = records(run)
    if len(own) <= _MOST_PANELS:
        return own
    return [own[0], own[len(own) // 2], own[-1]]


def _stairs(run: Run) -> Stairs | None:
    """One panel a rate on the same axes."""
    own = [
        Stair(rate, name, f"{rate}, {name}", view)
        for record in drawn(run)
        for rate in [f"{format_count(record.point.rate_per_s)} a second"]
        for name, view in views(record).items()
    ]
    if not own:
        return None
    return Stairs(
        own,
        x="a request takes at least",
        y="share of requests",
        about="Staircase charts, both axes logarithmic: share of requests that take at least a time, by"
        " rate.",
    )


def prose(run: Run) -> Iterator[str]:
    """The rate at which a closed loop leaves out most."""
    own = records(run)
    if not own:
        return
    record = max(own, key=_omitted)
    opened, closed = _tails(record)
    rate = format_count(record.point.rate_per_s)
    away = found(record).text("server") == "the URL's"
    who = "the URL's server" if away else "latlab's own server, on this machine,"
    name, at = ("p99", opened) if opened is not None else ("the median", record.value)
    yield (
        f"At {rate} requests a second {who} answers with {name} {format_ns(at)},"
        " counted from when each request was due."
    )
    if opened is None or closed is None:
        return
    reported = f"A client that waits for each answer would have reported {format_ns(closed)}"
    if _omitted(record) < _OMITTED:
        yield (
            f"{reported}: no long stall occurred during the measurement, so both views agree within "
            f"a factor of {_OMITTED}."
        )
    else:
        yield (
            f"{reported}, {format_digits(opened / closed, 2)} times less: it sends nothing while the "
            "server stalls, and so omits the requests that would have waited."
        )


def _tails(record: Record) -> tuple[float | None, float | None]:
    return quantile(record, "p99"), quantile(_service(record), "p99")


def _omitted(record: Record) -> float:
    """How many times longer the tail is than a closed loop would have it."""
    opened, closed = _tails(record)
    return opened / closed if opened and closed else 0.0


def _listings(run: Run) -> tuple[Listing, ...]:
    """What was held back is of the open loop."""
    own = records(run)
    opened = set(map(id, own))

    def held_back(view: Record) -> float | None:
        return found(view).number("held_back") if id(view) in opened else None

    return listed(
        "Requests",
        [view for record in own for view in views(record).values()],
        ("asked for in a second", "count", lambda view: view.point.rate_per_s),
        ("due, at random moments", "count", lambda view: found(view).number("offered_per_s")),
        ("answered in a second", "count", lambda view: found(view).number("achieved_per_s")),
        ("counted", "text", lambda view: OPEN if id(view) in opened else CLOSED),
        *quantiles("p50", "p90", "p99", "p999", "max"),
        ("requests", "count", lambda view: view.samples),
        ("waited for a connection", "count", held_back),
    )


TOPIC: Final = Topic(
    Chart(
        id="network_http",
        title="How long do requests wait when they arrive at a fixed rate?",
        caption="The same requests, counted in two ways. Open loop: from when each was due, as its "
        "user experiences it. Closed loop: from when it was sent, as reported by a client that sends "
        "the next request only after an answer. While the server stalls, such a client sends nothing, "
        "and its quantiles hide the stall (coordinated omission).",
        probe=PROBE,
        measured=_stairs,
        table=lambda stairs: stairs.table("a request takes"),
    ),
    prose=prose,
    listings=_listings,
)
