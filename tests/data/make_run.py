"""Writes `run-small.latlab.jsonl`: a synthetic run with every probe and figures as a real machine has them.

The machine that it pretends to be (`machine.json`): 4 CPUs of a virtual machine, L1d 48 KiB, L2 1 MiB, a
shared L3 of 32 MiB of which 10 to 14 MiB are effective, huge pages that are 4 KiB in hardware, a clock that
steps by 10 ns. Nothing is random but what the seed makes so: running it twice gives the same bytes.

    python tests/data/make_run.py [FILE]
"""

from __future__ import annotations

import base64
import json
import math
import random
import statistics
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
BLOCKS, WINDOWS = 6, 5
QUANTUM_NS = 10.01
JSON = dict[str, Any]

rng = random.Random(20261121)
clock_ns = 2.0e9


def rounded(value: float) -> float:
    """Five significant digits: the file stays small and is still finer than its noise."""
    return float(f"{value:.5g}")


def encode_histogram(picoseconds: list[int]) -> JSON:
    """HdrHistogram V2, deflated, base64: two significant digits from 1 ps to 2^50 ps."""
    counts: dict[int, int] = {}
    for value in picoseconds:
        shift = max(value.bit_length() - 8, 0)
        index = shift * 128 + (value >> shift)
        counts[index] = counts.get(index, 0) + 1

    def varint(number: int) -> bytes:
        number = (number << 1) ^ (number >> 63)
        out = bytearray()
        for _ in range(8):
            if number < 0x80:
                out.append(number)
                return bytes(out)
            out.append((number & 0x7F) | 0x80)
            number >>= 7
        out.append(number & 0xFF)
        return bytes(out)

    payload = bytearray()
    at = 0
    for index in sorted(counts):
        if index > at:
            zeros = index - at
            payload += varint(-zeros) if zeros > 1 else varint(0)
        payload += varint(counts[index])
        at = index + 1
    body = struct.pack(">iiiiqqd", 0x1C849313, len(payload), 0, 2, 1, 1 << 50, 1.0) + bytes(payload)
    packed = zlib.compress(body, 9)
    data = base64.b64encode(struct.pack(">ii", 0x1C849314, len(packed)) + packed).decode()
    return {"encoding": "hdr-v2-deflate-base64", "unit": "ps", "data": data}


def advance(ns: float) -> float:
    """Moves the pretended clock and says where it stood."""
    global clock_ns  # noqa: PLW0603 - one clock
    before = clock_ns
    clock_ns += ns
    return rounded(before)


def observed(*, switches: int = 0) -> JSON:
    return {
        "voluntary_switches": 0,
        "involuntary_switches": switches,
        "minor_faults": 0,
        "major_faults": 0,
        "run_queue_delay_ns": switches * 41_000,
        "steal_ns": 0,
        "throttled_ns": None,
    }


