"""`latlab duet` on programs whose ratio is known, beside hyperfine: how far each is from it.

    .venv/bin/python benches/duet.py [--save]

Each case is compared ten times: by a duet of ten pairs; by hyperfine as it is used, ten runs of the first
program and then ten of the second; and by hyperfine started for one run of each in turn, ten times. `--save`
keeps the table in benches/results.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from latlab.duet import PAIRS, duet

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import evidence

TIMES: Final = 10
_LOOP: Final = "for i in range({}): pass"
_PYTHON: Final = (sys.executable, "-I", "-S", "-c")
#: What it is, its two programs.
CASES: Final = (
    ("sleep 50 ms, twice the same", ("sleep", "0.05"), ("sleep", "0.05")),
    ("sleep 50 ms, 10 % longer", ("sleep", "0.05"), ("sleep", "0.055")),
    (
        "loop of 3 million in Python, twice the same",
        (*_PYTHON, _LOOP.format(3_000_000)),
        (*_PYTHON, _LOOP.format(3_000_000)),
    ),
    (
        "loop of 3 million in Python, 10 % longer",
        (*_PYTHON, _LOOP.format(3_000_000)),
        (*_PYTHON, _LOOP.format(3_300_000)),
    ),
)


def hyperfine(runs: int, *programs: Sequence[str]) -> list[float]:
    """Mean wall time of each program, s."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            [
                *("hyperfine", "--shell=none", "--style=none", f"--warmup={int(runs > 1)}", f"--runs={runs}"),
                *("--export-json", file.name, *map(shlex.join, programs)),
            ],
            check=True,
            capture_output=True,
        )
        return [each["mean"] for each in json.loads(Path(file.name).read_text(encoding="utf-8"))["results"]]


def in_turn(a: Sequence[str], b: Sequence[str]) -> float:
    """The ratio of the means of single runs of hyperfine, A B B A."""
    found: list[list[float]] = [[], []]
    for pair in range(PAIRS):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            found[side] += hyperfine(1, (a, b)[side])
    return statistics.fmean(found[1]) / statistics.fmean(found[0])


def rows() -> Iterator[dict[str, object]]:
    """A row for each case and tool."""
    for name, a, b in CASES:
        ratios: dict[str, list[float]] = defaultdict(list)
        changed: Counter[str] = Counter()
        for _ in range(TIMES):
            wall, cpu, *_ = duet(a, b).figures
            for tool, figure in (("latlab duet", wall), ("latlab duet, CPU time", cpu)):
                ratios[tool].append(figure.ratio or 0.0)
                changed[tool] += figure.kind == "changed"
            one, other = hyperfine(PAIRS, a, b)
            ratios["hyperfine"].append(other / one)
            ratios["hyperfine, in turn"].append(in_turn(a, b))
        for tool, own in ratios.items():
            yield {
                "programs": name,
                "tool": tool,
                "median_ratio": f"{statistics.median(own):.3f}",
                "of_ten_lowest_to_highest": f"{min(own):.3f}-{max(own):.3f}",
                "called_changed": f"{changed[tool]} of {TIMES}" if tool in changed else "",
            }


def main() -> None:
    """Prints the table, and keeps it where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", action="store_true", help="keep the table in benches/results")
    save = parser.parse_args().save
    found = []
    for row in rows():
        print(*row.values(), sep="  ", flush=True)
        found.append(row | evidence.origin("benches/duet.py"))
    if save:
        evidence.write("duet.csv", found)


if __name__ == "__main__":
    main()
