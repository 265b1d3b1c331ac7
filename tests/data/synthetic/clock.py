"""What it costs to read each clock."""

from __future__ import annotations

from .tools import JSON, QUANTUM_NS, batch_mean


def clock_records() -> list[JSON]:
    costs = {
        "tsc": (6.6, QUANTUM_NS),
        "CLOCK_MONOTONIC": (19.4, 10.0),
        "CLOCK_MONOTONIC_RAW": (19.3, 10.0),
        "CLOCK_MONOTONIC_COARSE": (4.1, 4_000_000.0),
        "CLOCK_REALTIME": (19.5, 10.0),
        "CLOCK_BOOTTIME": (19.6, 10.0),
        "CLOCK_PROCESS_CPUTIME_ID": (173.0, 1.0),
        "CLOCK_THREAD_CPUTIME_ID": (166.0, 1.0),
        "python.time.time": (31.2, 238.4),
        "python.time.perf_counter_ns": (36.8, 10.0),
    }
    return [
        batch_mean("clock.read", {"clock": name}, cost, ops=10_000, findings={"resolution_ns": resolution})
        for name, (cost, resolution) in costs.items()
    ]
