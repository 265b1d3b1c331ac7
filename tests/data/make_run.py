"""Writes the runs that most tests read; the package `synthetic` makes them up.

`run-small.latlab.jsonl` holds figures of every probe, `run-rounds.latlab.jsonl` the lines of
six rounds of few points. (`run-v1.latlab.jsonl` is of an older latlab, and stays as it is.)

python tests/data/make_run.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# Beside this file, which is run as a program: its folder is on the path then.
from synthetic import lines, rounds_lines  # type: ignore[import-not-found]

HERE = Path(__file__).resolve().parent


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, made in (("run-small", lines()), ("run-rounds", rounds_lines())):
        text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in made)
        target = folder / f"{name}.latlab.jsonl"
        target.write_text(text, encoding="utf-8")
        sys.stderr.write(f"{target}: {len(text):,} characters\n")


if __name__ == "__main__":
    main()
