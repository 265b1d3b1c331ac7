"""Files over a network: round trips, windows that grow, bytes over the rate, and the software's part.

The laws are those of `network.transfer`: a new connection takes a round trip, TLS 1.3 another, a request one
more; the server sends ten segments, and twice as many each round trip until the path is full (RFC 6928, RFC
5681). None of the numbers is fitted.
"""

from __future__ import annotations

import math
from typing import Final

from latlab.predict import figures
from latlab.predict.cases import Case, Known, NotGivenError, missing
from latlab.predict.job import Job
from latlab.predict.model import Part, Spread

PROBE: Final = "network.transfer"
#: What TCP sends before the first answer, bytes: ten segments of 1,448.
_FIRST_WINDOW: Final = 14_480
#: Standard deviation of the logarithm of a distance and a rate that somebody names.
_NAMED: Final = Spread(0.05, 30)
_CASES: Final = (("with a new connection for each", "new"), ("with kept connections", "kept"))


def transfers(job: Job, known: Known) -> list[Case]:
    """Files that are fetched, and requests of a byte.

    Raises:
        NotGivenError: the path is not described.
        NotMeasuredError: the software's part is not in the run.
    """
    options = job.options
    if options.rtt_s is None:
        raise NotGivenError(
            "the distance to the server is not given", "latlab predict … --rtt 20ms (ping says it)"
        )
    if job.kind == "transfers" and options.rate is None:
        raise NotGivenError(
            "the rate of the path is not given, and the server's speed is unknown",
            "latlab predict … --rate 200 (Mbit/s)",
        )
    cases = []
    for when, connections in _CASES:
        if options.connections in {None, connections}:
            cases.append(
                Case.of(_parts(job, known, connections), "" if options.connections is not None else when)
            )
    return cases


def _parts(job: Job, known: Known, connections: str) -> list[Part]:
    options, rate = job.options, job.options.rate or math.inf
    work = software(known, connections, job.size)
    # Those that begin together wait for their answers together, and then share the path.
    turns, share = math.ceil(job.count / options.at_once), rate / min(options.at_once, job.count)
    kept, rtt_s = connections == "kept", options.rtt_s or 0.0
    waiting = waited(turns, job.size, rtt_s, share, kept=kept, secured=options.https)
    path = Part("waiting for the path", waiting, work.source, _NAMED, resource="path")
    return [path, work.times(job.count / options.at_once)]


def waited(turns: int, size: int, rtt_s: float, rate: float, *, kept: bool, secured: bool = False) -> float:
    """Seconds that one worker waits for so many files of a size, one after the other.

    Args:
        turns: How many.
        size: Bytes of each.
        rtt_s: Round trip.
        rate: Bytes a second of the path.
        kept: They share a connection, whose window stays as wide as it was.
        secured: A new connection agrees on keys first.
    """
    full = rate * rtt_s
    opened = (2 if secured else 1) * rtt_s
    total, window = 0.0, float(_FIRST_WINDOW)
    for turn in range(turns):
        if not kept:
            window = float(_FIRST_WINDOW)
        own, window = _one(size, rtt_s, rate, window, full)
        total += own + (opened if not kept or turn == 0 else 0.0)
        settled = not kept or window >= min(full, size)
        if settled:
            rest, _ = _one(size, rtt_s, rate, window if kept else float(_FIRST_WINDOW), full)
            return total + (turns - turn - 1) * (rest + (0.0 if kept else opened))
    return total


def _one(size: int, rtt_s: float, rate: float, window: float, full: float) -> tuple[float, float]:
    """Seconds from a request to its last byte, and the window that it leaves."""
    seconds, sent = rtt_s, 0.0
    while sent + window < size and window < full:
        seconds += rtt_s
        sent += window
        window *= 2
    return seconds + (size - sent) / rate, window


def software(known: Known, connections: str, size: int) -> Part:
    """What client and server compute for one transfer: the loopback's, of the nearest measured size."""
    own = [
        record
        for record in known.run.select(
            PROBE,
            path="loopback",
            connections=connections,
            concurrency=1,
            protocol="http/1.1",
            engine="latlab",
            operation="transfers",
        ).measured()
        if record.point.file_bytes and record.summary is not None and record.summary.mean
    ]
    if not own:
        missing("transfers", PROBE)
    record = min(own, key=lambda each: abs(math.log((each.point.file_bytes or 1) / max(size, 1))))
    part = figures.of_record(known.run, record, "work of client and server", "cpu")
    more = size / (record.point.file_bytes or 1)
    return part.times(more) if more > 1 else part
