"""Run files of hosts that never were: a kept run with other names and figures."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import zstandard

QUICK = Path(__file__).parent.parent / "golden/inputs/quick.latlab.jsonl.zst"

#: Changes a host's header before it is written.
Change = Callable[[dict[str, Any]], None]


@cache
def kept() -> list[str]:
    """The lines of a kept run."""
    with QUICK.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read().decode().splitlines()


def run_of(name: str, seed: int, slow: float = 1.0, change: Change = lambda header: None) -> str:
    """The run file of a host whose memory is so many times slower, with a spread of 2 %."""
    dice = random.Random(seed)
    header, footer = json.loads(kept()[0]), json.loads(kept()[-1])
    header["machine"]["os"]["host_name"] = name
    header["id"] = f"2026-11-28T000000-{seed:06}"
    change(header)
    for figure in footer["figures"]:
        factor = dice.lognormvariate(0.0, 0.02) * (slow if figure["probe"].startswith("memory") else 1.0)
        summary = figure.get("summary") or {}
        if summary.get("p50"):
            summary["p50"] *= factor
            summary["intervals"] = {"p50": [summary["p50"] / 1.001, summary["p50"] * 1.001]}
    return "\n".join([json.dumps(header), *kept()[1:-1], json.dumps(footer)]) + "\n"
