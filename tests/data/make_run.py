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

# Beside this file, which is run as a program: its folder is on the path then.
import storage_records  # type: ignore[import-not-found]

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
        "work": {
            "ops": len(durations),
            "bytes": len(durations) * (8 if point.get("working_set_bytes") else 0),
        },
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


def derived(probe: str, findings: JSON) -> JSON:
    """What a probe concludes when all of its points are done."""
    record = absent(probe, {}, "", "", stopped_by="planned")
    del record["error"]
    return {**record, "kind": "derived", "findings": findings}


def held(name: str, detail: str) -> list[JSON]:
    return [{"name": name, "ok": True, "detail": detail}]


def best_rates_record() -> JSON:
    """Bandwidth of one reading core against the most that it could move in a cycle."""
    core_ghz = 3.89

    def level(name: str, size: int, rate: float, best: float | None, source: str) -> JSON:
        cycle = rate / (core_ghz * 1e9)
        return {
            "name": name,
            "working_set_bytes": size,
            "bytes_per_s": rate,
            "bytes_per_cycle": rounded(cycle),
            "best_bytes_per_cycle": best,
            "share": rounded(cycle / best) if best else None,
            "source": source,
        }

    guide = "AMD, Software Optimization Guide for the Zen5 Microarchitecture (58455)"
    levels = [
        level("L1", 24 * KIB, 464e9, 128, f"two 64-byte loads a cycle: {guide}"),
        level("L2", 192 * KIB, 193e9, 64, f"64 bytes a cycle: {guide}"),
        level("L3", 6 * MIB, 99.1e9, 32, f"32 bytes a cycle for each core: {guide}"),
        level(
            "RAM", GIB, 38.7e9, None, "what memory could give at most is not known inside a virtual machine"
        ),
    ]
    return derived("memory.bandwidth", {"levels": levels})


def parallelism_records() -> list[JSON]:
    out, sets = [], []
    counts = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32)
    for size, single, floor in (
        (16 * KIB, 1.06, 0.27),
        (512 * KIB, 3.9, 0.33),
        (6 * MIB, 13.4, 0.63),
        (GIB, 181.0, 6.9),
    ):
        costs = {chains: max(single / chains, floor) * (1 + 0.03 * chains**0.5) for chains in counts}
        for chains, cost in costs.items():
            point = {"working_set_bytes": size, "pages": "4k", "order": "random", "chains": chains}
            out.append(
                batch_mean(
                    "memory.parallelism",
                    point,
                    cost,
                    checks=held("every chain came round", f"{chains} chains"),
                )
            )
        best = min(costs, key=costs.__getitem__)
        sets.append(
            {
                "working_set_bytes": size,
                "pages": "4k",
                "single_ns": rounded(costs[1]),
                "best_ns": rounded(costs[best]),
                "best_chains": best,
                "misses_overlapped": rounded(costs[1] / costs[best]),
            }
        )
    return [*out, derived("memory.parallelism", {"sets": sets})]


