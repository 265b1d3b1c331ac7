"""HTTP requests at a fixed rate."""

from __future__ import annotations

from .tools import JSON, KIB, per_op, rng, spread_out


def http_records() -> list[JSON]:
    """Two rates; while the faster one was measured the server stood still for half a second of ten."""
    return [at_rate(100, 1000, stall_s=0.0), at_rate(1000, 10_000, stall_s=0.5)]


def at_rate(rate: int, count: int, *, stall_s: float) -> JSON:
    service = spread_out(70_000.0, count, sigma=0.2)
    response = []
    # Whoever was due in the stall waits for its end: the first were sent, the others wait for a connection.
    begin, end = count // 2, count // 2 + int(stall_s * rate)
    for place, value in enumerate(service):
        waited = (end - place) / rate * 1e9 if begin <= place < end else 0.0
        if begin <= place < begin + min(32, end - begin):
            service[place] = value + waited
        response.append(value + max(waited, 0.0) + rng.uniform(0, 3_000))
    record = per_op(
        "network.http",
        {"transport": "tcp", "rate_per_s": rate, "file_bytes": KIB},
        response,
        name="every request was answered",
        findings={
            "server": "latlab's own",
            "connections": 32,
            "connections_opened": 32,
            "offered_per_s": rate * 1.002,
            "achieved_per_s": rate * 1.001,
            "held_back": max(end - begin - 32, 0),
            "late": 3,
        },
    )
    inner = per_op("network.http", {}, service, name="-")
    channel = {name: inner[name] for name in ("samples", "summary", "histogram")}
    return {**record, "channels": [{"name": "service", **channel}], "engine": "http/1.1"}
