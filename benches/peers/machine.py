"""Peers for memory, switches and Python: multichase, likwid-bench, perf, timeit and others."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers.lines import Kind, Line, mean, median


def last_number(text: str) -> float:
    """Multichase prints one number, ns a load."""
    return float(text.rsplit(maxsplit=1)[-1])


def likwid_rate(text: str) -> float:
    """likwid-bench's line `MByte/s:`, decimal megabytes."""
    for line in text.splitlines():
        if line.startswith("MByte/s:"):
            return float(line.split()[1]) * 1e6
    sys.exit("likwid-bench printed no MByte/s")


def perf_ns(text: str) -> float:
    """The line `2.051120 usecs/op` of perf bench: one round trip, ns."""
    for line in text.splitlines():
        if line.strip().endswith("usecs/op"):
            return float(line.split()[0]) * 1e3
    sys.exit("perf bench printed no usecs/op")


def overall_rate(record: dict[str, Any]) -> float:
    """All bytes over all time, which is the harmonic mean of windows of equal size."""
    return float(statistics.harmonic_mean(record["values"]))


def timeit_ns(operations: int) -> Callable[[str], float]:
    """The median of timeit's repetitions, ns an operation, where a statement holds so many."""

    def read(text: str) -> float:
        raw = [line for line in text.splitlines() if line.startswith("raw times: ")]
        # `raw times: 12.5 usec, 12.6 usec`: what all loops of a repetition took.
        times = [float(part.split()[0]) for part in raw[0].removeprefix("raw times: ").split(",")]
        loops = next(int(line.split()[0]) for line in text.splitlines() if "loops, best of" in line)
        return statistics.median(times) / loops / operations

    return read


def latency_lines(cpu: int) -> list[Line]:
    """Dependent loads against multichase: same page mode, same order, mean with mean (`-a`)."""
    chase = ["taskset", "-c", str(cpu), "multichase", "-a", "-s", "64", "-n", "3", "-p", "4096"]
    sizes = [
        ("16 KiB", "16k", "16k", 16 << 10, "page-local", 0.03),
        ("256 KiB", "256k", "256k", 256 << 10, "page-local", 0.03),
    ]
    sizes += [("256 MiB, page-local", "256m", "256k", 256 << 20, "page-local", 0.10)]
    sizes += [("256 MiB, random", "256m", "256m", 256 << 20, "random", 0.10)]
    return [
        Line(
            name,
            [*chase, "-m", size, "-T", locality],
            last_number,
            {"working_set_bytes": size_bytes, "pages": "4k", "order": order},
            mean,
            tolerance,
        )
        for name, size, locality, size_bytes, order, tolerance in sizes
    ]


def bandwidth_lines(cpu: int) -> list[Line]:
    """One thread against likwid-bench with the widest kernels of this CPU."""
    wide = (
        "avx512"
        if "avx512f" in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
        else "avx"
    )
    bench = ["taskset", "-c", str(cpu), "likwid-bench"]
    # What stands for memory in the standard profile where the last cache has at most 64 MiB.
    ram, ram_bytes = "268435kB", 256 << 20
    rows = [
        ("read 24 KiB", f"load_{wide}", "24kB", 8_000_000, 24 << 10, "read"),
        ("read 512 KiB", f"load_{wide}", "512kB", 170_000, 512 << 10, "read"),
        ("read 256 MiB", f"load_{wide}", ram, 40, ram_bytes, "read"),
        ("copy 256 MiB", f"copy_{wide}", ram, 40, ram_bytes, "copy"),
        ("triad 256 MiB", f"stream_{wide}", ram, 40, ram_bytes, "triad"),
    ]
    return [
        Line(
            name,
            [*bench, "-t", kernel, "-i", str(rounds), "-w", f"S0:{size}:1"],
            likwid_rate,
            {"working_set_bytes": size_bytes, "operation": operation, "threads": 1},
            overall_rate,
            0.05,
            more_is_better=True,
        )
        for name, kernel, size, rounds, size_bytes, operation in rows
    ]


def switch_lines(cpu: int) -> list[Line]:
    """Round trips of a token by pipes on one CPU against perf bench sched pipe: mean with mean."""
    pipe = ["taskset", "-c", str(cpu), "perf", "bench", "sched", "pipe", "-l", "100000"]
    rows = [("pipe, processes", "processes", pipe), ("pipe, threads", "threads", [*pipe, "-T"])]
    return [
        Line(
            name,
            command,
            perf_ns,
            {"operation": "pipe", "placement": "same-cpu", "between": between},
            mean,
            0.15,
        )
        for name, between, command in rows
    ]