def prefetch_records() -> list[JSON]:
    out = []
    chase = {"operation": "chase", "working_set_bytes": 256 * MIB, "order": "strided"}
    strides = {64: 3.1, 128: 4.4, 256: 7.9, 512: 14.2, 1024: 27.0, 2048: 58.0, 4096: 131.0, 8192: 171.0}
    checks = held("single cycle", "every line visited once in one cycle")
    out += [
        batch_mean("memory.prefetch", {**chase, "stride_bytes": stride}, ns, checks=checks)
        for stride, ns in strides.items()
    ]
    out.append(batch_mean("memory.prefetch", {**chase, "order": "random"}, 176.0, checks=checks))
    gains: JSON = {}
    for operation, key, size, curve in (
        (
            "list-walk",
            "list_walk",
            256 * MIB,
            {0: 178.0, 1: 121.0, 2: 83.0, 4: 46.0, 8: 24.5, 16: 19.8, 32: 21.0},
        ),
        ("fill", "fill", 256 * MIB, {0: 2.1, 4: 2.07, 8: 2.02, 16: 1.98, 32: 2.0}),
    ):
        for distance, ns in curve.items():
            point = {"operation": operation, "distance": distance, "working_set_bytes": size}
            out.append(
                batch_mean("memory.prefetch", point, ns, checks=held("checksum", "every node was counted"))
            )
        best = min(curve, key=curve.__getitem__)
        gains[key] = {
            "without_ns": curve[0],
            "best_ns": curve[best],
            "best_distance": best,
            "gain": rounded(curve[0] / curve[best]),
        }
    hidden = [
        {"stride_bytes": stride, "ns": ns, "hidden_share": rounded(1 - ns / 176.0)}
        for stride, ns in strides.items()
    ]
    return [*out, derived("memory.prefetch", {"hardware": {"random_ns": 176.0, "strides": hidden}, **gains})]


def alignment_records() -> list[JSON]:
    out = []
    costs = {
        "load": {0: 0.13, 4: 0.13, 60: 0.27, 4092: 0.29},
        "store": {0: 0.26, 4: 0.26, 60: 0.52, 4092: 6.4},
    }
    findings: JSON = {}
    for operation, by_offset in costs.items():
        for offset, ns in by_offset.items():
            point = {
                "operation": operation,
                "offset_bytes": offset,
                "size_bytes": 8,
                "working_set_bytes": 16 * KIB,
            }
            out.append(batch_mean("memory.alignment", point, ns, checks=held("checksum", "as written")))
        findings[operation] = {
            "aligned_ns": by_offset[0],
            "line_crossing_ns": by_offset[60],
            "page_crossing_ns": by_offset[4092],
        }
    return [*out, derived("memory.alignment", findings)]


def loaded_records() -> list[JSON]:
    base = {"working_set_bytes": GIB, "pages": "4k", "order": "page-local"}
    out = [
        batch_mean(
            "memory.loaded",
            {**base, "threads": 0},
            114.0,
            spread=0.012,
            findings={"load_bytes_per_s": 0.0, "chase_bytes_per_s": 0.56e9},
        )
    ]
    curves = []
    for percent, peak in ((100, 74e9), (75, 66e9), (50, 58e9)):
        points = []
        for delay, share in (
            (2000, 0.02),
            (500, 0.08),
            (200, 0.19),
            (100, 0.33),
            (50, 0.55),
            (20, 0.78),
            (10, 0.9),
            (0, 1.0),
        ):
            rate, latency = peak * share, 114.0 * (1 + 0.1 * share + 0.9 * share**7)
            record = batch_mean(
                "memory.loaded",
                {**base, "threads": 3, "read_percent": percent, "delay_steps": delay},
                latency,
                spread=0.03,
                ops=512,
                checks=held("the load ran all the while", "3 of 3 threads"),
                findings={
                    "load_bytes_per_s": rounded(rate),
                    "per_thread_bytes_per_s": [rounded(rate / 3)] * 3,
                    "chase_bytes_per_s": rounded(64e9 / latency),
                },
            )
            record["summary"]["p99"] = rounded(record["summary"]["max"] * (1.15 + 0.5 * share))
            record["summary"]["max"] = rounded(record["summary"]["p99"] * 1.1)
            del record["summary"]["refused"]["p99"]
            out.append(record)
            points.append(
                {
                    "delay_steps": delay,
                    "load_bytes_per_s": rounded(rate),
                    "latency_ns": record["summary"]["p50"],
                    "p99_ns": record["summary"]["p99"],
                }
            )
        knee = points[5]
        curves.append(
            {
                "read_percent": percent,
                "threads": 3,
                "points": points,
                "idle_ns": 114.2,
                "saturated_ns": points[-1]["latency_ns"],
                "peak_bytes_per_s": rounded(peak),
                "knee": {"load_bytes_per_s": knee["load_bytes_per_s"], "latency_ns": knee["latency_ns"]},
                "note": "",
            }
        )
    return [*out, derived("memory.loaded", {"curves": curves})]