def quantile(ordered: list[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def batch_mean(
    probe: str,
    point: JSON,
    centre: float,
    *,
    unit: str = "ns",
    spread: float = 0.01,
    ops: int = 4096,
    engine: str | None = None,
    work: JSON | None = None,
    checks: list[JSON] | None = None,
    flags: list[str] | None = None,
    findings: JSON | None = None,
    disturbed: bool = False,
) -> JSON:
    """A record of window means around `centre`; rates vary downwards, times upwards."""
    direction = 1.0 if unit == "ns" else -1.0
    values: list[float] = []
    blocks: list[JSON] = []
    for number in range(BLOCKS):
        level = centre * (1 + rng.gauss(0, spread / 2))
        bad = disturbed and number == 2
        window = [
            rounded(level * (1 + direction * abs(rng.gauss(0, spread))) * (2.2 if bad else 1.0))
            for _ in range(WINDOWS)
        ]
        duration = (
            WINDOWS * ops * level if unit == "ns" else WINDOWS * 1e9 * point["working_set_bytes"] * 64 / level
        )
        block = {
            "at_ns": advance(duration + 8e6),
            "duration_ns": rounded(duration),
            "samples": WINDOWS,
            "p50": rounded(statistics.median(window)),
        }
        blocks.append({**block, "disturbed": True} if bad else block)
        values += window
    good = sorted(
        value
        for block, start in zip(blocks, range(0, len(values), WINDOWS), strict=True)
        if not block.get("disturbed")
        for value in values[start : start + WINDOWS]
    )
    medians = [block["p50"] for block in blocks if not block.get("disturbed")]
    refused = {
        name: f"{len(good)} samples, needs {needs:,}"
        for name, needs in (("p99", 368), ("p999", 3688), ("p9999", 36888))
    }
    summary = {
        "min": good[0],
        "p50": rounded(quantile(good, 0.5)),
        "p90": rounded(quantile(good, 0.9)),
        "p99": None,
        "p999": None,
        "p9999": None,
        "max": good[-1],
        "mean": rounded(statistics.fmean(good)),
        "std": rounded(statistics.stdev(good)),
        "intervals": {"p50": [min(medians), max(medians)]},
        "interval_methods": {"p50": "between_blocks"},
        "refused": refused,
        "between_blocks": [min(medians), max(medians)],
    }
    record: JSON = {
        "line": "record",
        "probe": probe,
        "method": 1,
        "point": point,
        "unit": unit,
        "kind": "batch_mean",
        "ops_per_sample": ops,
        "samples": len(values),
        "resolution_ns": rounded(QUANTUM_NS / ops),
        "summary": summary,
        "values": values,
        "blocks": blocks,
        "work": work or {"ops": len(values) * ops, "bytes": 0},
        "observed": observed(switches=1 if disturbed else 0),
        "stopped_by": "narrow_interval" if spread < 0.02 else "planned",
    }
    if engine:
        record["engine"] = engine
    if checks:
        record["checks"] = checks
    if flags or disturbed:
        record["flags"] = (flags or []) + (["disturbed"] if disturbed else [])
    if findings:
        record["findings"] = findings
    if unit == "ns":
        record["overhead"] = {
            "region_ns": 22.4,
            "share": rounded(22.4 / (ops * centre)) if centre else 0.0,
            "subtracted": True,
        }
    return record


def absent(
    probe: str, point: JSON, kind: str, text: str, *, unit: str = "ns", stopped_by: str = "not_reached"
) -> JSON:
    return {
        "line": "record",
        "probe": probe,
        "method": 1,
        "point": point,
        "unit": unit,
        "kind": "absent",
        "ops_per_sample": 0,
        "samples": 0,
        "work": {"ops": 0, "bytes": 0},
        "observed": {},
        "stopped_by": stopped_by,
        "error": {"kind": kind, "text": text},
    }


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


def latency_of(size: float, *, order: str) -> float:
    """Mixture of levels by hit rate: the knees are soft, as physical colouring and sharing make them."""

    def missed(capacity: float, softness: float) -> float:
        return 1 / (1 + math.exp(-math.log(size / capacity) / softness))

    l2, l3, ram = 3.72, 12.6, 113.0
    if order == "random":
        l2 += 0.1 * missed(0.4 * MIB, 0.2)
        l3 += 2.5
        ram += 68 * missed(24 * MIB, 0.6)
    return (
        1.06
        + (l2 - 1.06) * missed(50 * KIB, 0.035)
        + (l3 - l2) * missed(0.95 * MIB, 0.22)
        + (ram - l3) * missed(14.5 * MIB, 0.16)
    )


def sizes() -> list[int]:
    coarse = {1 << power for power in range(10, 31)} | {3 << power for power in range(10, 29)}
    knees = {round(centre * 2 ** (step / 8) / 4096) * 4096 for centre in (48 * KIB,) for step in range(-4, 5)}
    knees |= {
        round(centre * 2 ** (step / 8) / 65536) * 65536 for centre in (MIB, 14 * MIB) for step in range(-6, 7)
    }
    return sorted(coarse | knees)


CYCLE = {"name": "single cycle", "ok": True, "detail": "every line visited once in one cycle"}


def chase_records() -> list[JSON]:
    out = []
    for pages in ("4k", "huge"):
        for order in ("page-local", "random"):
            if (pages, order) == ("huge", "page-local"):
                continue
            for size in sizes():
                centre = latency_of(size, order=order) * (
                    0.985 if pages == "huge" and size > 4 * MIB else 1.0
                )
                checks = [CYCLE]
                if pages == "huge":
                    checks.append(
                        {
                            "name": "huge pages obtained",
                            "ok": True,
                            "detail": "AnonHugePages 1048576 kB of 1048576 kB",
                        }
                    )
                near = MIB * 0.7 <= size <= MIB * 1.5
                for draw in range(3 if near and order == "random" else 1):
                    wobble = 1 + (rng.uniform(-0.08, 0.12) if near else 0)
                    out.append(
                        batch_mean(
                            "memory.load.dependent",
                            {"working_set_bytes": size, "pages": pages, "order": order, "draw": draw},
                            centre * wobble,
                            spread=0.05 if 8 * MIB < size < 32 * MIB else 0.008,
                            ops=4096 if size < 16 * MIB else 512,
                            checks=checks,
                            disturbed=size == 12 * MIB and order == "page-local",
                        )
                    )
    steps = {
        64: 0,
        96: 0.1,
        112: 1.7,
        512: 1.7,
        1024: 1.5,
        2048: 2.0,
        4096: 4.5,
        5120: 9.2,
        16384: 21.0,
        65536: 155.0,
    }
    for pages in ("4k", "huge"):
        for nodes, step in steps.items():
            packed = latency_of(nodes * 64, order="random")
            for order in ("packed", "spread"):
                size = nodes * (64 if order == "packed" else 4096)
                cost = packed + (step * (0.9 if pages == "huge" else 1.0) if order == "spread" else 0.0)
                point = {"working_set_bytes": size, "pages": pages, "order": order, "nodes": nodes}
                out.append(batch_mean("memory.load.dependent", point, cost, checks=[CYCLE]))
    out.append(levels_record())
    out.append(
        absent(
            "memory.load.dependent",
            {"working_set_bytes": 2 * GIB, "pages": "4k", "order": "random", "draw": 0},
            "not_reached",
            "the time for this probe was used up: `latlab measure --profile thorough` gives it more",
        )
    )
    return out


def levels_record() -> JSON:
    core_ghz = 3.89

    def level(
        name: str,
        ns: float,
        lo: float,
        hi: float,
        bracket: list[int] | None,
        end: int | None,
        reported: int | None,
        note: str,
    ) -> JSON:
        return {
            "name": name,
            "latency_ns": ns,
            "latency_lo_ns": lo,
            "latency_hi_ns": hi,
            "cycles": rounded(ns * core_ghz),
            "bracket_bytes": bracket,
            "upper_end_bytes": end,
            "reported_bytes": reported,
            "validated": name != "L3",
            "confidence": {"L1": 0.99, "L2": 0.97, "L3": 0.81, "RAM": 0.99}[name],
            "note": note,
        }

    findings = {
        "levels": [
            level("L1", 1.063, 1.058, 1.071, [45056, 53248], 49152, 49152, ""),
            level(
                "L2",
                3.74,
                3.70,
                3.83,
                [524288, 1048576],
                1048576,
                1048576,
                "begins to miss at 512 KiB: physical pages do not spread evenly over its sets",
            ),
            level(
                "L3",
                12.7,
                11.2,
                14.9,
                [10 * MIB, 14 * MIB],
                14 * MIB,
                32 * MIB,
                "shared with CPUs that this guest does not see: 10 to 14 of 32 MiB were effective",
            ),
            level("RAM", 113.4, 110.9, 117.2, None, None, None, ""),
        ],
        "tlb": [{"pages": 96, "step_ns": 1.7}, {"pages": 4096, "step_ns": 7.5}],
        "effective_page_bytes": 4096,
        "core_ghz": core_ghz,
        "curve_pages": "4k",
        "ram": {"page_local_ns": 113.4, "random_ns": 182.3, "huge_random_ns": 179.6},
    }
    record = absent("memory.load.dependent", {}, "", "", stopped_by="planned")
    del record["error"]
    return {**record, "kind": "derived", "findings": findings}


def poke_durations(size: int, operation: str, count: int) -> list[float]:
    """Single pokes, ns: quantised body, DRAM tail, timer ticks every 4 ms, a rare long stall."""
    base = {0: 0.0, 1000: 1.1, 1_000_000: 5.0, 1_000_000_000: 186.0}[size]
    out = []
    for _ in range(count):
        body = base * rng.lognormvariate(0, 0.18) if base else 0.0
        value = 22.4 + body + (0.6 if operation == "read-write" and size else 0.0) + rng.uniform(-5, 5)
        chance = rng.random()
        if chance < 1 / 16_700:
            value += 10_000 * rng.paretovariate(1.9)
        elif size == 1_000_000_000 and chance < 0.004:
            value += rng.uniform(250, 600)
        out.append(max(round(value / QUANTUM_NS), 1) * QUANTUM_NS)
    return out


def poke_records() -> list[JSON]:
    out = []
    for size in (0, 1000, 1_000_000, 1_000_000_000):
        for operation in ("read", "read-write"):
            point = {"working_set_bytes": size, "operation": operation}
            out.append(poke_record(point, poke_durations(size, operation, 100_000)))
            mean = {0: 0.32, 1000: 1.12, 1_000_000: 5.1, 1_000_000_000: 186.4}[size]
            out.append(
                batch_mean(
                    "memory.poke",
                    point,
                    mean + (0.4 if operation == "read-write" else 0.0),
                    ops=1000,
                    spread=0.015,
                )
            )
    out += [
        absent(
            "memory.poke",
            {"working_set_bytes": 10_000_000_000, "operation": operation},
            "unsupported",
            "needs 10 GB, a quarter of what this process may use is 5.5 GiB: give it 40 GB to lift this",
            stopped_by="unsupported",
        )
        for operation in ("read", "read-write")
    ]
    return out


def poke_record(point: JSON, durations: list[float]) -> JSON:
    threshold = 10_000.0
    per_block = len(durations) // BLOCKS
    tail, blocks = [], []
    for number in range(BLOCKS):
        part = durations[number * per_block : (number + 1) * per_block if number < BLOCKS - 1 else None]
        start = advance(0.0)
        at = start
        for value in part:
            at += value + 30
            if value > threshold:
                tail.append({"at_ns": round(at, 1), "value": rounded(value)})
        advance(at - start + 5e6)
        blocks.append(
            {
                "at_ns": start,
                "duration_ns": rounded(at - start),
                "samples": len(part),
                "p50": rounded(statistics.median(part)),
            }
        )
    ordered = sorted(durations)
    pick = {
        name: rounded(quantile(ordered, q))
        for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999))
    }
    halves = {
        name: 1.96 * math.sqrt(q * (1 - q) / len(ordered))
        for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999))
    }
    centre = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    intervals = {
        name: [
            rounded(quantile(ordered, centre[name] - half)),
            rounded(quantile(ordered, centre[name] + half)),
        ]
        for name, half in halves.items()
    }
    medians = [block["p50"] for block in blocks]
    zeros = sum(value <= QUANTUM_NS * 2 for value in durations)
    return {
        "line": "record",
        "probe": "memory.poke",
        "method": 1,
        "point": point,
        "unit": "ns",
        "kind": "per_op",
        "ops_per_sample": 1,
        "samples": len(durations),
        "resolution_ns": QUANTUM_NS,
        "summary": {
            "min": rounded(ordered[0]),
            **pick,
            "max": rounded(ordered[-1]),
            "mean": rounded(statistics.fmean(durations)),
            "std": rounded(statistics.stdev(durations)),
            "intervals": intervals,
            "interval_methods": dict.fromkeys(intervals, "order_statistics"),
            "refused": {},
            "between_blocks": [min(medians), max(medians)],
        },
        "histogram": encode_histogram([round(value * 1000) for value in durations]),
        "tail": tail,
        "tail_threshold": threshold,
        "blocks": blocks,
        "work": {"ops": len(durations), "bytes": len(durations) * (8 if point["working_set_bytes"] else 0)},
        "checks": [
            {"name": "checksum", "ok": True, "detail": "the sum of what was read is what was written"}
        ],
        "observed": observed(switches=2),
        "stopped_by": "planned",
        "overhead": {"region_ns": 22.4, "share": rounded(22.4 / pick["p50"]), "subtracted": False},
        "findings": {"fraction_of_zeros": rounded(zeros / len(durations)), "std_over_mean": None},
    }


