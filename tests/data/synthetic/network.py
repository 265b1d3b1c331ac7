"""Round trips through sockets, streams, connections and transfers."""

from __future__ import annotations

from .tools import JSON, KIB, batch_mean, derived, estimate, held, per_op, rounded, spread_out

TRANSPORTS = {
    # On one CPU, across CPUs asleep, across CPUs polling, ns.
    "tcp": (15_300.0, 70_300.0, 9_500.0),
    "udp": (13_100.0, 66_000.0, 7_900.0),
    "unix": (6_400.0, 58_800.0, 3_700.0),
}
PLACEMENTS = ("same-cpu", "across-blocking", "across-polling")
# ns a byte, there and back.
PER_BYTE = 0.4


def network_records() -> list[JSON]:
    out: list[JSON] = []
    rows = []
    for transport, costs in TRANSPORTS.items():
        sizes = (64,) if transport != "tcp" else (64, KIB, 16 * KIB, 64 * KIB)
        medians = []
        for size in sizes:
            for placement, cost in zip(PLACEMENTS, costs, strict=True):
                out.append(trip(transport, size, placement, cost + PER_BYTE * size))
                if size == sizes[0]:
                    medians.append(out[-1]["summary"]["p50"])
        same, blocking, polling = medians
        rows.append(
            {
                "transport": transport,
                "message_bytes": 64,
                "same_cpu_ns": same,
                "across_blocking_ns": blocking,
                "across_polling_ns": polling,
                "wake_up_ns": rounded(blocking - polling),
                "wake_up_share": rounded((blocking - polling) / blocking),
                "most_over_least": rounded(blocking / polling),
            }
        )
    return [*out, derived("network.roundtrip", {"transports": rows})]


def trip(transport: str, size: int, placement: str, cost: float) -> JSON:
    count = 4000 if size == 64 else 600
    record = per_op(
        "network.roundtrip",
        {"transport": transport, "message_bytes": size, "placement": placement},
        spread_out(cost, count, sigma=0.12),
        name="every answer was that of its request",
        findings={"address": None if transport == "unix" else "127.0.0.1", "from_cpu": 3, "to_cpu": 0},
    )
    record["checks"] += held("counted on both sides", f"{count} messages sent and answered")
    return {**record, "engine": "socket"}


PATH = "emulated: 20 ms round trip by latlab's delay line between two namespaces (measured: 20.102 ms)"
RTT_NS, LEAST_RTT_NS = 20_000_000, 20_102_000
ROUTES: dict[str, JSON] = {
    "emulated": {
        "kind": "delay-line",
        "rtt_ns": RTT_NS,
        "least_rtt_ns": LEAST_RTT_NS,
        "rate_bit_per_s": 200_000_000,
        "why_not_better": ["netem: the kernel's emulator (netem): No such file or directory (os error 2)"],
    },
    "loopback": {"kind": "loopback"},
}
# ns of a step, or of one transfer's software.
STEPS = {"resolve": 18_000.0, "tcp": 32_000.0, "tls": 390_000.0}
# Bytes a second that the path carries, and round trips of a new connection by size.
LINK = 24e6
ROUND_TRIPS = {KIB: 2, 100 * KIB: 5, 1024 * KIB: 8}


def over(path: str, record: JSON) -> JSON:
    return {**record, "flags": [PATH]} if path == "emulated" else record


def connect_records() -> list[JSON]:
    out, rows = [], []
    for path, route in ROUTES.items():
        medians: JSON = {}
        for step, cost in STEPS.items():
            if step == "resolve" and path == "emulated":
                continue
            own = cost + (LEAST_RTT_NS if path == "emulated" else 0)
            record = per_op(
                "network.connect",
                {"operation": step, "path": path},
                [value + own - cost for value in spread_out(cost, 200, sigma=0.15)],
                name="counted by the server",
                findings={"route": route, "least_ns": rounded(own * 0.99)},
            )
            medians[step] = record["summary"]["p50"]
            out.append(over(path, record))
        rows.append(
            {
                "path": path,
                "route": route,
                "resolve_ns": medians.get("resolve"),
                "tcp_ns": medians["tcp"],
                "tls_ns": medians["tls"],
                "secured_ns": rounded(medians["tcp"] + medians["tls"]),
                "least_tcp_ns": rounded(STEPS["tcp"] + LEAST_RTT_NS),
                "least_over_asked": 1.0059 if path == "emulated" else None,
            }
        )
    return [*out, derived("network.connect", {"paths": rows})]


