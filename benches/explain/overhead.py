"""What being explained costs a program: CPU and wall time, alone and watched, in interleaved pairs.

    python benches/explain/overhead.py [--pairs 21] [--level 1,2,3] PROGRAM [ARGUMENTS]...

Prints a line a level: the median of the pairs' ratios with the distribution-free 95 % interval of that
median, and beside it the same of the program against itself.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence

from latlab.explain.run import explain

_Z = 1.959964


def alone(arguments: Sequence[str]) -> tuple[float, float]:
    """CPU and wall time of the program by itself, seconds."""
    begin = time.monotonic()
    # As `explain` does: without a copy of this process's memory, which its exec would have to give back.
    program = os.posix_spawnp(arguments[0], list(arguments), os.environ)
    _, _, usage = os.wait4(program, 0)
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin


def watched(arguments: Sequence[str], level: int) -> tuple[float, float]:
    """The same of the program while it is explained."""
    explained, _ = explain(arguments, level=level, runs=1)
    return explained.counters.user_s + explained.counters.system_s, explained.wall_s


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the order statistics that enclose it in 95 % of samples."""
    ordered = sorted(ratios)
    half = _Z * len(ordered) ** 0.5 / 2
    low = max(int(len(ordered) / 2 - half), 0)
    high = min(int(len(ordered) / 2 + half + 0.999), len(ordered) - 1)
    return statistics.median(ordered), ordered[low], ordered[high]


def shown(ratios: Sequence[float]) -> str:
    """A ratio as what it adds."""
    middle, low, high = (100 * (value - 1) for value in interval(ratios))
    return f"{middle:+6.1f} % ({low:+.1f} to {high:+.1f})"


def main() -> None:
    """Runs the pairs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--level", default="1,2,3")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    levels = [int(level) for level in asked.level.split(",")]
    sides = {0: "alone", **{level: f"level {level}" for level in levels}}
    found: dict[int, list[tuple[float, float]]] = {level: [] for level in [-1, *sides]}
    # The programs' output is of no interest; what they inherit is this.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for _ in range(asked.pairs):
        # What ran before leaves its traces in caches: nobody always comes after the same.
        for level in random.sample(list(found), len(found)):
            found[level].append(watched(asked.program, level) if level > 0 else alone(asked.program))
    for level, name in sides.items():
        pairs = list(zip(found[level], found[-1], strict=True))
        cpu = shown([side[0] / max(base[0], 1e-9) for side, base in pairs])
        wall = shown([side[1] / base[1] for side, base in pairs])
        sys.stderr.write(f"{name:8}  CPU {cpu}   wall {wall}\n")


if __name__ == "__main__":
    main()
