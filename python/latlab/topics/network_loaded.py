"""Round trips while other connections carry all that they can: how often one takes how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_rate
from latlab.view.evidence import evidence
from latlab.view.plot import Stair, Stairs, yes_or_no
from latlab.view.points import is_disturbed, median_and_ends, place_in, quantiles, with_figures
from latlab.view.prose import sentence
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, Topic

PROBE: Final = "network.loaded"
#: What lies between the two sides, by the point's `path`; what was asked for first.
_PATHS: Final = {"emulated": "emulated path", "loopback": "loopback"}
_MOST_STEPS: Final = 110
_MOST_LINES: Final = 4


def records(run: Run) -> list[Record]:
    """By path, idle first."""
    own = [r for r in with_figures(run, PROBE, "per_op") if r.point.path in _PATHS]
    return sorted(own, key=lambda r: (place_in(_PATHS, r.point.path), r.point.streams or 0))


def _path(record: Record) -> str:
    return _PATHS[record.point.path or ""]


def _load(record: Record) -> str:
    """What else was carried, in words."""
    streams = record.point.streams or 0
    return "idle" if streams == 0 else f"{streams} stream{'' if streams == 1 else 's'}"


def _stairs(run: Run) -> Stairs | None:
    """One panel a path: what moves to the right is slower."""
    known = [record for record in records(run) if record.histogram is not None]
    own = [r for path in _PATHS for r in [r for r in known if r.point.path == path][:_MOST_LINES]]
    if not own:
        return None
    return Stairs(
        [Stair(_path(r), _load(r), f"{_path(r)}, {_load(r)}", r) for r in own],
        x="a round trip takes at least",
        y="share of round trips",
        about="Staircase charts, both axes logarithmic: share of round trips that take at least a time,"
        " without and with load.",
        most=_MOST_STEPS,
    )


def _a_minute(record: Record) -> int | None:
    trips = positive(found(record), "round_trips_per_minute")
    return round(trips) if trips else None


def prose(run: Run) -> Iterator[str]:
    """One for each path, what was asked for first."""
    for path, name in _PATHS.items():
        own = [record for record in records(run) if record.point.path == path]
        idle = next((r for r in own if not r.point.streams), None)
        full = max((r for r in own if r.point.streams), key=lambda r: r.value or 0.0, default=None)
        if idle is None or full is None or not idle.value or not full.value:
            continue
        carried = positive(found(full), "load_bytes_per_s")
        meanwhile = f" while {_load(full)} carry {format_rate(carried)}" if carried else ""
        minute = _a_minute(full)
        trips = f": by their mean {format_count(minute)} round trips a minute" if minute else ""
        yield (
            f"Over the {name} a round trip takes {idle.stated()} idle and {full.stated()}{meanwhile},"
            f" {full.value / idle.value:.1f} times as long{trips}."
        )


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "Loaded against idle",
        records(run),
        ("path", "text", _path),
        ("streams", "count", lambda record: record.point.streams),
        ("they carry", "bytes_per_s", lambda record: positive(found(record), "load_bytes_per_s")),
        *median_and_ends("ns"),
        *quantiles("p99", "max"),
        ("round trips a minute", "count", _a_minute),
        ("round trips", "count", lambda record: record.samples),
        ("disturbed", "text", lambda record: yes_or_no(is_disturbed(record))),
    )


def _evidence(run: Run) -> Iterator[str]:
    flags = [flag for record in records(run) for flag in record.flags if flag.startswith("emulated")]
    yield from dict.fromkeys(map(sentence, flags))
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="network_loaded",
        title="How much longer does an answer take while the path is full?",
        caption="Messages of 64 B by TCP, there and back, one after the other, without and with "
        "streams to the same host. The shift to the right of idle is waiting behind these streams.",
        probe=PROBE,
        measured=_stairs,
        table=lambda stairs: stairs.table("a round trip takes"),
    ),
    shown=records,
    prose=prose,
    listings=_listings,
    evidence=_evidence,
)
