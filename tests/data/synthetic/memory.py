"""Loads of one thread: latencies with soft knees, pokes, rates."""

from __future__ import annotations

import math

from .tools import (
    GIB,
    JSON,
    KIB,
    MIB,
    QUANTUM_NS,
    absent,
    batch_mean,
    derived,
    estimate,
    held,
    poke_record,
    rng,
    rounded,
)


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
        span: tuple[int, int],
        latency: tuple[float, float, float],
        bracket: list[int] | None,
        end: int | None,
        reported: int | None,
        note: str,
    ) -> JSON:
        return {
            "name": name,
            "from_bytes": span[0],
            "to_bytes": span[1],
            "tlb_suspect": False,
            "latency_ns": dict(zip(("value", "low", "high"), latency, strict=True)),
            "cycles": rounded(latency[0] * core_ghz),
            "end_bytes": bracket
            and {"value": math.prod(bracket) ** 0.5, "low": bracket[0], "high": bracket[1]},
            "upper_end_bytes": end,
            "reported_bytes": reported,
            "validated": name != "L3",
            "confidence": {"L1": 0.99, "L2": 0.97, "L3": 0.81, "RAM": 0.99}[name],
            "note": note,
        }

    findings = {
        "levels": [
            level("L1", (KIB, 45056), (1.063, 1.058, 1.071), [45056, 53248], 49152, 49152, ""),
            level(
                "L2",
                (57344, 524288),
                (3.74, 3.70, 3.83),
                [524288, 1048576],
                1048576,
                1048576,
                "begins to miss at 512 KiB: physical pages do not spread evenly over its sets",
            ),
            level(
                "L3",
                (2 * MIB, 10 * MIB),
                (12.7, 11.2, 14.9),
                [10 * MIB, 14 * MIB],
                14 * MIB,
                32 * MIB,
                "shared with CPUs that this guest does not see: 10 to 14 of 32 MiB were effective",
            ),
            level("RAM", (64 * MIB, GIB), (113.4, 110.9, 117.2), None, None, None, ""),
        ],
        "tlb": [
            {"pages_lo": 96, "pages_hi": 112, "step_ns": 1.7},
            {"pages_lo": 4096, "pages_hi": 5120, "step_ns": 7.5},
        ],
        "effective_page_bytes": 4096,
        "core_ghz": core_ghz,
        "curve_pages": "4k",
        "ram": {
            "working_set_bytes": GIB,
            "page_local_ns": 113.4,
            "random_ns": 182.3,
            "huge_random_ns": 179.6,
        },
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


def with_causes(record: JSON) -> JSON:
    """The record with slow pokes that are ticks, the host's or, one in eight, unexplained."""
    rows: dict[str, JSON] = {}
    for number, sample in enumerate(record["tail"]):
        cause = ("timer-tick", "timer-tick", "host-tick", "timer-tick")[number % 8 % 4]
        cause = "unexplained" if number % 8 == 7 else cause
        if cause != "unexplained":
            sample["cause"] = cause
        row = rows.setdefault(cause, {"cause": cause, "count": 0, "ns": 0, "explained_ns": 0})
        row["count"] += 1
        row["ns"] += round(sample["value"])
        row["explained_ns"] += round(0.6 * sample["value"]) if cause != "unexplained" else 0
    causes = sorted(rows.values(), key=lambda row: -row["count"])
    known = {"level": "perf records", "threshold_ns": record["tail_threshold"], "causes": causes}
    return {**record, "tail_causes": known}


def poke_records() -> list[JSON]:
    out = []
    for size in (0, 1000, 1_000_000, 1_000_000_000):
        for operation in ("read", "read-write"):
            point = {"working_set_bytes": size, "operation": operation}
            out.append(with_causes(poke_record(point, poke_durations(size, operation, 100_000))))
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
    return [*out, best_rates_record()]


def best_rates_record() -> JSON:
    """Bandwidth of one reading core against the most that it could move in a cycle."""
    core_ghz = 3.89

    def level(name: str, size: int, rate: float, best: float | None, source: str) -> JSON:
        cycle = rate / (core_ghz * 1e9)
        return {
            "name": name,
            "working_set_bytes": size,
            "isa": "avx512",
            "bytes_per_s": rate,
            "bytes_per_cycle": estimate(cycle, 1.02),
            "best_bytes_per_cycle": best,
            "share": estimate(cycle / best, 1.02) if best else None,
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
    return derived("memory.bandwidth", {"levels": levels, "write": [], "copy": []})


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
                    findings={"bytes_used_per_access": 8, "per_byte_ns": rounded(cost / 8)},
                )
            )
    return out


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
                "misses_overlapped": estimate(costs[1] / costs[best], 1.03),
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
            "working_set_bytes": size,
            "without_ns": curve[0],
            "best_ns": curve[best],
            "best_distance": best,
            "gain": estimate(curve[0] / curve[best], 1.03),
        }
    hidden = [
        {"stride_bytes": stride, "ns": ns, "hidden_share": estimate(1 - ns / 176.0, 1.02)}
        for stride, ns in strides.items()
    ]
    hardware = {"working_set_bytes": 256 * MIB, "pages": None, "random_ns": 176.0, "strides": hidden}
    return [*out, derived("memory.prefetch", {"hardware": hardware, "hardware_third_level": None, **gains})]


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
            "within_line_ns": by_offset[4],
            "line_crossing_ns": by_offset[60],
            "page_crossing_ns": by_offset[4092],
            "page_end_ns": None,
        }
    return [*out, derived("memory.alignment", findings)]
