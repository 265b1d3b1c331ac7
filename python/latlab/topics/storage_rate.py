"""What users wait at a given rate of requests: from the moment that each was due, and in service."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from latlab.run.findings import found, positive
from latlab.run.model import Channel, Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.units import format_count, format_ns
from latlab.view.plot import Axis, Plane, yes_or_no
from latlab.view.points import Spot, drawable, is_disturbed, quantile
from latlab.view.table import Table, table_of
from latlab.view.topic import Chart, CurvesOfSeveral, Topic

PROBE: Final = "storage.rate"
#: What does less than this of what was due did not keep up.
_KEEPS_UP: Final = 0.95
#: Intervals that lie so far apart are more than what two points differ by anyway.
_SLEPT: Final = 1.1
_SERIES: Final = {
    "response, median": ("p50", False),
    "response, p99": ("p99", False),
    "service, median": ("p50", True),
    "service, p99": ("p99", True),
}


def records(run: Run) -> list[Record]:
    """Points with a rate, ascending."""
    own = [record for record in disk.timed(run, PROBE) if record.point.rate_per_s]
    return sorted(own, key=lambda record: record.point.rate_per_s or 0)


def _service(record: Record) -> Channel | None:
    """The time that the disk itself had a request."""
    return next((channel for channel in record.channels if channel.name == "service"), None)


def _due_per_s(record: Record) -> float | None:
    """How many were due in a second as the moments fell: of few random ones that is not the nominal rate."""
    return positive(found(record), "offered_per_s")


def kept_up(record: Record) -> bool:
    """Whether as many were done as were due."""
    reached = positive(found(record), "achieved_per_s")
    due = _due_per_s(record) or record.point.rate_per_s or 0
    return reached is None or reached >= _KEEPS_UP * due


def lines(own: Sequence[Record]) -> dict[str, list[Spot]]:
    """Median and p99 of the response, and of the service within it."""
    out: dict[str, list[Spot]] = {}
    for name, (which, inner) in _SERIES.items():
        for record in own:
            spot = (_inner if inner else disk.latency)(record, float(record.point.rate_per_s or 1), which)
            if spot is not None:
                out.setdefault(name, []).append(spot)
    return out


def _inner(record: Record, rate: float, which: str) -> Spot | None:
    channel = _service(record)
    value = quantile(channel, which)
    if channel is None or not drawable(value):
        return None
    ends = [value, *filter(drawable, channel.summary.intervals.get(which, ()))]
    return Spot(rate, value, min(ends), max(ends), channel.samples, is_disturbed(record))


def _plane(own: Sequence[Record]) -> Plane:
    return Plane(
        x=Axis("requests due in a second, at random moments", "per_s", 1.4, 1.4),
        y=Axis("one request", "ns"),
        lines=lines(own),
        hover="{x} a second: {y}",
        about="Line chart, both axes logarithmic: time of one request against the rate of requests.",
        said="{y} at {x} a second",
        height=300,
    )


def _table(own: Sequence[Record]) -> Table:
    return table_of(
        own,
        ("asked for in a second", "count", lambda record: record.point.rate_per_s),
        ("due, at random moments", "count", _due_per_s),
        ("done in a second", "count", lambda record: positive(found(record), "achieved_per_s")),
        ("response, median", "ns", lambda record: record.value),
        ("response, p99", "ns", lambda record: quantile(record, "p99")),
        ("service, median", "ns", lambda record: quantile(_service(record), "p50")),
        ("service, p99", "ns", lambda record: quantile(_service(record), "p99")),
        ("requests", "count", lambda record: record.samples),
        ("kept up", "text", lambda record: yes_or_no(kept_up(record))),
    )


def prose(run: Run) -> Iterator[str]:
    """The slowest rate against the fastest that was kept up with."""
    own = [record for record in disk.sound(run, records(run)) if kept_up(record)]
    if not own:
        return
    first, last = own[0], own[-1]
    rate, time = format_count(first.point.rate_per_s), format_ns(first.value)
    further = f", at {format_count(last.point.rate_per_s)} in {format_ns(last.value)}"
    yield f"At {rate} a second a request is answered in {time}{further if last is not first else ''}."
    quickest = min(own, key=lambda record: record.value or math.inf)
    if first.interval and quickest.interval and first.interval[0] > _SLEPT * quickest.interval[1]:
        yield "At low rates it answers later, as when a disk, its host or a CPU sleeps between requests."


def _evidence(run: Run) -> Iterator[str]:
    own = records(run)
    late = [f"{format_count(record.point.rate_per_s)} a second" for record in own if not kept_up(record)]
    if late:
        yield f"Did not keep up: {', '.join(late)}; at that rate, waiting keeps growing."
    alone = next((rate for record in own if (rate := found(record).number("one_at_a_time_per_s"))), None)
    if alone is not None:
        yield (
            f"One at a time, in a short trial, the disk read {format_count(round(alone))} blocks a "
            "second; higher rates are not tried."
        )
    yield from disk.evidence(run, PROBE)
    yield from disk.commands(own[len(own) // 2 : len(own) // 2 + 1])


TOPIC: Final = Topic(
    Chart(
        id="storage_rate",
        title="How long does a request wait at a given rate?",
        caption="Requests arrive at random moments (Poisson), whether or not earlier ones are done. "
        "Response: from when a request was due, waiting included. Service: from when it was "
        "submitted.",
        probe=PROBE,
        measured=records,
        picture=_plane,
        table=_table,
        several=CurvesOfSeveral(
            lambda run: lines(records(run)),
            Axis("requests due in a second", "per_s", 1.4, 1.4),
            Axis("one request", "ns"),
            "requests a second",
        ),
    ),
    prose=prose,
    listings=lambda run: disk.device_times(run, PROBE),
    notices=lambda run: disk.notices(run, PROBE),
    evidence=_evidence,
)
