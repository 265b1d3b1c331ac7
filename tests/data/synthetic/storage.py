# ruff: noqa: ANN401, E501 - a record's fields hold anything; tables of figures are read across
"""The disk of the synthetic run: a virtual one with a write cache, and figures as such a disk has them.

The random numbers are this file's own, so that what it adds changes nothing of the rest of the run.
"""

from __future__ import annotations

import math
import random
from typing import Any

from .tools import JSON, KIB, MIB, absent, derived, per_op, rounded

rng = random.Random(20261122)

#: What a transfer costs whatever its size, ns, and bytes a second beyond that, by operation and path.
AFFINE = {
    ("read", "direct"): (55e3, 1.064e9),
    ("read", "buffered-cold"): (4.1e3, 0.95e9),
    ("read", "buffered-warm"): (0.42e3, 11.2e9),
    ("write", "direct"): (46e3, 2.14e9),
    ("write", "buffered-fsync-each"): (95e3, 1.119e9),
    ("write", "buffered-fsync-end"): (1.9e3, 1.21e9),
    ("write", "buffered"): (1.1e3, 2.9e9),
}
BLOCKS = (512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
EXTENTS = ("extents written", "12 extents of 1073741824 bytes, all written")
CONTENTS = ("contents verified", "each block read had its own header")
EVICTED = ("evicted", "evicted 100.0 % (cachestat) before 6 blocks")
DIRECT = ("direct", "a transfer of 4096 bytes past the page cache, counted by the kernel")
COUNTED = ("counted by the kernel", "268435456 bytes read, 268435456 fetched from storage (/proc/self/io)")


def storage_records() -> list[JSON]:
    """All of them, in the order of a run."""
    parts = (blocks, in_random_order, at_rates, pokes, syncs, files, reread, first_touch, steady)
    return [record for part in parts for record in part()]


def durations(centre: float, count: int, *, sigma: float = 0.12, slow: float = 0.01) -> list[float]:
    """Times of single transfers, ns: a body, a share that waited for another, rarely a long stall."""
    out = []
    for _ in range(count):
        value = centre * rng.lognormvariate(0, sigma)
        chance = rng.random()
        if chance < slow / 20:
            value += 60e3 * rng.paretovariate(1.1)
        elif chance < slow:
            value *= rng.uniform(1.5, 5)
        out.append(float(f"{min(value, 4e7 + 40 * centre):.4g}"))
    return out


def checks(*pairs: tuple[str, str]) -> list[JSON]:
    return [{"name": name, "ok": True, "detail": detail} for name, detail in pairs]


def timed(probe: str, point: JSON, times: list[float], proofs: list[JSON], **more: Any) -> JSON:
    record: JSON = per_op(probe, point, times, name="")
    record |= {"checks": proofs, "tail": record["tail"][-3:], "tail_threshold": 1e6, **more}
    if not record["tail"]:
        del record["tail"], record["tail_threshold"]
    for block in record["blocks"]:
        block["duration_ns"] = rounded(block["duration_ns"])
    return record


def channel(name: str, times: list[float]) -> JSON:
    whole = per_op("", {}, times, name="")
    return {"name": name, "samples": len(times), "summary": whole["summary"], "histogram": whole["histogram"]}


def rate(times: list[float], size: int) -> float:
    return float(f"{size * len(times) / sum(times) * 1e9:.5g}")


def blocks() -> list[JSON]:
    out = []
    for verb in ("read", "write"):
        fits, probe = [], f"storage.{verb}.sequential"
        for (own, path), (alpha, beta) in AFFINE.items():
            if own != verb:
                continue
            for size in BLOCKS:
                if path != "direct" and size in {16 * KIB, 256 * KIB, 4 * MIB}:
                    continue
                times = durations(alpha + size / beta * 1e9, 96 if size <= MIB else 24)
                proofs = [EXTENTS, CONTENTS]
                proofs += [DIRECT, COUNTED] if path == "direct" else []
                proofs += [EVICTED, COUNTED] if path == "buffered-cold" else []
                point = {"block_bytes": size, "path": path, "engine": "psync"}
                whole = rate(times, size)
                findings = {
                    "bytes_per_s": whole,
                    "bytes_per_s_between_blocks": [rounded(0.9 * whole), rounded(1.05 * whole)],
                }
                out.append(timed(probe, point, times, checks(*proofs), engine="psync", findings=findings))
            if path in {"direct", "buffered-fsync-each"}:
                half = alpha / 1e9 * beta
                thirty = [
                    {
                        "block_bytes": size,
                        "seconds": float(f"{30e9 / size * (alpha / 1e9 + size / beta):.4g}"),
                    }
                    for size in (4 * KIB, 64 * KIB, MIB)
                ]
                fits.append(
                    {
                        "path": path,
                        "from": "medians",
                        "alpha_ns": alpha,
                        "beta_bytes_per_s": beta,
                        "residuals": {
                            str(size): 0.98 + 0.01 * place for place, size in enumerate(BLOCKS[1:7])
                        },
                        "half_bandwidth_block_bytes": round(half),
                        "ninety_percent_block_bytes": round(9 * half),
                        "thirty_gb": thirty,
                    }
                )
        found: JSON = {"fits": fits, "best_block_bytes": MIB, "sanity": sanity(verb)}
        if verb == "write":
            found["rules"] = rules()
        out.append(derived(probe, found))
    out.append(
        absent(
            "storage.read.sequential",
            {"block_bytes": 128 * MIB, "path": "direct", "engine": "psync"},
            "not_reached",
            "the time for this probe was used up: `latlab measure --profile thorough` gives it more",
        )
    )
    return out


def sanity(verb: str) -> list[JSON]:
    return [
        {
            "rule": f"random {verb}s are not faster than sequential ones",
            "holds": True,
            "detail": "4 KiB: 69 MB/s in order, 66 MB/s at random",
        }
    ]


def rules() -> list[JSON]:
    return [
        {"rule": "large blocks beat small ones", "verdict": "true", "detail": "1 MiB: 1.00 GB/s, 4 KiB: 69 MB/s"},
    ]  # fmt: skip


def medium() -> list[JSON]:
    return [
        {
            "rule": "solid state beats spinning",
            "verdict": "undecided",
            "detail": "undecided here: one disk, whose latency does not depend on the distance of the seek",
        }
    ]


def depth_times(verb: str, size: int, depth: int, count: int) -> tuple[list[float], float]:
    """Latencies at a depth and the rate that Little's law then gives: saturating, then queueing."""
    alone, most = {("read", 4096): (55e3, 68e3), ("write", 4096): (58e3, 54e3)}.get(
        (verb, size), (107e3 if verb == "read" else 59e3, 15e3 if verb == "read" else 27e3)
    )
    per_s = 1 / ((alone / 1e9 / depth) ** 3 + (1 / most) ** 3) ** (1 / 3)
    return durations(depth / per_s * 1e9, count, sigma=0.1 + 0.05 * math.log2(depth), slow=0.02), per_s


def in_random_order() -> list[JSON]:
    out = []
    for verb in ("read", "write"):
        probe, found = f"storage.{verb}.random", []
        for size in (4 * KIB, 64 * KIB):
            for depth in DEPTHS if size == 4 * KIB else (1, 8, 32):
                times, per_s = depth_times(
                    verb, size, depth, 4000 if size == 4 * KIB and depth in {1, 32} else 600
                )
                engine = "psync" if depth == 1 else "io_uring"
                point = {"block_bytes": size, "queue_depth": depth, "path": "direct", "engine": engine}
                findings = {
                    "rate_per_s": rounded(per_s),
                    "bytes_per_s": rounded(per_s * size),
                    "achieved_depth": rounded(depth * 0.99),
                }
                proofs = checks(EXTENTS, CONTENTS, DIRECT, COUNTED)
                out.append(timed(probe, point, times, proofs, engine=engine, findings=findings))
            found.append({"block_bytes": size, "depth": 32, "reached": True, "rate_per_s": rounded(per_s)})
        own: JSON = {"saturation": found, "sanity": sanity(verb)}
        out.append(derived(probe, own | {"rules": medium()} if verb == "read" else own))
    return out  # fmt: skip


def at_rates() -> list[JSON]:
    out = []
    for per_s, service, queued in (
        (10, 190e3, 1.02),
        (100, 150e3, 1.03),
        (1000, 99e3, 1.06),
        (5000, 79e3, 1.15),
        (10_000, 75e3, 1.4),
        (40_000, 160e3, 3.2),
    ):
        times = durations(service, 160 if per_s == 10 else 600, slow=0.02)
        waits = [float(f"{value * max(queued * rng.lognormvariate(0, 0.1), 1.0):.4g}") for value in times]
        point = {"rate_per_s": per_s, "block_bytes": 4 * KIB, "path": "direct", "engine": "io_uring"}
        reached = per_s if per_s < 40_000 else 38_700.0
        findings = {
            "offered_per_s": per_s,
            "achieved_per_s": reached,
            "held_back": 0 if reached == per_s else 412,
        }
        out.append(
            timed(
                "storage.rate", point, waits, checks(EXTENTS, CONTENTS, DIRECT, COUNTED),
                engine="io_uring", channels=[channel("service", times)], findings=findings,
            )
        )  # fmt: skip
    return out


def pokes() -> list[JSON]:
    out = []
    for size in (0, 1000, 1_000_000, 1_000_000_000):
        for path, centre in (("buffered-warm", 1.36e3), ("buffered-cold", 128e3), ("direct", 128e3)):
            if (size == 0 and path != "buffered-warm") or (size == 1000 and path != "buffered-warm"):
                continue
            point = {"file_bytes": size, "operation": "read-write", "path": path}
            middle = {0: 0.02, 1_000_000_000: 1.9}.get(size, 1.0) if path == "buffered-warm" else 1.0
            times = durations(centre * middle, 4000 if path == "buffered-warm" else 1000, slow=0.02)
            if path == "buffered-cold" and size == 1_000_000:
                # 245 pages are fetched once, then they are there.
                times = [value if rng.random() < 0.25 else value / 90 for value in times]
            proofs = [("labelled", "no I/O: the experiment's zero")] if not size else [EXTENTS, CONTENTS]
            proofs += [EVICTED] if path == "buffered-cold" else [DIRECT] if path == "direct" else []
            out.append(timed("storage.poke", point, times, checks(*proofs), engine="psync"))
    out.append(
        absent(
            "storage.poke",
            {"file_bytes": 10_000_000_000, "operation": "read-write", "path": "direct"},
            "unsupported",
            "a file of 10 GB is made in the thorough profile only",
            stopped_by="unsupported",
        )
    )
    return out


def syncs() -> list[JSON]:
    out = []
    for operation, sync, centre in (
        ("overwrite", "fsync", 106e3),
        ("overwrite", "fdatasync", 108e3),
        ("overwrite", "o_dsync", 112e3),
        ("overwrite", "direct-fdatasync", 95e3),
        ("append", "fsync", 228e3),
        ("append", "fdatasync", 222e3),
        ("create", "fsync", 690e3),
        ("create", "fdatasync", 684e3),
    ):
        times = durations(centre, 400, sigma=0.16, slow=0.03)
        point = {"operation": operation, "sync": sync}
        # With O_DSYNC the write is the sync, and has no part of its own.
        flush = None if sync == "o_dsync" else rounded(sorted(times)[len(times) // 2] - 3e3)
        mean = sum(times) / len(times)
        device_time: JSON = {"not_told": "others used the device: it moved 1.4 times the bytes"}
        if operation == "overwrite":
            device_time = {
                "operation_mean_ns": rounded(mean),
                "device_mean_ns": rounded(0.8 * mean),
                "error_ns": 900.0,
                "requests_per_operation": 2.0,
            }
        findings = {"bytes": 4 * KIB, "sync_p50_ns": flush, "device_time": device_time}
        out.append(timed("storage.sync", point, times, checks(CONTENTS), engine="psync", findings=findings))
    evidence = [
        "a flush adds 50 us to a direct write of 4 KiB: less than flash without a protected cache needs",
        "the disk is virtual (virtio) and says that its cache is write back",
    ]
    found = {
        "verdict": "absorbed by a protected cache or the host",
        "evidence": evidence,
        "judged_by": {"operation": "overwrite", "sync": "fdatasync", "sync_p50_ns": 105e3},
        "append_over_overwrite": None,
        "create_over_overwrite": None,
    }
    return [*out, derived("storage.sync", found)]


#: ns a file by phase, of the small files and of the one large one.
PHASES = {
    ("write", "psync"): ({"create": 38e3, "write": 14e3, "close": 4e3}, {"create": 52e3, "write": 4.5e6, "close": 9e3}),
    ("write", "python"): ({"create": 47e3, "write": 15e3, "close": 6e3}, {"create": 66e3, "write": 4.7e6, "close": 11e3}),
    ("read-warm", "psync"): ({"open": 2.1e3, "read": 3.6e3, "close": 0.6e3}, {"open": 2.4e3, "read": 1.6e6, "close": 0.9e3}),
    ("read-warm", "python"): ({"open": 9.2e3, "read": 4.9e3, "close": 1.6e3}, {"open": 11e3, "read": 2.9e6, "close": 90e3}),
    ("read-cold", "psync"): ({"open": 2.6e3, "read": 84e3, "close": 0.8e3}, {"open": 3e3, "read": 9.2e6, "close": 1.2e3}),
    ("read-cold", "python"): ({"open": 11e3, "read": 88e3, "close": 2e3}, {"open": 13e3, "read": 9.9e6, "close": 60e3}),
    ("unlink", "psync"): ({"unlink": 108e3}, {}),
}  # fmt: skip


def files() -> list[JSON]:
    out, totals = [], {}
    for (operation, engine), arms in PHASES.items():
        for count, phases in zip((1000, 1), arms, strict=True):
            if not phases:
                continue
            point = {
                "files": count,
                "file_bytes": 10_000_000 // count,
                "operation": operation,
                "engine": engine,
            }
            parts = {name: durations(ns, 200 if count > 1 else 12, slow=0.02) for name, ns in phases.items()}
            times = [float(f"{sum(each):.4g}") for each in zip(*parts.values(), strict=True)]
            total = sum(times) / len(times) * count / 1e9
            totals[count, operation, engine] = total
            proofs = [
                ("phases add up", "97.6 % of the 412.0 ms that another clock gave the passes"),
                CONTENTS,
            ]
            proofs += [EXTENTS, EVICTED] if operation == "read-cold" else []
            drift = 1.04 if engine == "psync" else 1.31
            findings = {
                "phases_share_of_wall": 0.976,
                "drift": drift,
                "total_s": rounded(total),
                "mean_ns": rounded(total * 1e9 / count),
                "block_means_ns": [rounded(share * total * 1e9 / count) for share in (0.97, 1.03)],
                "phases": [
                    {"name": name, "mean_ns": rounded(sum(own) / len(own))} for name, own in parts.items()
                ],
                "files_a_block": count,
            }
            flags = ["data cold, metadata warm"] if operation == "read-cold" else []
            if drift > 1.25:
                flags.append(
                    "drift: a file took 1.31 times as long in the later blocks as in the earlier ones"
                )
            record = timed(
                "storage.files",
                point,
                times,
                checks(*proofs),
                engine="psync" if engine == "psync" else "CPython 3.11.7",
                channels=[channel(name, own) for name, own in parts.items()],
                findings=findings,
            )
            out.append(record | ({"flags": flags} if flags else {}))
    pairs = [(operation, engine) for operation, engine in PHASES if (1, operation, engine) in totals]
    ratios = [
        {
            "one": {
                "files": 1,
                "file_bytes": 10_000_000,
                "total_s": rounded(totals[1, operation, engine]),
            },
            "many": {
                "files": 1000,
                "file_bytes": 10_000,
                "total_s": rounded(totals[1000, operation, engine]),
            },
            "operation": operation,
            "engine": engine,
            "ratio": rounded(totals[1000, operation, engine] / totals[1, operation, engine]),
        }
        for operation, engine in pairs
    ]
    share = {
        operation: rounded((totals[1000, operation, "python"] - totals[1000, operation, "psync"]) * 1e6)
        for operation in ("write", "read-warm", "read-cold")
    }
    return [*out, derived("storage.files", {"ratios": ratios, "python_share_per_file_ns": share, "python_shares": []})]  # fmt: skip


def reread() -> list[JSON]:
    out, sizes = [], (1_000_000, 10_000_000)
    costs = {"reread": 0.16, "kept": 0.03}
    for size in sizes:
        for operation, per_byte in costs.items():
            times = durations(size * per_byte, 120)
            point = {"file_bytes": size, "operation": operation}
            proofs = checks(CONTENTS)
            out.append(
                timed("storage.reread", point, times, proofs, engine="psync", findings={"bytes": size})
            )
    p50 = {(r["point"]["file_bytes"], r["point"]["operation"]): r["summary"]["p50"] for r in out}
    ratios = [
        {
            "file_bytes": size,
            "reread_ns": p50[size, "reread"],
            "kept_ns": p50[size, "kept"],
            "ratio": rounded(p50[size, "reread"] / p50[size, "kept"]),
        }
        for size in sizes
    ]
    return [*out, derived("storage.reread", {"ratios": ratios})]


def first_touch() -> list[JSON]:
    out, ratios = [], []
    for size, centre, ratio, interval in ((4 * KIB, 60e3, 1.9, [1.32, 2.71]), (MIB, 1.4e6, 1.7, [1.24, 2.2])):
        for operation in ("first", "second"):
            times = durations(centre, 400 if size == 4 * KIB else 120, slow=0.01)
            if operation == "first":
                # One in sixty waits for what is fetched from far away.
                times = [value + 25e6 if rng.random() < 1 / 60 else value for value in times]
            proofs = checks(
                ("the same bytes both times", "400 of 400 blocks"),
                ("each region once", "24 regions, 0 of them read before by this run"),
                COUNTED,
            )
            findings = {
                "ratio": ratio, "interval": interval, "total_ratio": ratio, "regions": 24,
                "left_regions": 200, "left_bytes": 3_221_225_472, "bytes_per_s": rate(times, size),
            }  # fmt: skip
            point = {"operation": operation, "block_bytes": size, "path": "direct"}
            out.append(timed("storage.first_touch", point, times, proofs, engine="psync", findings=findings))
        name = "4 KiB" if size == 4 * KIB else "1 MiB"
        detail = (
            f"blocks of {name} take {ratio:.2f} times ({interval[0]:.2f} to {interval[1]:.2f}) as long the first time:"
            " what is below fetches them when they are first asked for"
        )
        ratios.append(
            {
                "block_bytes": size, "ratio": ratio, "interval": interval, "regions": 24,
                "total_ratio": ratio, "verdict": "first reading costs more", "detail": detail,
            }
        )  # fmt: skip
    since = (
        "first means first by latlab in this run: whether something else has read these blocks since the machine"
        " was started is not known; where it has, both readings are equal"
    )
    return [*out, derived("storage.first_touch", {"ratios": ratios, "since": since})]


def steady() -> list[JSON]:
    out = []
    streams = (
        ("write", ((2.0e9, 24), (0.52e9, 64)), False),
        ("read", ((1.06e9, 92),), True),
    )
    for operation, levels, sustained in streams:
        slices, regimes, moved, at = [], [], 0.0, 0.0
        for level, count in levels:
            own = [rounded(level * rng.lognormvariate(0, 0.05)) for _ in range(count)]
            mean = rounded(sum(own) / len(own))
            regimes.append(
                {"from_bytes": round(moved), "from_s": at, "seconds": count / 4, "bytes_per_s": mean}
            )
            moved += sum(own) / 4
            at += count / 4
            slices += own
        last = regimes[-1]
        why = (
            f"the last {last['seconds']:.0f} s neither rise nor fall by more than 10 %; credits that last longer would not have shown"
            if sustained
            else "the five parts of its last level differ by 27 % of their mean; steady ones lie within 20 %"
        )
        steps = (
            [
                "after 12.0 GB (6.0 s) from 2000 to 520 MB/s: as where a write cache is full, or credits for bursts are used up"
            ]
            if len(regimes) > 1
            else []
        )
        findings = {
            "bytes_per_s": rounded(moved / at), "bytes": round(moved), "busy_share": 0.992, "slice_s": 0.25,
            "slices": slices, "seconds": [rounded(sum(slices[i : i + 4]) / 4) for i in range(0, len(slices) - 3, 4)],
            "regimes": regimes, "trend": False, "sustained": sustained, "why": why, "steps": steps,
        }  # fmt: skip
        times = durations(MIB / levels[-1][0] * 1e9, 200)
        point = {"operation": operation, "block_bytes": MIB, "path": "direct", "engine": "psync"}
        proofs = checks(EXTENTS, CONTENTS, DIRECT, COUNTED)
        out.append(timed("storage.steady", point, times, proofs, engine="psync", findings=findings))
    return out
