"""What a listening thread heard: ticks of 250 and 100 Hz, switches, faults, and what nothing explains."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from . import tools
from .tools import JSON, held, per_op, rounded

#: Its own, so that what other parts draw stays as it is.
own = random.Random(250)
BLOCKS, BLOCK_NS = 24, 0.16e9
THRESHOLD_NS = 1000.0


def noise_records() -> list[JSON]:
    seconds = BLOCKS * BLOCK_NS / 1e9
    gaps = sorted(
        _comb(4e6, 1.1e6, 21_000.0, "timer-tick") + _comb(1e7, 3.2e6, 38_000.0, "host-tick") + _rest()
    )
    start = tools.advance(seconds * 1e9 + 5e6)
    record = per_op(
        "kernel.noise", {"operation": "listen"}, [ns for _, ns, _ in gaps], name="gaps follow each other"
    )
    tail: list[JSON] = []
    for at, ns, cause in gaps:
        sample: JSON = {"at_ns": round(start + at, 1), "value": rounded(ns)}
        tail.append(sample if cause == "unexplained" else {**sample, "cause": cause})
    rows = _rows(gaps, seconds)
    total = sum(ns for _, ns, _ in gaps)
    record |= {
        "resolution_ns": tools.QUANTUM_NS,
        "engine": "perf records",
        "tail": tail,
        "tail_threshold": THRESHOLD_NS,
        "tail_causes": {
            "level": "perf records",
            "threshold_ns": THRESHOLD_NS,
            "causes": [
                {name: row[name] for name in ("cause", "count")}
                | {"ns": round(row["total_ns"]), "explained_ns": round(row["explained_ns"])}
                for row in sorted(rows, key=lambda row: -row["count"])
            ],
        },
        "blocks": [
            {
                "at_ns": round(start + number * BLOCK_NS, 1),
                "duration_ns": BLOCK_NS,
                "samples": len(gaps) // BLOCKS,
                "p50": rounded(20_900.0 + 20 * (number % 5)),
            }
            for number in range(BLOCKS)
        ],
        "work": {"ops": int(seconds * 1e9 / 20), "bytes": 0, "convention": "one look at the clock"},
        "checks": [
            *held("planted stalls were heard", "24 of 24 stalls of 50 us, the shortest as a gap of 50.0 us"),
            *held("the loop did nothing but look", "a look every 18.3 ns while nothing kept it"),
            *held("gaps follow each other", f"{len(gaps):,} gaps without overlap"),
        ],
        "findings": {
            "cpu": 3,
            "pinned": True,
            "stopped_by": "completed",
            "seconds": seconds,
            "threshold_ns": THRESHOLD_NS,
            "step_ns": 20.0,
            "level": "perf records",
            "levels": [
                {"level": "time stamps", "available": True},
                {"level": "rseq", "available": True},
                {"level": "perf records", "available": True},
                {
                    "level": "tracepoints",
                    "available": False,
                    "reason": "only root may read the numbers of tracepoints in tracefs",
                },
            ],
            "gaps": len(gaps),
            "gaps_ns": rounded(total),
            "lost_share": rounded(total / seconds / 1e9),
            "per_s": rounded(len(gaps) / seconds),
            "causes": rows,
            "combs": [
                _found(250.0, 1.1e6, 21_000.0, "timer-tick", "counted", gaps, total),
                _found(100.0, 3.2e6, 38_000.0, "host-tick", "it comes from outside", gaps, total),
            ],
            "explained": [_explained(least, gaps) for least in (1e3, 1e4, 1e5)],
            "longest": [],
            "events_outside": 0,
            "lost_records": 0,
            "dropped_gaps": 0,
        },
    }
    return [record]


Gap = tuple[float, float, str]


def _comb(period_ns: float, phase_ns: float, typical_ns: float, cause: str) -> list[Gap]:
    count = int(BLOCKS * BLOCK_NS / period_ns)
    return [
        (phase_ns + tooth * period_ns + own.gauss(0, 2e3), typical_ns * own.lognormvariate(0, 0.15), cause)
        for tooth in range(count)
    ]


def _rest() -> list[Gap]:
    span = BLOCKS * BLOCK_NS
    short = [(own.uniform(0, span), 2_000.0 * own.lognormvariate(0, 0.3), "unexplained") for _ in range(400)]
    switches = [
        (own.uniform(0, span), 90_000.0 * own.lognormvariate(0, 1.0), "context-switch") for _ in range(19)
    ]
    faults = [(own.uniform(0, span), 1_300.0 * own.lognormvariate(0, 0.1), "page-fault") for _ in range(7)]
    return short + switches + faults


def _rows(gaps: list[Gap], seconds: float) -> list[dict[str, Any]]:
    evidence = {
        "timer-tick": "comb",
        "host-tick": "comb",
        "context-switch": "switch-record",
        "page-fault": "fault-record",
    }
    all_ns = sum(ns for _, ns, _ in gaps)
    rows = []
    for cause, count in Counter(cause for *_, cause in gaps).items():
        lengths = sorted(ns for _, ns, named in gaps if named == cause)
        total = sum(lengths)
        known = cause in evidence
        rows.append(
            {
                "cause": cause,
                "count": count,
                "per_s": rounded(count / seconds),
                "total_ns": rounded(total),
                "ns_per_s": rounded(total / seconds),
                "median_ns": rounded(lengths[len(lengths) // 2]),
                "largest_ns": rounded(lengths[-1]),
                "share_count": rounded(count / len(gaps)),
                "share_time": rounded(total / all_ns),
                "explained_ns": rounded(0.9 * total) if known else 0.0,
                "confidence": 0.95 if known else 0.0,
                "evidence": {evidence[cause]: count} if known else {},
                "who": [],
            }
        )
    return sorted(rows, key=lambda row: -row["total_ns"])


def _found(
    hz: float, phase_ns: float, typical_ns: float, cause: str, reason: str, gaps: list[Gap], total: float
) -> JSON:
    lengths = [ns for _, ns, named in gaps if named == cause]
    return {
        "cause": cause,
        "reason": reason,
        "hz": hz,
        "period_ns": 1e9 / hz,
        "phase_ns": phase_ns,
        "window_ns": [12_500.0, 12_500.0],
        "teeth": len(lengths),
        "hit": len(lengths),
        "by_chance": 1.2,
        "typical_ns": typical_ns,
        "gaps": len(lengths),
        "ns": rounded(sum(lengths)),
        "share_time": rounded(sum(lengths) / total),
    }


def _explained(least_ns: float, gaps: list[Gap]) -> JSON:
    chosen = [gap for gap in gaps if gap[1] >= least_ns]
    known = [gap for gap in chosen if gap[2] != "unexplained"]
    combs = [gap for gap in known if gap[2].endswith("tick")]
    return {
        "at_least_ns": least_ns,
        "gaps": len(chosen),
        "attributed": len(known),
        "by_comb": len(combs),
        "ns": rounded(sum(ns for _, ns, _ in chosen)),
        "attributed_ns": rounded(sum(ns for _, ns, _ in known)),
        "by_comb_ns": rounded(sum(ns for _, ns, _ in combs)),
    }