def core_to_core_records() -> list[JSON]:
    out, operations = [], []
    for operation, base in (("compare-and-swap", 62.0), ("load-store", 54.0)):
        matrix: list[list[float | None]] = [[None] * 4 for _ in range(4)]
        for first in range(4):
            for second in range(first + 1, 4):
                cost = base * rng.uniform(0.96, 1.06)
                lines = [
                    {"line": line, "home_cpu": line % 4, "p50_ns": rounded(cost * rng.uniform(0.98, 1.03))}
                    for line in range(3)
                ]
                record = batch_mean(
                    "memory.core_to_core",
                    {"from_cpu": first, "to_cpu": second, "operation": operation},
                    cost,
                    spread=0.02,
                    ops=1000,
                    work={
                        "ops": 30_000,
                        "bytes": 0,
                        "convention": "a round trip: the line goes there and back",
                    },
                    checks=held("every exchange was answered", "30,000 of 30,000"),
                    findings={"lines": lines},
                    disturbed=(first, second) == (1, 3) and operation == "compare-and-swap",
                )
                out.append(record)
                matrix[first][second] = matrix[second][first] = record["summary"]["p50"]
        operations.append(
            {
                "operation": operation,
                "cpus": [0, 1, 2, 3],
                "matrix_ns": matrix,
                "clusters": [{"name": "cluster 1", "cpus": [0, 1, 2, 3], "within_ns": base}],
                "between_ns": None,
                "disturbed": [[1, 3]] if operation == "compare-and-swap" else [],
                "sampled": False,
            }
        )
    return [*out, derived("memory.core_to_core", {"operations": operations})]


def false_sharing_records() -> list[JSON]:
    out, found = [], []
    for operation, alone, shared in (("store", 0.27, 1.9), ("add", 4.7, 31.0)):
        for offset, threads, ns in (
            (8, 1, alone),
            (8, 2, shared),
            (64, 2, alone * 1.04),
            (128, 2, alone * 1.01),
            (4096, 2, alone),
        ):
            point = {"operation": operation, "offset_bytes": offset, "threads": threads}
            checks = held("both counters", "as many as were written")
            out.append(batch_mean("memory.false_sharing", point, ns, spread=0.03, ops=10_000, checks=checks))
        found.append(
            {
                "operation": operation,
                "same_line_ns": shared,
                "own_line_ns": rounded(alone * 1.01),
                "alone_ns": alone,
                "slowdown": rounded(shared / (alone * 1.01)),
            }
        )
    return [*out, derived("memory.false_sharing", {"operations": found})]


def per_op(
    probe: str, point: JSON, durations: list[float], *, name: str, findings: JSON | None = None
) -> JSON:
    """Operations timed one by one, as the pokes are."""
    record = poke_record(point, durations)
    del record["findings"]
    ordered = sorted(durations)
    for quantile_name, needs in (("p999", 3688), ("p9999", 36888), ("p99", 368)):
        if len(durations) < needs:
            record["summary"][quantile_name] = None
            record["summary"]["intervals"].pop(quantile_name, None)
            record["summary"]["interval_methods"].pop(quantile_name, None)
            record["summary"]["refused"][quantile_name] = f"{len(ordered)} samples, needs {needs:,}"
    record |= {"probe": probe, "checks": held(name, f"{len(durations):,} of {len(durations):,}")}
    record["tail"] = sorted(record["tail"], key=lambda sample: -sample["value"])[:12]
    record["tail"].sort(key=lambda sample: sample["at_ns"])
    return {**record, "findings": findings} if findings else record


