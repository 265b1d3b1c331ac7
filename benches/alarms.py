"""How often `latlab compare` calls runs of one machine changed: its false alarms.

    for i in $(seq 12); do latlab measure --profile quick --no-report --out $i.latlab.jsonl; done
    .venv/bin/python benches/alarms.py *.latlab.jsonl [--save WORDS]

The runs are dealt out to two sides at random, 24 times for each number of runs a side. Prints how many of the
compared figures were called changed and in how many comparisons a headline figure was, then by how much
figures of each probe differ between runs. `--save` keeps both in benches/results, with words for the machine.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from latlab.compare.alarms import TIMES, alarms
from latlab.run.run import Run, load

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import evidence


def rows(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """A row for each number of runs a side."""
    for count in (1, 2, 3, len(runs) // 2):
        found = alarms(runs, count)
        yield {
            "runs_a_side": f"{count} and {found.kept} kept" if found.kept else str(count),
            "comparisons": TIMES,
            "figures": found.figures,
            "called_changed": f"{100 * found.changed / found.figures:.2f} %",
            "comparisons_with_a_headline_changed": found.headline,
            "headlines_called_the_same": f"{100 * found.verdicts['same'] / found.verdicts.total():.0f} %",
        }


def spreads(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """A row for each probe: the standard deviation of its figures' logarithms between undisturbed runs."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs:
        for record in run.records:
            if (
                record.value
                and record.value > 0
                and record.kind != "derived"
                and "disturbed" not in record.flags
            ):
                values[record.probe, f"{record.point.label()} {record.unit}"].append(math.log(record.value))
    by_probe: dict[str, list[float]] = defaultdict(list)
    for (probe, _), own in values.items():
        if len(own) >= 4:  # noqa: PLR2004 - of three a deviation says little
            by_probe[probe].append(statistics.stdev(own))
    for probe, found in sorted(by_probe.items()):
        yield {
            "probe": probe,
            "figures": len(found),
            "median": f"{statistics.median(found):.3f}",
            "highest": f"{max(found):.3f}",
        }


def main() -> None:
    """Prints both tables, and keeps them where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", help="run files of one machine and profile, six or more")
    parser.add_argument("--save", metavar="WORDS", help="what the machine was like: 'under changing load'")
    asked = parser.parse_args()
    runs = [load(file) for file in asked.runs]
    for name, found in (("compare-alarms", list(rows(runs))), ("compare-spread", list(spreads(runs)))):
        for row in found:
            print("  ".join(f"{key}: {value}" for key, value in row.items()))
        if asked.save:
            origin = evidence.origin("benches/alarms.py *.latlab.jsonl")
            origin["machine"] = f"{origin['machine']}, {asked.save}"
            evidence.write(f"{name}.csv", [row | origin for row in found])


if __name__ == "__main__":
    main()