RING = """
class Node:
    def __init__(self, number): self.number = number; self.following = self
ring = [Node(number) for number in range(61)]
for each in ring: each.following = ring[(each.number + 1) % 61]
node = ring[0]
"""
FUNCTION = "def given(value): return value\nt = 0"


def python_lines(cpu: int) -> list[Line]:
    """Operations of Python against timeit in the same interpreter: same statements, median with median."""
    bare = [
        "taskset",
        "-c",
        str(cpu),
        sys.executable,
        "-I",
        "-S",
        "-m",
        "timeit",
        "-p",
        "-v",
        "-u",
        "nsec",
        "-r",
        "25",
    ]
    letters = "abcdefghijkmopqr"
    calls = [f"{into} = given({of})" for into, of in zip(letters, "t" + letters[:-1], strict=True)]
    # timeit switches the collector off; programs do not. It runs the set-up again for each repetition, and
    # the new class or function is specialised for anew, a tenth of the figure where repetitions take 0.1 ms:
    # they take 5 ms. Those are seldom free of other processes, windows of 0.1 ms mostly are: CPU time (-p).
    rows = [
        ("attribute", RING, "; ".join(["node = node.following"] * 16), 16, 60_000, None),
        ("call", FUNCTION, "; ".join(calls), 16, 17_000, None),
        ("list of 1,000 by comprehension", "turn = 0", "[turn for _ in range(1000)]", 1, 400, 1_000),
        ("list of 1,000 by multiplication", "turn = 0", "[turn] * 1000", 1, 7_000, 1_000),
    ]
    operations = ["attribute", "call", "list-comprehension", "list-multiply"]
    return [
        Line(
            name,
            [*bare, "-n", str(loops), "-s", f"import gc; gc.enable()\n{setup}", statement],
            timeit_ns(count),
            {"operation": operation} | ({"elements": elements} if elements else {}),
            median,
            0.05,
        )
        for (name, setup, statement, count, loops, elements), operation in zip(rows, operations, strict=True)
    ]


def round_trip_ns(text: str) -> float:
    """core-to-core-latency's CSV of one pair of CPUs: the one number is half a round trip, ns."""
    (one_way,) = [cell for line in text.splitlines() for cell in line.split(",") if cell.strip()]
    return 2 * float(one_way)


def cores_lines(cpu: int) -> list[Line]:
    """A line to another core and back by compare-and-swap: mean with mean."""
    cores = f"{cpu},{cpu + 1}"
    return [
        Line(
            "compare-and-swap, round trip",
            ["core-to-core-latency", "1000", "300", "-b", "1", "-c", cores, "--csv"],
            round_trip_ns,
            {"operation": "compare-and-swap", "from_cpu": cpu, "to_cpu": cpu + 1},
            mean,
            0.10,
        )
    ]


def chase_ns(text: str) -> float:
    """The column ChaseNS of multiload's table."""
    names, values = ([cell.strip() for cell in line.split(",")] for line in text.splitlines()[-2:])
    return float(values[names.index("ChaseNS")])


def loaded_lines(_cpu: int) -> list[Line]:
    """The two ends of latency under load against multiload: every fourth line, 512 pages at a time."""
    threads = len(os.sched_getaffinity(0))
    load = ["multiload", "-a", "-n", "3", "-s", "256", "-T", "2m", "-m", "256M", "-c", "chaseload"]
    load += ["-l", "stream-sum", "-t"]
    saturated = {"threads": threads - 1, "read_percent": 100, "delay_steps": 0}
    return [
        Line("idle", [*load, "1"], chase_ns, {"threads": 0}, mean, 0.10),
        Line("saturated by readers", [*load, str(threads)], chase_ns, saturated, mean, 0.10),
    ]


KINDS: dict[str, Kind] = {
    "latency": Kind("multichase", "memory.load.dependent", latency_lines),
    "bandwidth": Kind("likwid-bench", "memory.bandwidth", bandwidth_lines, "GB/s"),
    "switch": Kind("perf", "kernel.context_switch", switch_lines),
    "python": Kind("timeit", "python.object", python_lines),
    "cores": Kind(
        "core-to-core-latency", "memory.core_to_core", cores_lines, cpus=lambda cpu: f"{cpu},{cpu + 1}"
    ),
    "loaded": Kind("multiload", "memory.loaded", loaded_lines, cpus=lambda _: None),
}
