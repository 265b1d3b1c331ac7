"""Round trips through sockets."""

from __future__ import annotations

from .tools import JSON, KIB, derived, held, per_op, rounded, spread_out

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
        findings={"route": ROUTES[path], "goodput_bytes_per_s": rounded(many * size / time * 1e9)},
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
        "time_ns": rounded(time),
        "interval": [rounded(time * 0.99), rounded(time * 1.01)],
        "phases_ns": phases,
        "goodput_bytes_per_s": rounded(size / time * 1e9),
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
        rates = [record["findings"]["goodput_bytes_per_s"] for record in records]
        plateau = max(rates)
        knee = next(number for number, rate in zip(many, rates, strict=True) if rate >= 0.8 * plateau)
        knees.append(
            {
                "path": path,
                "file_bytes": size,
                "connections": "new",
                "protocol": "http/1.1",
                "knee": knee,
                "interval": [knee, knee],
                "plateau_bytes_per_s": plateau,
                "beyond": False,
                "foretold": rounded(0.8 * plateau / rates[0]),
                "foretold_interval": [rounded(0.75 * plateau / rates[0]), rounded(0.85 * plateau / rates[0])],
                "factor": 1.2,
                "verified": True,
                "curve": [
                    {
                        "concurrency": number,
                        "goodput_bytes_per_s": rate,
                        "goodput_interval": [rounded(rate * 0.98), rounded(rate * 1.02)],
                        "time_ns": record["summary"]["p50"],
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
                        "sequential_ns": rounded(alone),
                        "pool_ns": rounded(alone / times),
                        "speed_up": rounded(times),
                        "interval": [rounded(times * 0.98), rounded(times * 1.02)] if workers == 6 else None,
                        "ceiling": rounded(at_most),
                        "order": "A B B A",
                    }
                )
    rows: JSON = {
        "paths": [
            {"path": path, "route": route, "throughput_bytes_per_s": LINK if path == "emulated" else 2e9}
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
                "one_ns": rounded(one_ns("emulated", 1024 * KIB, "new")),
                "many_ns": rounded(10 * one_ns("emulated", size, "new")),
                "pool_ns": rounded(2 * one_ns("emulated", size, "new")),
                "many_over_one": 6.2,
                "pool_over_one": 1.3,
            }
        ],
        "python": [{"engine": "python-httpx", "not_measured": "httpx is not installed"}],
    }
    return [*out, derived("network.transfer", rows)]
