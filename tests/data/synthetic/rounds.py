"""A run as it is written: lines of six rounds on two CPUs, of few points, with planted differences."""

from __future__ import annotations

from . import memory
from .header import header
from .tools import CPUS, GIB, JSON, KIB, MIB, ROUNDS, absent, batch_mean, held, poke_record, rng

#: What CPU 1 takes times as long as CPU 0, and what rounds on one CPU differ by.
CPU_FACTOR, SPREAD = 1.2, 0.03
_CHASE = "memory.load.dependent"


def rounds_lines() -> list[JSON]:
    """Header, lines of every round, footer; no figures in it: a reader folds the lines."""
    records = [record for number in range(ROUNDS) for record in _round(number)]
    return [header(), *records, _footer(records)]


def _round(number: int) -> list[JSON]:
    cpu = CPUS[number % len(CPUS)]
    out = []

    def line(record: JSON, rank: str, reach: str, **more: object) -> None:
        if "summary" in record:
            record["summary"]["intervals"] = {}
        out.append({**record, "rank": rank, "reach": reach, "round": number, "cpu": cpu, **more})

    def times(centre: float) -> float:
        return centre * (CPU_FACTOR if cpu else 1.0) * rng.lognormvariate(0, SPREAD)

    calls = {"getppid": 116.0, "read-0": 171.0}
    for name, ns in calls.items():
        line(
            batch_mean("kernel.syscall", {"operation": name}, times(ns), ops=1000),
            "headline",
            "first",
        )
    for pages, order in (("4k", "page-local"), ("4k", "random")):
        for size in (16 * KIB, 256 * KIB, 4 * MIB, 64 * MIB, GIB):
            # A curve has two rounds on one CPU; neighbours are in the same ones.
            if number in {0, 2} or size in {16 * KIB, GIB}:
                rank = "headline" if size in {16 * KIB, GIB} else "curve"
                point = {"working_set_bytes": size, "pages": pages, "order": order, "draw": 0}
                ns = times(memory.latency_of(size, order=order))
                reach = "first" if size <= 32 * KIB else "private" if size <= MIB else "shared"
                line(batch_mean(_CHASE, point, ns, checks=[memory.CYCLE]), rank, reach)
    poke = {"working_set_bytes": 1_000_000, "operation": "read"}
    line(poke_record(poke, memory.poke_durations(1_000_000, "read", 2000)), "headline", "private")
    if number == 1:
        detail: JSON = {
            "operation": "load",
            "offset_bytes": 60,
            "size_bytes": 8,
            "working_set_bytes": 16 * KIB,
        }
        line(
            batch_mean("memory.alignment", detail, times(0.27), checks=held("checksum", "as written")),
            "detail",
            "first",
        )
    if number == 3:
        dead = absent(
            "kernel.syscall",
            {"operation": "futex-wake"},
            "worker_died",
            "the measuring process was killed by SIGKILL while this was measured",
            stopped_by="failed",
        )
        line(dead, "headline", "first")
    return out


def _footer(records: list[JSON]) -> JSON:
    kinds: dict[str, int] = {}
    for record in records:
        kinds[record["kind"]] = kinds.get(record["kind"], 0) + 1
    return {
        "line": "footer",
        "ended": "2026-11-21T00:31:42.002+00:00",
        "stopped_by": "completed",
        "totals": {
            "records": kinds,
            "seconds": 89.584,
            "written_bytes": 0,
            "disturbed_blocks": 0,
            "worker_restarts": 1,
        },
    }
