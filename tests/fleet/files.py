"""Run files of hosts that never were: a kept run with other names and figures."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import zstandard

from latlab import _core
from latlab.compare import headlines
from latlab.run.run import load

QUICK = Path(__file__).parent.parent / "golden/inputs/quick.latlab.jsonl.zst"

#: Changes a host's header before it is written.
Change = Callable[[dict[str, Any]], None]


@cache
def kept() -> list[str]:
    """The lines of a kept run; they say that today's core folded its figures, so that readers take them."""
    with QUICK.open("rb") as file:
        *lines, last = zstandard.ZstdDecompressor().stream_reader(file).read().decode().splitlines()
    return [*lines, json.dumps(json.loads(last) | {"fold": _core.FOLD_VERSION})]


@cache
def kept_in_short(only: str = "") -> list[str]:
    """Its header, and a footer with the figures of probes that have a headline, or of one probe."""
    probes = {only} if only else {probe for probe, _ in headlines(load(QUICK))}
    footer = json.loads(kept()[-1])
    footer["figures"] = [own for own in footer["figures"] if own["probe"] in probes]
    return [kept()[0], json.dumps(footer)]


def run_of(
    name: str,
    seed: int,
    slow: float = 1.0,
    change: Change = lambda header: None,
    *,
    short: bool = False,
    only: str = "",
    met: Mapping[str, float] | None = None,
) -> str:
    """The run file of a host whose memory is so many times slower, with a spread of 2 %.

    `short` leaves out all that surveys do not read, `only` all figures but those of one probe; `met` is what
    its run met.
    """
    dice = random.Random(seed)
    first, *records, last = kept_in_short(only) if short or only else kept()
    header, footer = json.loads(first), json.loads(last)
    if met is not None:
        footer["meanwhile"] = dict(met)
    header["machine"]["os"]["host_name"] = name
    header["id"] = f"2026-11-28T000000-{seed:06}"
    change(header)
    for figure in footer["figures"]:
        factor = dice.lognormvariate(0.0, 0.02) * (slow if figure["probe"].startswith("memory") else 1.0)
        summary = figure.get("summary") or {}
        if summary.get("p50"):
            summary["p50"] *= factor
            summary["intervals"] = {"p50": [summary["p50"] / 1.001, summary["p50"] * 1.001]}
    return "\n".join([json.dumps(header), *records, json.dumps(footer)]) + "\n"
