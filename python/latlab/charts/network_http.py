"""HTTP requests at a fixed rate: what each waited since it was due, and what a client that waits reports."""

from __future__ import annotations

import altair as alt
import msgspec

from latlab.run.model import Channel, Record
from latlab.run.run import Run
from latlab.units import format_count
from latlab.view import distribution, stairs
from latlab.view.points import why_absent, with_figures
from latlab.view.table import Table

ID = "network_http"
TITLE = "What does a request wait when requests come at their own rate?"
PROBE = "network.http"
OPEN = "open loop: from when it was due"
CLOSED = "closed loop: from when it was sent"
_SERVICE = "service"
#: Panels side by side; the slowest, a middle and the fastest rate are enough to see what changes.
_MOST_PANELS = 3
_HEIGHT = 320


def records(run: Run) -> list[Record]:
    """Rates with their distributions, ascending."""
    own = [
        record
        for record in with_figures(run, PROBE, "per_op")
        if record.point.rate_per_s and record.histogram is not None
    ]
    return sorted(own, key=lambda record: record.point.rate_per_s or 0)


def service(record: Record) -> Channel | None:
    """The same requests from when they were sent."""
    return next((channel for channel in record.channels if channel.name == _SERVICE), None)


def views(record: Record) -> dict[str, Record]:
    """Both ways to count the same requests."""
    inner = service(record)
    if inner is None or not inner.samples:
        return {OPEN: record}
    closed = msgspec.structs.replace(record, summary=inner.summary, histogram=inner.histogram)
    return {OPEN: record, CLOSED: closed}


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if records(run) else why_absent(run, PROBE)


def drawn(run: Run) -> list[Record]:
    """The rates that have a panel."""
    own = records(run)
    if len(own) <= _MOST_PANELS:
        return own
    return [own[0], own[len(own) // 2], own[-1]]


def chart(run: Run) -> alt.HConcatChart | None:
    """One panel a rate on the same axes, both logarithmic."""
    panels = {
        f"{format_count(record.point.rate_per_s)} a second": {
            name: distribution.steps(view) for name, view in views(record).items()
        }
        for record in drawn(run)
    }
    names = [name for name in (OPEN, CLOSED) if any(name in own for own in panels.values())]
    return stairs.beside(panels, names, ("a request takes at least", "share of requests"), _HEIGHT)


def by_name(run: Run) -> dict[str, Record]:
    """Every staircase by what it is called in a table."""
    return {
        f"{format_count(record.point.rate_per_s)} a second, {name}": view
        for record in drawn(run)
        for name, view in views(record).items()
    }


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    text = "Staircase charts, both axes logarithmic: share of requests that take at least a time, by rate. "
    return text + distribution.in_words(by_name(run)) + "."


def table(run: Run) -> Table:
    """Points of every staircase."""
    return distribution.table(by_name(run), "a request takes")
