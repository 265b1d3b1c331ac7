"""What a connection costs before it carries anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.transfers import ALL_PATHS as PATHS
from latlab.view.evidence import evidence
from latlab.view.points import median_and_ends, place_in, quantile, quantiles, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Topic

PROBE: Final = "network.connect"
_STEPS: Final = {"resolve": "name", "tcp": "TCP connection", "tls": "TLS handshake"}


def steps(run: Run) -> list[Record]:
    """By path, in the order in which they are taken."""
    own = [
        r for r in with_figures(run, PROBE, "per_op") if r.point.path in PATHS and r.point.operation in _STEPS
    ]
    return sorted(own, key=lambda r: (place_in(PATHS, r.point.path), place_in(_STEPS, r.point.operation)))


def _step(record: Record) -> str:
    step = _STEPS[record.point.operation or ""]
    local = record.point.operation == "resolve" and record.point.path != "url"
    return f"{step} (localhost)" if local else step


def prose(run: Run) -> Iterator[str]:
    """Of two paths at most."""
    of_tcp = [r for r in steps(run) if r.point.operation == "tcp" and r.value is not None]
    by_path = {record.point.path or "": record for record in of_tcp}
    handshakes = {record.point.path: record for record in steps(run) if record.point.operation == "tls"}
    for path, tcp in list(by_path.items())[:2]:
        where = (
            f"Over the {PATHS[path]} a connection" if path != "url" else "To the server of --url a connection"
        )
        tls = handshakes.get(path)
        more = f"; a TLS handshake takes {tls.stated()} more" if tls and tls.value else ""
        yield f"{where} is open after {tcp.stated()}{more}."


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "Steps of a new connection",
        steps(run),
        ("path", "text", lambda record: PATHS[record.point.path or ""]),
        ("step", "text", _step),
        ("fastest", "ns", lambda record: quantile(record, "min")),
        *median_and_ends("ns"),
        *quantiles("p99", "max"),
        ("connections", "count", lambda record: record.samples),
    )


def _evidence(run: Run) -> Iterator[str]:
    flags = (flag for record in steps(run) for flag in record.flags if flag.startswith("emulated: "))
    yield from dict.fromkeys(flags)
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    id="network_connect",
    title="What does setting up a connection cost?",
    probes=(PROBE,),
    shown=steps,
    prose=prose,
    listings=_listings,
    evidence=_evidence,
)
