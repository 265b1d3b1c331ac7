"""Compares two builds of the measuring core, in turn: does a change of the build change a figure?

    .venv/bin/python benches/builds.py before.so after.so --pairs 9 --only 'memory.*' --csv build.csv

A pair is: the first core, the second, the first again, which is also the first of the next pair. Each point
that all runs reached gets a row: the median of the ratios second over first with their range, and the first
core over itself (A/A). A row holds where the median is within 2 %, or within the A/A range where that is
wider.
Nothing here is a pass mark: tests must not depend on timing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from peers.lines import Pair, verdict

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import evidence  # noqa: E402 - found from the project's folder

TOLERANCE = 0.02
#: Probe and point.
Key = tuple[str, str]


def package(core: Path, folder: Path) -> Path:
    """A copy of the Python package with this core."""
    leave = shutil.ignore_patterns("_core*", "__pycache__")
    shutil.copytree(ROOT / "python/latlab", folder / "latlab", ignore=leave)
    shutil.copy(core, folder / "latlab/_core.abi3.so")
    return folder


def figures(folder: Path, options: list[str]) -> dict[Key, float]:
    """The median of each point of one run."""
    out = folder / "run.latlab.jsonl"
    out.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "latlab",
        "measure",
        *options,
        "--no-report",
        "--quiet",
        "--out",
        str(out),
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {
        (record["probe"], json.dumps(record["point"], sort_keys=True)): record["summary"]["p50"]
        for record in records
        if record.get("summary") and record["summary"].get("p50")
    }


def compared(first: list[dict[Key, float]], second: list[dict[Key, float]]) -> Iterator[dict[str, object]]:
    """A row for each point that all runs have; the first core ran once more than the second."""
    for key in sorted(set.intersection(*(set(run) for run in [*first, *second]))):
        runs = zip(first, second, first[1:], strict=False)
        pairs = [Pair(before[key], own[key], after[key]) for before, own, after in runs]
        found = verdict(pairs, TOLERANCE, more_is_better=False)
        low, high = found.ratios
        same_low, same_high = found.sames
        yield {
            "probe": key[0],
            "point": key[1],
            "ratio": round(found.ratio, 3),
            "low": round(low, 3),
            "high": round(high, 3),
            "same_low": round(same_low, 3),
            "same_high": round(same_high, 3),
            "holds": found.answer != "NO",
            "pairs": len(pairs),
        }


def main() -> None:
    """Runs both in turn and prints what came of it."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--cpu", default="0")
    parser.add_argument("--only", required=True)
    parser.add_argument("--budget", default="20", help="seconds of each run")
    parser.add_argument("--csv", help="a file in benches/results")
    asked = parser.parse_args()
    options = ["--profile", "quick", "--cpu", asked.cpu, "--only", asked.only, "--budget", asked.budget]
    with tempfile.TemporaryDirectory() as place:
        before, after = (
            package(core, Path(place) / name)
            for core, name in ((asked.first, "before"), (asked.second, "after"))
        )
        first, second = [figures(before, options)], []
        for _ in range(asked.pairs):
            second.append(figures(after, options))
            first.append(figures(before, options))
    rows = list(compared(first, second))
    for row in rows:
        print(*row.values(), sep="\t")
    middle = statistics.median(float(str(row["ratio"])) for row in rows)
    print(f"{len(rows)} points, {sum(not row['holds'] for row in rows)} differ, median ratio {middle}")
    if asked.csv:
        source = evidence.origin(
            f"benches/builds.py BEFORE AFTER --pairs {asked.pairs} --cpu {asked.cpu} --only {asked.only} "
            f"--budget {asked.budget}"
        )
        evidence.write(asked.csv, [{**row, **source} for row in rows])


if __name__ == "__main__":
    main()
