"""Peers for sockets and HTTP: sockperf, iperf3, wrk2, oha."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from peers.lines import Kind, Line, mean, median, p99

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
        f"taskset -c {server} sockperf sr {serving} >/dev/null 2>&1 & server=$!; sleep 1; "
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


HTTP_PORT = 28112
URL = f"http://127.0.0.1:{HTTP_PORT}/bytes/1024"
RATE = 2_000
STALLED_AFTER_S, STALL_S = 5, 2
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def stalled(command: list[str]) -> list[str]:
    """A command, and besides a server that stands still for two seconds while it runs; neither is left."""
    latlab = shlex.quote(str(Path(sys.executable).with_name("latlab")))
    script = (
        f"{latlab} serve --bind 127.0.0.1:{HTTP_PORT} >/dev/null 2>&1 & server=$!; sleep 1; "
        f"(sleep {STALLED_AFTER_S}; kill -STOP $server; sleep {STALL_S}; kill -CONT $server) & stall=$!; "
        f"{shlex.join(command)}; status=$?; "
        "kill $stall 2>/dev/null; kill -CONT $server; kill $server; wait; exit $status"
    )
    return ["sh", "-c", script]


def stalled_latlab(command: list[str]) -> list[str]:
    """As many requests a second as the peers send, for as long."""
    more = ["--profile", "thorough", "--url", URL, "--requests", str(RATE), "--budget", "14"]
    return stalled([*command, *more])


def wrk2_ns(text: str) -> float:
    """The line `99.000%    1.91s` of the corrected distribution."""
    for line in text.splitlines():
        if line.split()[:1] == ["99.000%"]:
            value = line.split()[1]
            unit = next(unit for unit in ("us", "ms", "s") if value.endswith(unit))
            return float(value.removesuffix(unit)) * _SECONDS[unit] * 1e9
    sys.exit("wrk2 printed no p99")


def oha_ns(text: str) -> float:
    """`latencyPercentiles.p99` of its JSON, s."""
    return float(json.loads(text)["latencyPercentiles"]["p99"]) * 1e9


def http_lines(_cpu: int) -> list[Line]:
    """The p99 of 2,000 requests a second for ten seconds, in two of which the server stands still."""
    peers = {
        "wrk2": (["wrk2", "-t1", "-c32", "-d10s", f"-R{RATE}", "--latency", URL], wrk2_ns),
        "oha --latency-correction": (
            f"oha --no-tui --output-format json --latency-correction -q {RATE} -c 32 -z 10s {URL}".split(),
            oha_ns,
        ),
    }
    point = {"transport": "tcp", "rate_per_s": RATE}
    return [
        Line(f"p99, the server stopped for 2 s, {name}", stalled(command), read, point, p99, 0.05)
        for name, (command, read) in peers.items()
    ]


def iperf3_rate(text: str) -> float:
    """Bytes a second that the receiver counted, of all streams together."""
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 8


def iperf3(streams: int, place: str = "") -> list[str]:
    """A server for one test and, once it listens, its client; neither is left."""
    script = (
        f"{place} iperf3 -s -1 -p {PORT} >/dev/null 2>&1 & server=$!; sleep 1; "
        f"{place} iperf3 -c 127.0.0.1 -p {PORT} -t 2 -P {streams} -J; "
        "status=$?; kill $server 2>/dev/null; wait $server; exit $status"
    )
    return ["sh", "-c", script]


def throughput_lines(cpu: int) -> list[Line]:
    """As many bytes as go in messages of 128 KiB, mean with mean; threads anywhere, and on one CPU."""
    rows = [
        ("TCP, 1 stream", 1, "anywhere", ""),
        ("TCP, 4 streams", 4, "anywhere", ""),
        ("TCP, 4 streams, latlab's each on its CPU", 4, "same-cpu", ""),
        ("TCP, 1 stream, one CPU", 1, "same-cpu", f"taskset -c {cpu}"),
    ]
    return [
        Line(
            name,
            iperf3(streams, place),
            iperf3_rate,
            {"transport": "tcp", "message_bytes": 128 << 10, "streams": streams, "placement": placement},
            mean,
            0.05,
            more_is_better=True,
        )
        for name, streams, placement, place in rows
    ]


KINDS: dict[str, Kind] = {
    "throughput": Kind("iperf3", "network.throughput", throughput_lines, "GB/s", cpus=lambda _: None),
    "http": Kind(
        "wrk2 or oha",
        "network.http",
        http_lines,
        "ms",
        cpus=lambda _: None,
        needs=("wrk2", "oha"),
        around=stalled_latlab,
    ),
    "roundtrip": Kind(
        "sockperf", "network.roundtrip", roundtrip_lines, "µs", cpus=lambda cpu: f"{cpu},{cpu + 1}"
    ),
}