def spread_out(
    centre: float, count: int, *, sigma: float = 0.06, second: tuple[float, float] | None = None
) -> list[float]:
    """Single costs around `centre`, some of a second mode `(cost, share)`, one in 500 ten times as long."""
    out = []
    for _ in range(count):
        middle = second[0] if second and rng.random() < second[1] else centre
        value = middle * rng.lognormvariate(0, sigma)
        out.append(
            round((value * rng.uniform(4, 20) if rng.random() < 0.002 else value) / QUANTUM_NS) * QUANTUM_NS
        )
    return out


def fault_records() -> list[JSON]:
    out, kinds = [], []
    page, huge = 4 * KIB, 2 * MIB
    for operation, pages, size, count, centre, second in (
        ("first-write", "4k", page, 6000, 1720.0, (5400.0, 0.14)),
        ("first-read", "4k", page, 6000, 780.0, None),
        ("write-after-read", "4k", page, 4000, 1990.0, None),
        ("copy-on-write", "4k", page, 4000, 2210.0, None),
        ("recycled", "4k", page, 6000, 1560.0, None),
        ("file-minor", "4k", page, 4000, 640.0, (1300.0, 0.3)),
        ("first-write", "huge", huge, 400, 94_000.0, (146_000.0, 0.2)),
    ):
        point = {"operation": operation, "pages": pages, "size_bytes": size}
        out.append(
            per_op(
                "vm.fault", point, spread_out(centre, count, second=second), name="every fault was counted"
            )
        )
        share = second[1] if second else 0.0
        modes = [
            {
                "p50_ns": centre,
                "low_ns": rounded(centre * 0.86),
                "high_ns": rounded(centre * 1.16),
                "share": rounded(1 - share),
                "likely": "",
            }
        ]
        if second:
            likely = (
                "the host had to find memory for the page"
                if operation == "first-write"
                else "the page table was new"
            )
            modes.append(
                {
                    "p50_ns": second[0],
                    "low_ns": rounded(second[0] * 0.87),
                    "high_ns": rounded(second[0] * 1.15),
                    "share": share,
                    "likely": likely,
                }
            )
        kinds.append(
            {
                "operation": operation,
                "pages": pages,
                "size_bytes": size,
                "p50_ns": out[-1]["summary"]["p50"],
                "modes": modes,
            }
        )
    out.append(
        absent(
            "vm.fault",
            {"operation": "file-major", "pages": "4k", "size_bytes": page},
            "unsupported",
            "no directory of this machine could be used for a file that is not in memory",
            stopped_by="unsupported",
        )
    )
    return [*out, derived("vm.fault", {"kinds": kinds})]


def map_records() -> list[JSON]:
    out, found = [], []
    for operation, fixed, a_page in (
        ("map", 1100.0, 0.0),
        ("unmap", 1300.0, 440.0),
        ("map-populate", 1500.0, 1790.0),
        ("protect", 640.0, 9.0),
        ("dontneed", 420.0, 380.0),
    ):
        for pages in (1, 16, 256, 4096):
            point = {"operation": operation, "size_bytes": pages * 4 * KIB}
            out.append(batch_mean("vm.map", point, fixed + a_page * pages, ops=64, spread=0.02))
        found.append({"operation": operation, "fixed_ns": fixed, "per_page_ns": a_page or None})
    return [*out, derived("vm.map", {"operations": found})]


def zero_records() -> list[JSON]:
    rates = {"memset": 36e9, "memset-fresh": 2.05e9, "kernel": 2.2e9}
    size = 64 * MIB
    return [
        batch_mean(
            "vm.zero",
            {"operation": operation, "size_bytes": size, "working_set_bytes": size, "pages": "4k"},
            rate,
            unit="bytes_per_s",
            ops=1,
            work={"ops": 30, "bytes": 30 * size, "convention": "each byte set to zero counts once"},
        )
        for operation, rate in rates.items()
    ]


