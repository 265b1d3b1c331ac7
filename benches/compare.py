"""Compares latlab's figures with the established tools', interleaved; prints the tables of METHODOLOGY.md.

    .venv/bin/python benches/compare.py latency --pairs 9 --cpu 1
    .venv/bin/python benches/compare.py bandwidth --pairs 9 --cpu 1
    .venv/bin/python benches/compare.py switch --pairs 9 --cpu 1
    .venv/bin/python benches/compare.py python --pairs 9 --cpu 1
    .venv/bin/python benches/compare.py cores --pairs 9 --cpu 2
    .venv/bin/python benches/compare.py loaded --pairs 9

A pair is: the peer, latlab, the peer again. The peer against itself (A/A) is the noise. A line holds when the
median of the ratios is within the tolerance, or within the A/A range where that is wider. The peers must be
on the PATH. Nothing here is a pass mark: tests must not depend on timing.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LATLAB = Path(sys.executable).with_name("latlab")


@dataclass(frozen=True)
class Line:
    """One figure that both tools give."""

    name: str
    """What the table calls it."""
    peer: list[str]
    """The peer's command."""
    read: Callable[[str], float]
    """The peer's output -> its figure."""
    point: dict[str, Any]
    """The point of latlab's record."""
    own: Callable[[dict[str, Any]], float]
    """Latlab's record -> the same statistic in the same unit."""
    tolerance: float
    """Share by which the median ratio may be off."""


def output(command: list[str]) -> str:
    """Runs a command and returns what it prints; its failure ends the comparison with its own words."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


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


def mean(record: dict[str, Any]) -> float:
    """Mean of the window means: the mean of all loads, as every window has as many."""
    return float(record["summary"]["mean"])


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


def median(record: dict[str, Any]) -> float:
    """Median of the window means."""
    return float(record["summary"]["p50"])


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
    rows = [
        ("read 24 KiB", f"load_{wide}", "24kB", 8_000_000, 24 << 10, "read"),
        ("read 512 KiB", f"load_{wide}", "512kB", 170_000, 512 << 10, "read"),
        ("read 1 GiB", f"load_{wide}", "1GB", 10, 1 << 30, "read"),
        ("copy 1 GiB", f"copy_{wide}", "1GB", 10, 1 << 30, "copy"),
        ("triad 1 GiB", f"stream_{wide}", "1GB", 10, 1 << 30, "triad"),
    ]
    return [
        Line(
            name,
            [*bench, "-t", kernel, "-i", str(rounds), "-w", f"S0:{size}:1"],
            likwid_rate,
            {"working_set_bytes": size_bytes, "operation": operation, "threads": 1},
            overall_rate,
            0.05,
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


@dataclass(frozen=True)
class Kind:
    """One table."""

    peer: str
    """The peer's program."""
    probe: str
    """Latlab's probe."""
    lines: Callable[[int], list[Line]]
    """Its lines, for a CPU."""
    unit: str = "ns"
    cpus: Callable[[int], str | None] = str
    """The CPUs that latlab may use, for that CPU; None for all."""


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


def own_records(probe: str, cpus: str | None, profile: str) -> list[dict[str, Any]]:
    """One run of latlab on the same CPUs."""
    command = [str(LATLAB), "measure", "--only", probe, "--profile", profile]
    command += ["--json", "--no-report", "--quiet"]
    command += ["--cpu", cpus] if cpus else []
    records: list[dict[str, Any]] = json.loads(output(command))["records"]
    return records


def find(records: list[dict[str, Any]], point: dict[str, Any]) -> dict[str, Any] | None:
    """The measured record whose point has these fields, no draw and no pairing."""
    for record in records:
        own = record["point"]
        plain = "nodes" not in own and not own.get("draw")
        if plain and all(own.get(field) == value for field, value in point.items()) and record.get("summary"):
            return record
    return None


def main() -> None:
    """Runs the pairs and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--line", default="", help="only the lines whose name contains this")
    arguments = parser.parse_args()
    kind = KINDS[arguments.kind]
    peer, unit = kind.peer, kind.unit
    if peer != "timeit" and not shutil.which(peer):
        sys.exit(f"{peer} is not on the PATH: nothing to compare with")
    lines = [line for line in kind.lines(arguments.cpu) if arguments.line in line.name]
    scale = 1e9 if unit == "GB/s" else 1.0
    first: dict[str, list[float]] = {line.name: [] for line in lines}
    own: dict[str, list[float]] = {line.name: [] for line in lines}
    second: dict[str, list[float]] = {line.name: [] for line in lines}
    for pair in range(arguments.pairs):
        before = [line.read(output(line.peer)) for line in lines]
        records = own_records(kind.probe, kind.cpus(arguments.cpu), arguments.profile)
        after = [line.read(output(line.peer)) for line in lines]
        for line, a, b in zip(lines, before, after, strict=True):
            record = find(records, line.point)
            if record is None:
                print(f"pair {pair + 1}: latlab has no {line.name}", file=sys.stderr)
                continue
            first[line.name].append(a / scale)
            own[line.name].append(line.own(record) / scale)
            second[line.name].append(b / scale)
        print(f"pair {pair + 1} of {arguments.pairs}", file=sys.stderr)

    print(
        f"| figure | {peer}, {unit} | latlab, {unit} | latlab / {peer}: median (range) "
        "| A/A: median (range) | tolerance | holds |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for line in lines:
        if not own[line.name]:
            continue
        base = [(a + b) / 2 for a, b in zip(first[line.name], second[line.name], strict=True)]
        ratios = sorted(mine / theirs for mine, theirs in zip(own[line.name], base, strict=True))
        same = sorted(b / a for a, b in zip(first[line.name], second[line.name], strict=True))
        middle = statistics.median(ratios)
        wide = max(line.tolerance, same[-1] - 1, 1 - same[0])
        # More bandwidth than the peer is no fault; latency must agree both ways.
        holds = middle >= 1 - wide if unit == "GB/s" else abs(middle - 1) <= wide
        print(
            f"| {line.name} | {statistics.median(base):.4g} | {statistics.median(own[line.name]):.4g} "
            f"| {middle:.3f} ({ratios[0]:.3f}-{ratios[-1]:.3f}) "
            f"| {statistics.median(same):.3f} ({same[0]:.3f}-{same[-1]:.3f}) "
            f"| {line.tolerance:.0%} | {'yes' if holds else 'NO'} |"
        )
    print("\nCommands:")
    for line in lines:
        print(f"- {line.name}: `{shlex.join(line.peer)}`")


if __name__ == "__main__":
    main()
