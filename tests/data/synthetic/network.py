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
