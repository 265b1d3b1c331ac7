"""Peers for sockets: sockperf."""

from __future__ import annotations

import sys

from peers.lines import Kind, Line, median

PORT = 28111


def sockperf_ns(text: str) -> float:
    """The line `---> percentile 50.000 =   15.343`: one round trip, us, where the whole was asked for."""
    for line in text.splitlines():
        if "percentile 50.000 =" in line:
            return float(line.rsplit("=", maxsplit=1)[-1]) * 1e3
    sys.exit("sockperf printed no median")


def sockperf(client: int, server: int, *more: str) -> list[str]:
    """A server and, once it listens, its client; neither is left."""
    own = " ".join(["--tcp", "-i", "127.0.0.1", "-p", str(PORT), "--msg-size", "64", *more])
    serving = " ".join(["--tcp", "-i", "127.0.0.1", "-p", str(PORT), *more])
    script = (
        f"taskset -c {server} sockperf sr {serving} >/dev/null 2>&1 & server=$!; sleep 0.3; "
        f"taskset -c {client} sockperf pp {own} --full-rtt -t 2; "
        "status=$?; kill $server; wait $server; exit $status"
    )
    return ["sh", "-c", script]


def roundtrip_lines(cpu: int) -> list[Line]:
    """A message of 64 bytes by TCP there and back, median with median, in each placement."""
    rows = [
        ("TCP, one CPU", "same-cpu", cpu, ()),
        ("TCP, two CPUs, both sleep", "across-blocking", cpu + 1, ()),
        ("TCP, two CPUs, both poll", "across-polling", cpu + 1, ("--nonblocked",)),
    ]
    return [
        Line(
            name,
            sockperf(cpu, server, *more),
            sockperf_ns,
            {"transport": "tcp", "message_bytes": 64, "placement": placement},
            median,
            0.05,
        )
        for name, placement, server, more in rows
    ]


KINDS: dict[str, Kind] = {
    "roundtrip": Kind(
        "sockperf", "network.roundtrip", roundtrip_lines, "us", cpus=lambda cpu: f"{cpu},{cpu + 1}"
    )
}
