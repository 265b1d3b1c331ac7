"""What being explained costs a program: CPU and wall time, alone and watched, in interleaved pairs.

    python benches/explain/overhead.py [--pairs 21] [--level 1,2,3] [--overhead 2%,5%,10%] [--peers]
        PROGRAM [ARGUMENTS]...

Prints a line a level and overhead: the median of the ratios with the distribution-free 95 % interval of
that median, and beside it the same of the program against itself. `--peers` has the same of
`perf record -F 997 -g` and of `strace -f -c`. After a watched program stands what latlab says that recording
took.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from latlab.explain.run import explain
from latlab.units import parse_share

_Z: Final = 1.959964
_TIMED: Final = """
import os, sys, time
begin = time.monotonic()
program = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, _, usage = os.wait4(program, 0)
wall = time.monotonic() - begin
with open(sys.argv[1], "w") as file:
    print(usage.ru_utime + usage.ru_stime, wall, file=file)
"""
"""Times a program within a tool: what that tool uses is not the program's."""
_PEERS: Final = {
    "perf record -F 997 -g": ("perf", "record", "-q", "-F", "997", "-g", "-o", "/dev/null", "--"),
    "strace -f -c": ("strace", "-f", "-c", "-o", "/dev/null", "--"),
}
_ALONE: Final = "alone"
_AGAIN: Final = "itself again"

Took = tuple[float, float, float | None]
"""CPU and wall time, seconds, and the share that recording is said to have taken."""


def alone(arguments: Sequence[str]) -> Took:
    """The program by itself."""
    begin = time.monotonic()
    # As `explain` does: without a copy of this process's memory, which its exec would have to give back.
    program = os.posix_spawnp(arguments[0], list(arguments), os.environ)
    _, _, usage = os.wait4(program, 0)
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin, None


def watched(arguments: Sequence[str], level: int, overhead: float) -> Took:
    """The program while it is explained."""
    explained, _ = explain(arguments, level=level, runs=1, overhead=overhead)
    cpu_s = explained.counters.user_s + explained.counters.system_s
    return cpu_s, explained.wall_s, explained.observer.share


def within(arguments: Sequence[str], tool: Sequence[str]) -> Took:
    """The program while a peer watches it."""
    with tempfile.TemporaryDirectory() as folder:
        reported = Path(folder, "told")
        command = [*tool, sys.executable, "-S", "-c", _TIMED, str(reported), *arguments]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        cpu_s, wall_s = map(float, reported.read_text().split())
    return cpu_s, wall_s, None


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
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def main() -> None:
    """Runs the pairs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--level", default="1,2,3")
    parser.add_argument("--overhead", default="5%")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    sides: dict[str, Callable[[Sequence[str]], Took]] = {_ALONE: alone, _AGAIN: alone}
    for level in map(int, asked.level.split(",")):
        for share in asked.overhead.split(","):
            sides[f"level {level} at {share}"] = partial(watched, level=level, overhead=parse_share(share))
    if asked.peers:
        sides |= {name: partial(within, tool=tool) for name, tool in _PEERS.items()}
    found: dict[str, list[Took]] = defaultdict(list)
    # The programs' output is of no interest; what they inherit is this.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for _ in range(asked.pairs):
        # What ran before leaves its traces in caches: nobody always comes after the same.
        for name in random.sample(list(sides), len(sides)):
            found[name].append(sides[name](asked.program))
    sys.stderr.write("| watched by | CPU | wall | said, median |\n| --- | --- | --- | --- |\n")
    for name in sides:
        if name == _ALONE:
            continue
        pairs = list(zip(found[name], found[_ALONE], strict=True))
        cpu = shown([side[0] / max(base[0], 1e-9) for side, base in pairs])
        wall = shown([side[1] / base[1] for side, base in pairs])
        said = [side[2] for side, _ in pairs if side[2] is not None]
        reported = f"{100 * statistics.median(said):.1f} %" if said else ""
        sys.stderr.write(f"| {name} | {cpu} | {wall} | {reported} |\n")


if __name__ == "__main__":
    main()
