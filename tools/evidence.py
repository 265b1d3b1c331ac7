"""Figures that are evidence: a CSV file in `benches/results`, with what made them in each row."""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches/results"
#: The last columns of each file: what a row comes from.
ORIGIN = ("command", "commit", "machine", "date")


def origin(command: str) -> dict[str, str]:
    """What a figure comes from: the command, the commit, the CPU's model with how many there are, and today.

    Nothing in it identifies the machine or a person.
    """
    describe = ["git", "describe", "--always", "--abbrev=12", "--exclude=*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    # Evidence that was written before says nothing of what is measured.
    others = ["git", "diff", "--quiet", "HEAD", "--", ".", ":!benches/results"]
    if subprocess.run(others, cwd=ROOT, check=False).returncode != 0:
        commit += "-dirty"
    cpus = Path("/proc/cpuinfo")
    text = cpus.read_text(encoding="utf-8") if cpus.exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return {
        "command": command,
        "commit": commit,
        "machine": f"{names[0] if names else platform.machine()}, {os.cpu_count()} CPUs",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def read(name: str) -> list[dict[str, str]]:
    """The rows of this file; none where it does not exist yet."""
    path = RESULTS / name
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(name: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Writes the file anew. All rows have the columns of the first."""
    rows = list(rows)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def printed(rows: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """All rows, each printed as it comes."""
    found = []
    for row in rows:
        print("  ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
        found.append(row)
    return found


def keep(name: str, rows: Iterable[Mapping[str, object]], command: str) -> None:
    """Writes the file anew with what the rows come from."""
    made = origin(command)
    write(name, [{**row, **made} for row in rows])


def table(
    name: str, command: str, words: str | None, rows: Callable[[], Iterable[Mapping[str, object]]]
) -> None:
    """What a bench with one table does: prints it, and keeps it where `--save` asks for that.

    Args:
        name: The file.
        command: The bench.
        words: What `--help` says.
        rows: Makes them.
    """
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="keep it in benches/results")
    asked = parser.parse_args()
    found = printed(rows())
    if asked.save:
        keep(name, found, command)