def malloc_records() -> list[JSON]:
    out, found = [], []
    for allocator, library, factor, threshold in (
        ("system", "glibc 2.36", 1.0, 128 * KIB),
        ("mimalloc", "mimalloc 2.0.9", 0.6, None),
    ):
        sizes = []
        for size in (16, 32, 64, 256, 1024, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB):
            reused = (7.6 if size <= 1024 else 24.0) * factor
            fresh = reused + 1.55 * min(size / 4096, 1.0) * 230 + 430.0 * size / 4096 * factor
            if threshold and size >= threshold:
                reused = fresh = 2900.0 + 430.0 * size / 4096
            for state, ns in (("fresh", fresh), ("reused", reused)):
                point = {
                    "allocator": allocator,
                    "size_bytes": size,
                    "state": state,
                    "placement": "same-thread",
                }
                out.append(
                    batch_mean(
                        "alloc.malloc", point, ns, engine=f"{library} (libc.so.6)", ops=512, spread=0.015
                    )
                )
            sizes.append({"size_bytes": size, "fresh_ns": rounded(fresh), "reused_ns": rounded(reused)})
        for size in (32, 1024):
            point = {
                "allocator": allocator,
                "size_bytes": size,
                "state": "reused",
                "placement": "across-threads",
            }
            out.append(
                batch_mean(
                    "alloc.malloc",
                    point,
                    61.0 * factor,
                    engine=f"{library} (libc.so.6)",
                    ops=512,
                    spread=0.03,
                )
            )
        cliff = (
            {"size_bytes": 132 * KIB, "before_ns": 24.0, "after_ns": 17_200.0}
            if allocator == "system"
            else None
        )
        found.append(
            {
                "allocator": allocator,
                "library": library,
                "mmap_threshold_bytes": threshold,
                "sizes": sizes,
                "trim_cliff": cliff,
            }
        )
    return [*out, derived("alloc.malloc", {"allocators": found, "not_installed": ["jemalloc"]})]


def node_records() -> list[JSON]:
    out, steps = [], []
    nodes = 1_000_000
    variants = {
        "malloc": (32.4, 0.46),
        "arena": (21.3, 0.72),
        "arena-aligned": (22.9, 0.71),
        "arena-prefetch": (20.6, 0.73),
        "pool": (19.8, 0.7),
        "arena-touched": (6.9, 0.0),
        "vec": (5.8, 0.0),
    }
    for operation, (ns, share) in variants.items():
        findings = {"minor_faults_per_node": rounded(share * ns / 1900.0), "fault_share": share}
        checks = held("checksum", "the list holds every node once")
        out.append(
            batch_mean(
                "alloc.nodes",
                {"operation": operation, "nodes": nodes},
                ns,
                ops=nodes,
                spread=0.02,
                checks=checks,
                findings=findings,
            )
        )
        steps.append(
            {
                "operation": operation,
                "ns_per_node": ns,
                "gain_over_malloc": rounded(32.4 / ns),
                "fault_share": share,
            }
        )
    parts = {
        "allocator_ns": 10.6,
        "faults_ns": 14.9,
        "stores_ns": 6.2,
        "sum_ns": 31.7,
        "whole_ns": 32.4,
        "closure": 0.978,
    }
    return [*out, derived("alloc.nodes", {"nodes": nodes, "steps": steps, "parts": parts})]


def reuse_records() -> list[JSON]:
    out, found = [], []
    for size, fresh, swapped in (
        (64 * KIB, 3900.0, 2300.0),
        (MIB, 196_000.0, 37_000.0),
        (16 * MIB, 9.4e6, 1.21e6),
        (128 * MIB, 83e6, 13.9e6),
    ):
        for operation, ns in (("fresh", fresh), ("swapped", swapped)):
            out.append(
                batch_mean(
                    "alloc.reuse", {"operation": operation, "size_bytes": size}, ns, ops=1, spread=0.02
                )
            )
        found.append(
            {"size_bytes": size, "fresh_ns": fresh, "swapped_ns": swapped, "ratio": rounded(fresh / swapped)}
        )
    return [*out, derived("alloc.reuse", {"sizes": found})]


