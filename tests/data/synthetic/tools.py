"""Records as the harness writes them, around figures that somebody made up.

One clock and one sequence of random numbers go through the whole run: what asks for them in another order
makes another file.
"""

from __future__ import annotations

import base64
import contextlib
import math
import random
import statistics
import struct
import zlib
from collections.abc import Iterator
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
BLOCKS, WINDOWS = 6, 5
ROUNDS, CPUS = 6, (0, 1)
QUANTUM_NS = 10.01
JSON = dict[str, Any]

rng = random.Random(20261121)
clock_ns = 2.0e9


def rounded(value: float) -> float:
    """Five significant digits: the file stays small and is still finer than its noise."""
    return float(f"{value:.5g}")


def estimate(value: float, within: float | None = None) -> JSON:
    """A derived quantity with its range, by this factor to either side."""
    ends = {} if within is None else {"low": rounded(value / within), "high": rounded(value * within)}
    return {"value": rounded(value), **ends}


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


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """For records that came later: all others stay what they were."""
    global clock_ns  # noqa: PLW0603 - one clock
    before = rng.getstate(), clock_ns
    yield
    rng.setstate(before[0])
    clock_ns = before[1]


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


def derived(probe: str, findings: JSON) -> JSON:
    """What a probe concludes when all of its points are done."""
    record = absent(probe, {}, "", "", stopped_by="planned")
    del record["error"]
    return {**record, "kind": "derived", "findings": findings}


def held(name: str, detail: str) -> list[JSON]:
    return [{"name": name, "ok": True, "detail": detail}]


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
        "overhead": {"region_ns": 22.4, "share": rounded(22.4 / pick["p50"])},
        "findings": {"fraction_of_zeros": rounded(zeros / len(durations)), "std_over_mean": None},
    }


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


#: What is measured in one round only, with all of its time.
_ONCE = ("kernel.noise", "storage.steady", "storage.first_touch", "network.http")


def as_figure(record: JSON) -> JSON:
    """The record as a fold of rounds has it: each of its blocks stands for a round."""
    if record["kind"] not in {"batch_mean", "per_op"}:
        return record
    rank = "once" if record["probe"] in _ONCE else "headline"
    blocks = record["blocks"][: 1 if rank == "once" else ROUNDS]
    rounds = [
        {"round": number, "cpu": CPUS[number % len(CPUS)], "p50": block["p50"]}
        for number, block in enumerate(blocks)
    ]
    by_cpu = [
        {"cpu": cpu, "p50": rounded(statistics.median(own)), "rounds": len(own)}
        for cpu in CPUS
        if (own := [figure["p50"] for figure in rounds if figure["cpu"] == cpu])
    ]
    if rank == "once":
        record["summary"]["intervals"] = {}
    medians = [math.log(block["p50"]) for block in record["blocks"] if block["p50"] > 0]
    spread = {"within": rounded(statistics.stdev(medians))} if len(medians) > 1 else {}
    return {**record, "rank": rank, "rounds": rounds, "spread": {**spread, "by_cpu": by_cpu}}
