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
import random
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from latlab.compare import Side, compare
from latlab.run.run import Run, load

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import evidence

_TIMES = 24
#: Runs that say how far runs lie apart, beside one run a side.
_KEPT = 6


def alarms(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """A row for each number of runs a side."""
    dice = random.Random(1)  # noqa: S311 - deals runs out
    for count in (1, 2, 3, len(runs) // 2):
        checks = changed = headline = 0
        verdicts: Counter[str] = Counter()
        for _ in range(_TIMES):
            dealt = dice.sample(list(runs), len(runs))
            kept = dealt[2 * count :][:_KEPT] if count == 1 else []
            found = compare(
                Side("A", tuple(dealt[:count])), Side("B", tuple(dealt[count : 2 * count])), kept=kept
            )
            checks += sum(each.kind != "not-comparable" for each in found.figures)
            changed += len(found.changed)
            headline += any(each.kind == "changed" for each in found.headline)
            verdicts.update(each.kind for each in found.headline)
        yield {
            "runs_a_side": f"{count} and {_KEPT} kept" if count == 1 else str(count),
            "comparisons": _TIMES,
            "figures": checks,
            "called_changed": f"{100 * changed / checks:.2f} %",
            "comparisons_with_a_headline_changed": headline,
            "headlines_called_the_same": f"{100 * verdicts['same'] / sum(verdicts.values()):.0f} %",
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
    for name, rows in (("compare-alarms", list(alarms(runs))), ("compare-spread", list(spreads(runs)))):
        for row in rows:
            print("  ".join(f"{key}: {value}" for key, value in row.items()))
        if asked.save:
            origin = evidence.origin("benches/alarms.py *.latlab.jsonl")
            origin["machine"] = f"{origin['machine']}, {asked.save}"
            evidence.write(f"{name}.csv", [row | origin for row in rows])


if __name__ == "__main__":
    main()
