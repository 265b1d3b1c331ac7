"""Memory that several CPUs use: under load, a line that travels, neighbours in one line."""

from __future__ import annotations

from .tools import GIB, JSON, batch_mean, derived, estimate, held, rng, rounded


def loaded_records() -> list[JSON]:
    base = {"working_set_bytes": GIB, "pages": "4k", "order": "page-local"}
    out = [
        batch_mean(
            "memory.loaded",
            {**base, "threads": 0},
            114.0,
            spread=0.012,
            findings={"load_bytes_per_s": estimate(0.0), "chase_bytes_per_s": 0.56e9},
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
                    "load_bytes_per_s": estimate(rate),
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
                    "load_bytes_per_s": estimate(rate),
                    "disturbed": False,
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
                "peak_bytes_per_s": estimate(peak),
                "knee": {
                    "load_bytes_per_s": estimate(knee["load_bytes_per_s"]["value"], 1.04),
                    "latency_ns": estimate(knee["latency_ns"], 1.03),
                },
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
                "neighbouring_line_ns": rounded(alone * 1.04),
                "own_line_ns": rounded(alone * 1.01),
                "alone_ns": alone,
                "slowdown": estimate(shared / (alone * 1.01), 1.05),
            }
        )
    return [*out, derived("memory.false_sharing", {"operations": found})]
