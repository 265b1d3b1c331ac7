"""Writes `run-small.latlab.jsonl`, the run that most tests read; the package `synthetic` makes it up.

python tests/data/make_run.py [FILE]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# Beside this file, which is run as a program: its folder is on the path then.
from synthetic import lines  # type: ignore[import-not-found]

HERE = Path(__file__).resolve().parent


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "run-small.latlab.jsonl"
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines())
    target.write_text(text, encoding="utf-8")
    sys.stderr.write(f"{target}: {len(text):,} characters\n")


if __name__ == "__main__":
    main()