def python_records() -> list[JSON]:
    costs: dict[str, tuple[float, int | None]] = {
        "attribute": (11.8, None),
        "call": (38.0, None),
        "method-call": (41.5, None),
        "small-object": (92.0, None),
        "dict-insert": (35.0, 1000),
        "dict-lookup": (17.4, 1000),
        "list-literal": (58.0, 8),
        "list-comprehension": (28_100.0, 1000),
        "list-multiply": (1_050.0, 1000),
        "list-append": (19_800.0, 1000),
        "string-concatenate": (41_000.0, 1000),
        "string-join": (9_600.0, 1000),
        "numpy-empty": (260.0, 1000),
        "numpy-zeros": (330.0, 1000),
        "numpy-in-place": (410.0, 1000),
        "numpy-temporary": (690.0, 1000),
    }
    out = []
    for operation, (ns, elements) in costs.items():
        numpy = " with NumPy 2.2.1" if operation.startswith("numpy") else ""
        point = {"operation": operation} | ({"elements": elements} if elements else {})
        findings = (
            {"per_element_ns": rounded(ns / elements)} if elements and operation.startswith("list") else None
        )
        out.append(
            batch_mean(
                "python.object", point, ns, ops=1000, engine=f"CPython 3.11.7{numpy}", findings=findings
            )
        )
    return out


