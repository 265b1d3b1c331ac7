"""What users wait at a given rate of requests: from the moment that each was due, and in service."""

from __future__ import annotations

import altair as alt

from latlab.charts.storage import latency, timed
from latlab.run.findings import found, positive
from latlab.run.model import Channel, Record
from latlab.run.run import Run
from latlab.units import format_count, format_ns
from latlab.view import curves
from latlab.view.axes import duration_y, per_second_x, widened
from latlab.view.drawing import layered
from latlab.view.points import Spot, drawable, is_disturbed, why_absent
from latlab.view.table import Column, Table

ID = "storage_rate"
TITLE = "What does a request wait at a given rate?"
PROBE = "storage.rate"
SERVICE = "service"
#: What does less than this of what was due did not keep up.
KEEPS_UP = 0.95
_SERIES = {
    "response, median": ("p50", False),
    "response, p99": ("p99", False),
    "service, median": ("p50", True),
    "service, p99": ("p99", True),
}


def records(run: Run) -> list[Record]:
    """Points with a rate, ascending."""
    own = [record for record in timed(run, PROBE) if record.point.rate_per_s]
    return sorted(own, key=lambda record: record.point.rate_per_s or 0)


def service(record: Record) -> Channel | None:
    """The time that the disk itself had a request."""
    return next((channel for channel in record.channels if channel.name == SERVICE), None)


def due_per_s(record: Record) -> float | None:
    """How many were due in a second as the moments fell: of few random ones that is not the nominal rate."""
    return positive(found(record), "offered_per_s")


def kept_up(record: Record) -> bool:
    """Whether as many were done as were due."""
    reached = positive(found(record), "achieved_per_s")
    due = due_per_s(record) or record.point.rate_per_s or 0
    return reached is None or reached >= KEEPS_UP * due


def lines(run: Run) -> dict[str, list[Spot]]:
    """Median and p99 of the response, and of the service within it."""
    out: dict[str, list[Spot]] = {}
    for name, (quantile, inner) in _SERIES.items():
        for record in records(run):
            rate = float(record.point.rate_per_s or 1)
            spot = _inner(record, rate, quantile) if inner else latency(record, rate, quantile)
            if spot is not None:
                out.setdefault(name, []).append(spot)
    return out


def _inner(record: Record, rate: float, quantile: str) -> Spot | None:
    channel = service(record)
    value = getattr(channel.summary, quantile) if channel else None
    if channel is None or not drawable(value):
        return None
    ends = [value, *filter(drawable, channel.summary.intervals.get(quantile, ()))]
    return Spot(rate, value, min(ends), max(ends), channel.samples, is_disturbed(record))


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """Both axes logarithmic."""
    own = lines(run)
    if not own:
        return None
    low, high = widened((spot.x for spot in curves.everywhere(own)), down=1.4, up=1.4)
    bottom, top = widened(curves.ends(own))
    x = per_second_x("x", "requests due in a second, at random moments", low, high)
    y = duration_y("value", "one request", bottom, top)
    data = curves.rows(own, lambda spot: f"{format_count(spot.x)} a second: {spot.stated(format_ns)}")
    return layered(curves.layers(own, x, y), data=data, width=curves.WIDTH, height=300)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(
        lines(run), lambda spot: f"{format_ns(spot.value)} at {format_count(spot.x)} a second"
    )
    return f"Line chart, both axes logarithmic: time of one request against the rate of requests. {words}."


def table(run: Run) -> Table:
    """Every rate."""
    columns = (
        Column("asked for in a second", "count"),
        Column("due, as the moments fell", "count"),
        Column("done in a second", "count"),
        Column("response, median", "ns"),
        Column("response, p99", "ns"),
        Column("service, median", "ns"),
        Column("service, p99", "ns"),
        Column("requests", "count"),
        Column("kept up"),
    )
    rows = []
    for record in records(run):
        inner = service(record)
        parts = (inner.summary.p50, inner.summary.p99) if inner else (None, None)
        rows.append(
            (
                record.point.rate_per_s,
                due_per_s(record),
                positive(found(record), "achieved_per_s"),
                record.value,
                record.summary.p99 if record.summary else None,
                *parts,
                record.samples,
                "yes" if kept_up(record) else "no",
            )
        )
    return Table(columns, tuple(rows))