def one_ns(path: str, size: int, connections: str) -> float:
    software = 150_000.0 + size * 0.4
    if path == "loopback":
        return software
    trips = ROUND_TRIPS[size] if connections == "new" else 1
    return software + trips * LEAST_RTT_NS + (size / LINK * 1e9 if connections == "kept" else 0.0)


def transfer(path: str, size: int, many: int, connections: str) -> JSON:
    alone = one_ns(path, size, connections)
    most = LINK if path == "emulated" else 600e6
    time = max(alone, many * size / most * 1e9)
    record = per_op(
        "network.transfer",
        {
            "operation": "transfers",
            "path": path,
            "file_bytes": size,
            "concurrency": many,
            "connections": connections,
            "protocol": "http/1.1",
            "engine": "latlab",
        },
        spread_out(time, 60, sigma=0.02),
        name="every body compared",
        findings={"route": ROUTES[path], "goodput_bytes_per_s": estimate(many * size / time * 1e9, 1.02)},
    )
    return {**over(path, record), "engine": "latlab"}


def single(path: str, size: int, connections: str) -> JSON:
    time = one_ns(path, size, connections)
    phases = {"request": 10_000.0, "first-byte": 80_000.0}
    if path == "emulated":
        phases["first-byte"] += LEAST_RTT_NS
    if connections == "new":
        phases["connect"] = 30_000.0 + (LEAST_RTT_NS if path == "emulated" else 0)
    phases["last-byte"] = rounded(max(time - sum(phases.values()), 2_000.0))
    emulated = path == "emulated"
    return {
        "path": path,
        "file_bytes": size,
        "connections": connections,
        "protocol": "http/1.1",
        "time_ns": estimate(time, 1.01),
        "phases_ns": {name: estimate(ns, 1.02) for name, ns in phases.items()},
        "goodput_bytes_per_s": estimate(size / time * 1e9, 1.01),
        "verdict": ("round-trip-bound" if size == KIB else "slow-start-bound")
        if emulated
        else "server-bound",
        "model": {
            "round_trips": ROUND_TRIPS[size] if connections == "new" else 1,
            "slow_start": ROUND_TRIPS[size] - 2 if connections == "new" else 0,
            "rtt_ns": LEAST_RTT_NS,
            "link_ns": 0.0,
            "floor_ns": 150_000.0,
            "time_ns": rounded(time * 0.97),
            "over_measured": 0.97,
        }
        if emulated
        else None,
    }