def kernel_records() -> list[JSON]:
    out = []
    calls = {
        "getppid": 116.0,
        "read-0": 171.0,
        "clock_gettime-vdso": 20.7,
        "clock_gettime-syscall": 164.0,
        "futex-wake": 143.0,
    }
    out += [batch_mean("kernel.syscall", {"operation": name}, ns, ops=1000) for name, ns in calls.items()]
    convention = {"ops": 3000, "bytes": 0, "convention": "a round trip: two switches on one CPU"}
    for operation, same, across in (
        ("pipe", 4300.0, 31_000.0),
        ("eventfd", 3900.0, 29_500.0),
        ("futex", 3400.0, 27_000.0),
    ):
        for placement, ns in (("same-cpu", same), ("across-blocking", across)):
            point = {"operation": operation, "placement": placement, "between": "threads"}
            out.append(batch_mean("kernel.context_switch", point, ns, ops=100, spread=0.03, work=convention))
    out.append(
        batch_mean(
            "kernel.context_switch",
            {"operation": "pipe", "placement": "same-cpu", "between": "processes"},
            5100.0,
            ops=100,
            spread=0.03,
            work=convention,
        )
    )
    alone: JSON = {"operation": "pipe-alone", "placement": "same-cpu", "threads": 1}
    out.append(batch_mean("kernel.context_switch", alone, 640.0, ops=100, spread=0.03))
    out.append(derived("kernel.context_switch", {"switch_ns": 1700.0}))
    sleeps = []
    for slept, centre, count in (
        (50_000, 9_100.0, 2000),
        (1_000_000, 24_800.0, 1200),
        (10_000_000, 38_400.0, 200),
    ):
        out.append(
            per_op(
                "kernel.wakeup",
                {"sleep_ns": slept, "placement": "across-blocking"},
                spread_out(centre, count, sigma=0.25),
                name="every wake-up was answered",
            )
        )
        sleeps.append(
            {"sleep_ns": slept, "p50_ns": out[-1]["summary"]["p50"], "p99_ns": out[-1]["summary"]["p99"]}
        )
    out.append(derived("kernel.wakeup", {"sleeps": sleeps}))
    for operation, centre, count in (
        ("thread", 42_000.0, 600),
        ("fork-exit", 410_000.0, 120),
        ("posix_spawn", 690_000.0, 120),
        ("python", 14.6e6, 24),
    ):
        out.append(
            per_op(
                "kernel.spawn",
                {"operation": operation},
                spread_out(centre, count, sigma=0.15),
                name="every one was waited for",
            )
        )
    for operation, slept, centre, count in (
        ("nanosleep", 1_000, 58_000.0, 600),
        ("nanosleep", 100_000, 61_000.0, 400),
        ("nanosleep", 1_000_000, 66_000.0, 120),
        ("timerfd", 1_000_000, 9_700.0, 120),
    ):
        out.append(
            per_op(
                "kernel.timer",
                {"operation": operation, "sleep_ns": slept},
                spread_out(centre, count, sigma=0.1),
                name="never early",
                findings={"requested_ns": slept},
            )
        )
    for threads, ns in ((1, 9.8), (2, 74.0), (4, 212.0)):
        out.append(
            batch_mean(
                "kernel.mutex", {"operation": "lock-unlock", "threads": threads}, ns, ops=10_000, spread=0.03
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
        ("memory.parallelism", 44, 1.0, GIB, 1),
        ("memory.prefetch", 21, 1.0, 256 * MIB, 1),
        ("memory.alignment", 8, 0.7, 16 * KIB, 1),
        ("memory.loaded", 25, 3.0, 3 * GIB, 4),
        ("memory.core_to_core", 12, 2.5, 16 * KIB, 2),
        ("memory.false_sharing", 10, 0.8, 16 * KIB, 2),
        ("vm.fault", 8, 1.6, 256 * MIB, 1),
        ("vm.map", 20, 0.6, 16 * MIB, 1),
        ("vm.zero", 3, 0.4, 64 * MIB, 1),
        ("alloc.malloc", 44, 1.6, 256 * MIB, 2),
        ("alloc.nodes", 7, 1.8, 64 * MIB, 1),
        ("alloc.reuse", 8, 0.6, 256 * MIB, 1),
        ("python.object", 16, 1.3, 16 * MIB, 1),
        ("kernel.syscall", 5, 0.6, 0, 1),
        ("kernel.context_switch", 7, 1.2, 0, 2),
        ("kernel.wakeup", 3, 0.7, 0, 2),
        ("kernel.spawn", 4, 0.9, 0, 1),
        ("kernel.timer", 4, 0.4, 0, 1),
        ("kernel.mutex", 3, 0.3, 0, 4),
        ("storage.read.sequential", 20, 6.0, 64 * MIB, 1),
        ("storage.write.sequential", 27, 6.0, 64 * MIB, 1),
        ("storage.read.random", 10, 2.5, 4 * MIB, 1),
        ("storage.write.random", 10, 2.0, 4 * MIB, 1),
        ("storage.rate", 6, 2.5, MIB, 1),
        ("storage.poke", 9, 3.0, MIB, 1),
        ("storage.sync", 8, 2.0, MIB, 1),
        ("storage.files", 14, 4.0, 48 * MIB, 1),
        ("storage.reread", 4, 0.3, 11 * MIB, 1),
    ]
    written = {
        "storage.read.sequential": GIB,
        "storage.write.sequential": 1600 * MIB,
        "storage.write.random": 200 * MIB,
        "storage.files": 140_000_000,
    }
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
                "written_bytes": written.get(probe, 0),
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
    parts = (
        clock_records,
        chase_records,
        poke_records,
        bandwidth_records,
        stride_records,
        parallelism_records,
        prefetch_records,
        alignment_records,
        loaded_records,
        core_to_core_records,
        false_sharing_records,
        fault_records,
        map_records,
        zero_records,
        malloc_records,
        node_records,
        reuse_records,
        python_records,
        kernel_records,
    )
    records = [record for part in parts for record in part()]
    records += storage_records.storage_records(sys.modules[__name__])
    records.insert(
        next(i for i, r in enumerate(records) if r["probe"] == "memory.stride"), best_rates_record()
    )
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
            "written_bytes": 2_987_654_321,
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