def bandwidth_records() -> list[JSON]:
    conventions = {
        "read": "each byte read counts once",
        "write": "each byte written counts once; the line is read first",
        "write-nt": "each byte written counts once; caches are bypassed",
        "copy": "each byte counts twice: read and written",
        "triad": "each byte counts once for each of three arrays",
    }
    levels = {
        "read": (468e9, 194e9, 100e9, 39e9),
        "write": (233e9, 122e9, 62e9, 19.4e9),
        "write-nt": (29e9, 29e9, 29e9, 30e9),
        "copy": (402e9, 171e9, 88e9, 37e9),
        "triad": (440e9, 166e9, 84e9, 38e9),
    }
    out = []
    for operation, (l1, l2, l3, ram) in levels.items():
        for threads in (1, 2, 4):
            for size in (24 * KIB, 192 * KIB, 512 * KIB, 2 * MIB, 6 * MIB, 64 * MIB, GIB):
                one = l1 if size <= 32 * KIB else l2 if size <= 768 * KIB else l3 if size <= 8 * MIB else ram
                scale = {1: 1.0, 2: 1.93, 4: 3.5}[threads]
                if size > 8 * MIB:
                    scale = {1: 1.0, 2: 1.9, 4: 2.3}[threads]
                rate = one * scale
                out.append(
                    batch_mean(
                        "memory.bandwidth",
                        {
                            "working_set_bytes": size,
                            "threads": threads,
                            "operation": operation,
                            "isa": "avx512",
                        },
                        rate,
                        unit="bytes_per_s",
                        spread=0.01,
                        ops=64,
                        engine="avx512",
                        work={"ops": 64 * 30, "bytes": 64 * 30 * size, "convention": conventions[operation]},
                        checks=[
                            {
                                "name": "checksum",
                                "ok": True,
                                "detail": "every line held what was written to it",
                            }
                        ],
                        findings={
                            "per_thread": [
                                rounded(rate / threads * (1 + rng.gauss(0, 0.01))) for _ in range(threads)
                            ]
                        },
                    )
                )
    return out


