"""Ledgers that nobody measured, for arithmetic."""

from __future__ import annotations

from typing import Any

import msgspec

from latlab.explain.model import Explained


def ledger(
    shares: dict[str, float],
    *,
    wall_s: float = 10.0,
    width: float = 0.01,
    threads: dict[str, Any] | None = None,
    counters: dict[str, float] | None = None,
    parts: dict[str, dict[str, float]] | None = None,
    exit_code: int = 0,
    left_running: int = 0,
) -> Explained:
    """A ledger with these shares of wall time; the rest is `compute`. Each is known to `width`."""
    rest = 1 - sum(shares.values())
    whole = shares | ({"compute": rest} if "user-cpu" not in shares else {})
    rows = [
        {
            "name": name,
            "share": share,
            "low": max(share - width, 0),
            "high": min(share + width, 1),
            "seconds": share * wall_s,
            "method": "sampled",
            "parts": [
                {"name": part, "share": of, "seconds": of * wall_s}
                for part, of in (parts or {}).get(name, {}).items()
            ],
            "within": [{"name": "allocator", "low": 0, "high": share + width}] if name == "user-cpu" else [],
        }
        for name, share in whole.items()
    ]
    document = {
        "version": 1,
        "rules_version": 1,
        "program": {"arguments": ["x"], "pid": 1, "exit_code": exit_code, "left_running": left_running},
        "runs": 1,
        "wall_s": wall_s,
        "wall_range_s": [wall_s, wall_s],
        "level": 3 if "user-cpu" in shares else 1,
        "levels": [],
        "categories": rows,
        "closure": {"sum": 1.0, "holds": True},
        "observer": {
            "share": 0,
            "watcher_share": 0,
            "recorded_share": 1,
            "looks": 0,
            "samples": 0,
            "switches": 0,
            "lost": 0,
        },
        "threads": {"most": 1, "cpu_s": wall_s, "parallelism": 1.0} | (threads or {}),
        "processes": [],
        "counters": {
            "user_s": 1,
            "system_s": 1,
            "minor_faults": 0,
            "major_faults": 0,
            "voluntary_switches": 0,
            "involuntary_switches": 0,
            "max_resident_bytes": 1,
        }
        | (counters or {}),
        "timeline": {"bin_s": 1, "names": [], "bins": []},
    }
    return msgspec.convert(document, Explained)