def transfer_records() -> list[JSON]:
    size = 100 * KIB
    many = (1, 2, 4, 8, 16, 24, 32, 64)
    out, singles, knees, sets = [], [], [], []
    for path in ROUTES:
        singles += [single(path, own, how) for own in ROUND_TRIPS for how in ("new", "kept")]
        records = [transfer(path, size, number, "new") for number in many]
        out += records
        rates = [record["findings"]["goodput_bytes_per_s"]["value"] for record in records]
        plateau = max(rates)
        knee = next(number for number, rate in zip(many, rates, strict=True) if rate >= 0.8 * plateau)
        knees.append(
            {
                "path": path,
                "file_bytes": size,
                "connections": "new",
                "protocol": "http/1.1",
                "knee": estimate(knee, 1.0),
                "below": max((number for number in many if number < knee), default=None),
                "one_step": True,
                "plateau_bytes_per_s": estimate(plateau, 1.02),
                "at_least": None,
                "not_found": None,
                "foretold": estimate(0.8 * plateau / rates[0], 1.06),
                "factor": 1.2,
                "verified": True,
                "curve": [
                    {
                        "concurrency": number,
                        "goodput_bytes_per_s": estimate(rate, 1.02),
                        "time_ns": estimate(record["summary"]["p50"], 1.02),
                        "p99_ns": record["summary"]["p99"],
                        "verdict": "slow-start-bound" if number < knee else "link-bound",
                    }
                    for number, rate, record in zip(many, rates, records, strict=True)
                ],
            }
        )
        for connections in ("new", "kept"):
            for workers in (2, 4, 6, 8, 10) if connections == "new" else (6,):
                alone = 10 * one_ns(path, size, connections)
                at_most = 10 / -(-10 // workers)
                times = at_most * 0.97 if path == "emulated" else 1.6
                sets.append(
                    {
                        "path": path,
                        "file_bytes": size,
                        "connections": connections,
                        "engine": "latlab",
                        "workers": workers,
                        "files": 10,
                        "sequential_ns": estimate(alone, 1.01),
                        "pool_ns": estimate(alone / times, 1.02),
                        "speed_up": estimate(times, 1.02 if workers == 6 else None),
                        "ceiling": rounded(at_most),
                        "order": "A B B A",
                    }
                )
    rows: JSON = {
        "paths": [
            {
                "path": path,
                "route": route,
                "congestion_control": "cubic",
                "throughput_bytes_per_s": estimate(LINK if path == "emulated" else 2e9, 1.05),
            }
            for path, route in ROUTES.items()
        ],
        "singles": singles,
        "fits": [{"path": "emulated", "rtt_ns": 20.4e6, "floor_ns": 0.3e6, "residuals": []}],
        "knees": knees,
        "ten_files": sets,
        "one_or_many": [
            {
                "path": "emulated",
                "connections": "new",
                "total_bytes": 10 * size,
                "one_ns": estimate(one_ns("emulated", 1024 * KIB, "new"), 1.02),
                "many_ns": estimate(10 * one_ns("emulated", size, "new"), 1.02),
                "pool_ns": estimate(2 * one_ns("emulated", size, "new"), 1.02),
                "many_over_one": estimate(6.2, 1.03),
                "pool_over_one": estimate(1.3, 1.03),
            }
        ],
        "python": [{"engine": "python-httpx", "not_measured": "httpx is not installed"}],
    }
    return [*out, derived("network.transfer", rows)]


# Bytes a second: transport, message, streams, placement.
STREAMS = (
    ("tcp", 128 * KIB, 1, "anywhere", 2.3e9),
    ("tcp", 128 * KIB, 4, "anywhere", 5.6e9),
    ("tcp", 128 * KIB, 1, "same-cpu", 2.35e9),
    ("tcp", 128 * KIB, 1, "across-blocking", 1.2e9),
    ("tcp", 128 * KIB, 2, "anywhere", 3.9e9),
    ("tcp", KIB, 1, "anywhere", 0.7e9),
    ("tcp", 16 * KIB, 1, "anywhere", 2.0e9),
    ("unix", 128 * KIB, 1, "anywhere", 5.9e9),
)


def stream_records() -> list[JSON]:
    out = [stream(*row) for row in STREAMS]
    rates = {
        row[1:4]: rate["summary"]["p50"] for row, rate in zip(STREAMS, out, strict=True) if row[0] == "tcp"
    }
    usual = {streams: rates[128 * KIB, streams, "anywhere"] for streams in (1, 2, 4)}
    return [
        *out,
        derived(
            "network.throughput",
            {
                "message_bytes": 128 * KIB,
                "streams": [
                    {"streams": streams, "bytes_per_s": rate, "over_one": rounded(rate / usual[1])}
                    for streams, rate in usual.items()
                ],
                "same_cpu_bytes_per_s": rates[128 * KIB, 1, "same-cpu"],
                "across_bytes_per_s": rates[128 * KIB, 1, "across-blocking"],
                "unix_bytes_per_s": out[-1]["summary"]["p50"],
            },
        ),
    ]


def stream(transport: str, size: int, streams: int, placement: str, rate: float) -> JSON:
    tcp = {
        "rtt_ns": 82_000.0,
        "rtt_ns_least_most": [61_000.0, 104_000.0],
        "min_rtt_ns": 2_000.0,
        "congestion_window_segments": 16.0,
        "congestion_window_least_most": [10.0, 31.0],
        "segment_bytes": 65_483.0,
        "most_retransmits_of_a_connection": 0,
        "delivery_bytes_per_s": 3.4e9,
        "receiver_limited_share": 0.75,
        "buffer_limited_share": 0.0,
    }
    # Bytes of a window, for its length.
    record = batch_mean(
        "network.throughput",
        {
            "transport": transport,
            "message_bytes": size,
            "streams": streams,
            "placement": placement,
            "working_set_bytes": round(rate * 4e-3 / 64),
        },
        rate,
        unit="bytes_per_s",
        spread=0.04,
        ops=1,
        engine="socket",
        checks=held("both ends of every stream say the same", f"{6 * streams} of {6 * streams} streams"),
        findings={
            "address": None if transport == "unix" else "127.0.0.1",
            "stream_bytes_per_s": [rounded(rate / streams)] * streams,
            "least_over_most": 1.0 if streams > 1 else None,
            "tcp": tcp if transport == "tcp" else None,
        },
    )
    del record["point"]["working_set_bytes"]
    return record


# Round trips beside streams, ns, by path and streams; what they carry, bytes a second.
LOADED = {
    "emulated": {0: (20.2e6, 0.0), 1: (96e6, 6.0e6), 4: (118e6, 6.0e6)},
    "loopback": {0: (70.3e3, 0.0), 1: (96e3, 2.1e9), 4: (160e3, 4.9e9)},
}
LABEL = (
    "emulated: 20 ms round trip, 50 Mbit/s by latlab's delay line between two namespaces"
    " (measured: 20.171 ms)"
)


def loaded_records() -> list[JSON]:
    out: list[JSON] = []
    paths = []
    for path, own in LOADED.items():
        records = {streams: loaded(path, streams, *figures) for streams, figures in own.items()}
        out += records.values()
        idle = records[0]["summary"]["p50"]
        paths.append(
            {
                "path": path,
                "idle_p50_ns": idle,
                "idle_round_trips_per_minute": records[0]["findings"]["round_trips_per_minute"],
                "loaded": [
                    {
                        "streams": streams,
                        "p50_ns": record["summary"]["p50"],
                        "over_idle": rounded(record["summary"]["p50"] / idle),
                        "added_ns": rounded(record["summary"]["p50"] - idle),
                        "load_bytes_per_s": record["findings"]["load_bytes_per_s"],
                        "round_trips_per_minute": record["findings"]["round_trips_per_minute"],
                    }
                    for streams, record in records.items()
                    if streams
                ],
            }
        )
    return [*out, derived("network.loaded", {"paths": paths})]


def loaded(path: str, streams: int, cost: float, load: float) -> JSON:
    record = per_op(
        "network.loaded",
        {
            "placement": "across-blocking",
            "path": path,
            "transport": "tcp",
            "message_bytes": 64,
            "streams": streams,
        },
        spread_out(cost, 600, sigma=0.05 if streams == 0 else 0.2),
        name="every answer was that of its request, counted on both sides",
        findings={
            "address": "192.0.2.2" if path == "emulated" else "127.0.0.1",
            "round_trips_per_minute": rounded(60e9 / cost),
            "load_bytes_per_s": load,
            "route": {"kind": "delay-line" if path == "emulated" else "loopback"},
        },
    )
    return {**record, "engine": "socket", **({"flags": [LABEL]} if path == "emulated" else {})}