def stride_records() -> list[JSON]:
    out = []
    for size in (16 * KIB, 512 * KIB, 6 * MIB, 256 * MIB):
        flat = {16 * KIB: 0.13, 512 * KIB: 0.27, 6 * MIB: 0.33, 256 * MIB: 0.42}[size]
        rows = [
            ("sequential", 8, flat),
            *(("strided", stride, flat * stride / 8 * 0.9) for stride in (64, 256, 4096)),
            ("random", 64, latency_of(size, order="random") * 0.35),
        ]
        for order, stride, ns in rows:
            cost = min(ns, latency_of(size, order="random") * 0.6)
            out.append(
                batch_mean(
                    "memory.stride",
                    {"working_set_bytes": size, "order": order, "stride_bytes": stride},
                    cost,
                    ops=8192,
                    findings={"per_byte_ns": rounded(cost / 8)},
                )
            )
    return out


def machine() -> JSON:
    described: JSON = json.loads((HERE / "machine.json").read_text(encoding="utf-8"))
    return described


def header() -> JSON:
    plan = [
        ("clock.read", 10, 1.0, 0, 1),
        ("memory.load.dependent", 210, 11.0, GIB, 1),
        ("memory.poke", 10, 4.0, 1_000_000_000, 1),
        ("memory.bandwidth", 105, 3.5, 3 * GIB, 4),
        ("memory.stride", 20, 1.5, 256 * MIB, 1),
    ]
    return {
        "line": "header",
        "schema": "latlab.run/1.0",
        "id": "20261121T003012Z-k3f9qa",
        "started": "2026-11-21T00:30:12.418+00:00",
        "tool": {
            "version": "0.1.0",
            "commit": "0123456789abcdef0123456789abcdef01234567",
            "build": "rustc 1.95.0, x86_64-unknown-linux-gnu, release",
        },
        "machine": machine(),
        "clock": {
            "kind": "tsc",
            "fences": "lfence; rdtsc; lfence before, rdtscp; lfence after",
            "ticks_per_ns": 2.596238,
            "rate_error_ppm": 0.8,
            "quantum_ns": QUANTUM_NS,
            "overhead_ns": {"mean": 22.4, "p50": 20.02, "p99": 30.03, "min": 10.01, "samples": 200_000},
            "invariant": True,
            "why_not_hardware": None,
            "backwards": 0,
        },
        "settings": {
            "profile": "standard",
            "only": [],
            "skip": [],
            "dir": None,
            "budget_s": None,
            "max_bytes": None,
            "cpus": None,
            "seed": 42,
            "gentle": False,
        },
        "plan": [
            {
                "id": probe,
                "points": points,
                "seconds": seconds,
                "memory_bytes": memory,
                "written_bytes": 0,
                "cpus": cpus,
            }
            for probe, points, seconds, memory, cpus in plan
        ],
        "doctor": [
            {
                "id": "clock-quantum",
                "severity": "caution",
                "title": "the clock steps by 10 ns here",
                "effect": "single cache accesses cannot be timed: they are timed in batches",
                "remedy": None,
            },
            {
                "id": "virtual-machine",
                "severity": "note",
                "title": "this is a virtual machine (kvm)",
                "effect": "hidden neighbours share L3 and RAM: their figures are a range",
                "remedy": None,
            },
        ],
    }


def lines() -> list[JSON]:
    records = clock_records() + chase_records() + poke_records() + bandwidth_records() + stride_records()
    kinds: dict[str, int] = {}
    for record in records:
        kinds[record["kind"]] = kinds.get(record["kind"], 0) + 1
    footer = {
        "line": "footer",
        "ended": "2026-11-21T00:30:34.002+00:00",
        "stopped_by": "completed",
        "totals": {
            "records": kinds,
            "seconds": 21.584,
            "written_bytes": 0,
            "disturbed_blocks": 1,
            "worker_restarts": 0,
        },
    }
    return [header(), *records, footer]


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "run-small.latlab.jsonl"
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines())
    target.write_text(text, encoding="utf-8")
    sys.stderr.write(f"{target}: {len(text):,} characters\n")


if __name__ == "__main__":
    main()
