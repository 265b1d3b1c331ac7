"""What building and testing take in a fresh clone: `make times`.

Clones the last commit into a temporary folder, with a home that is empty and hardly any environment, and
runs there what a newcomer and what CI runs. Each figure is a row of `benches/results/times.csv`; the newest
of each are the table in CONTRIBUTING.md. Times include downloads. The column `load` says how much else the
machine did.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import evidence  # noqa: E402 - found from the project's folder

FILE = "times.csv"
GUIDE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- make times -->\n", "<!-- /make times -->\n"


class Step(NamedTuple):
    """What is run, in this order, each after the ones before it."""

    what: str
    at_most_s: float
    command: str


CHANGE = "echo '// A change.' >>crates/latlab-probes-compute/src/memory/poke.rs"
STEPS = [
    Step("everything that proves the product, from nothing", 600, "make test"),
    Step("the same again", 240, "make test"),
    Step("lints and quick tests, the first time", 240, "make check"),
    Step("lints and quick tests after a change of one probe", 60, f"{CHANGE} && make check"),
    Step("the core after a change of one probe", 60, f"{CHANGE} && make build"),
    Step("the core from nothing", 150, "rm -rf target .venv/.extension && make build"),
    Step("CI", 3600, "git checkout -q . && .ci/run"),
]
#: Megabytes at most of what is built.
SIZES = {
    "the core": (20, "python/latlab/_core*.so"),
    "the wheel": (9, "dist/*.whl"),
}


def cpu_s() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(clone: Path, home: Path, chosen: Callable[[str], bool]) -> Iterator[dict[str, object]]:
    """A row for each step and each size. Ends the program where a command fails: its time says nothing."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
    environment = {**kept, "HOME": str(home)}
    for step in STEPS:
        if not chosen(step.what):
            continue
        print(f"{step.what}: {step.command}", flush=True)
        begin, cpu = time.monotonic(), cpu_s()
        done = subprocess.run(["bash", "-c", step.command], cwd=clone, env=environment, check=False)
        if done.returncode != 0:
            sys.exit(f"{step.command} failed with exit code {done.returncode}")
        yield {
            "what": step.what,
            "figure": round(time.monotonic() - begin, 1),
            "unit": "s",
            "cpu_s": round(cpu_s() - cpu, 1),
            "at_most": step.at_most_s,
            "load": round(os.getloadavg()[1], 1),
            **evidence.origin(step.command),
        }
    if not chosen("sizes"):
        return
    subprocess.run(["make", "wheel"], cwd=clone, env=environment, check=True)
    for what, (at_most, pattern) in SIZES.items():
        (file,) = clone.glob(pattern)
        figure = round(file.stat().st_size / 1e6, 1)
        same = {"unit": "MB", "cpu_s": "", "at_most": at_most, "load": "", **evidence.origin("make wheel")}
        yield {"what": what, "figure": figure, **same}


def table(rows: list[dict[str, str]]) -> str:
    """The newest row of each figure, as Markdown."""
    newest = {row["what"]: row for row in rows}
    lines = ["| what | command | took | of CPU time | at most |", "|---|---|---|---|---|"]
    for row in newest.values():
        cpu = f"{float(row['cpu_s']):.0f} s" if row["cpu_s"] else ""
        command, unit = row["command"].replace("|", "\\|"), row["unit"]
        took, most = (f"{float(row[name]):g} {unit}" for name in ("figure", "at_most"))
        lines.append(f"| {row['what']} | `{command}` | {took} | {cpu} | {most} |")
    last = rows[-1]
    return "\n".join(lines) + f"\n\nOn {last['machine']}, {last['date']}, commit {last['commit']}.\n"


def main(words: list[str]) -> None:
    """Measures the steps whose name holds one of these words; all where there is none."""
    place = Path(tempfile.mkdtemp(prefix="latlab-times-"))
    # Some tests run as an ordinary user.
    place.chmod(0o755)
    try:
        clone, home = place / "latlab", place / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        rows = evidence.read(FILE)
        for row in measured(clone, home, lambda what: not words or any(word in what for word in words)):
            rows.append({name: str(value) for name, value in row.items()})
            evidence.write(FILE, rows)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    GUIDE.write_text(before + BEGIN + table(rows) + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
