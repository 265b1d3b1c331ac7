"""Repeats every test that measures beside a busy loop on every CPU, and counts what fails.

    flaky.py [--only rust|python] [crate ...]

Every repetition runs the test programs of the crates that measure, or those named, then `pytest -m slow`.
LATLAB_TIMES says how many there are: 20 without it. A test that fails only here measures its neighbours, or
has found a defect. The exit code is 1 if any test failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMES = int(os.environ.get("LATLAB_TIMES", "20"))
#: A program that takes longer hangs: many times what the slowest takes on an idle machine.
LONGEST = "30m"
#: Crates without a clock, and the binding, which only an interpreter can load.
CALCULATE = {"latlab-python", "latlab-record", "latlab-stats", "recording"}
#: Ends when its parent has gone, however that ended.
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"

#: What failed in one run of a program: tests, each with its message.
Failures = list[tuple[str, str]]


@contextlib.contextmanager
def busy_cpus() -> Iterator[None]:
    """Keeps every CPU of this process busy."""
    loops: list[subprocess.Popen[bytes]] = []
    try:
        for cpu in os.sched_getaffinity(0):
            loops.append(subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]))
            os.sched_setaffinity(loops[-1].pid, {cpu})
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def rust_programs(crates: Sequence[str]) -> list[tuple[str, Path]]:
    """The test programs of these crates, each with the folder in which cargo would start it."""
    # The whole workspace: a selection would have its libraries compiled with other features than `make test`.
    command = ["cargo", "test", "--locked", "--workspace", "--tests", "--no-run", "--message-format=json"]
    python = {"PYO3_PYTHON": str(ROOT / ".venv/bin/python")}
    built = subprocess.check_output(command, cwd=ROOT, env={**python, **os.environ}, text=True)
    programs = []
    for message in map(json.loads, built.splitlines()):
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            folder = Path(message["manifest_path"]).parent
            if folder.name in crates or not (crates or folder.name in CALCULATE):
                programs.append((message["executable"], folder))
    return programs


def failures_of(command: Sequence[str], folder: Path, name: str, pattern: str) -> Failures:
    """Runs a test program; `pattern` finds each failed test and its message in what is printed."""
    done = subprocess.run(
        ["timeout", "--foreground", LONGEST, *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    failures = re.findall(pattern, done.stdout, flags=re.MULTILINE | re.DOTALL)
    if done.returncode != 0 and not failures:
        failures = [(f"exit code {done.returncode}", done.stdout[-300:])]
    return [(f"{name} {test}", " ".join(message.split())[:300]) for test, message in failures]


def rust_failures(program: str, folder: Path) -> Failures:
    """Runs one test program of a crate."""
    name = Path(program).name.rpartition("-")[0]
    return failures_of([program], folder, name, r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$)")


def python_failures() -> Failures:
    """Runs the tests marked `slow`."""
    command = [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-q", "-m", "slow", "--tb=no", "-rfE"]
    return failures_of(command, ROOT, "pytest", r"^(?:FAILED|ERROR) (tests/[^\n]+?)(?: - ([^\n]*))?$")


def main() -> int:
    """Repeats, and prints a table of what failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=["rust", "python"])
    parser.add_argument("crate", nargs="*")
    asked = parser.parse_args()
    programs = [] if asked.only == "python" else rust_programs(asked.crate)
    failed: dict[str, list[str]] = {}
    with busy_cpus():
        for repetition in range(1, TIMES + 1):
            failures = [one for program in programs for one in rust_failures(*program)]
            if asked.only != "rust":
                failures += python_failures()
            for test, message in failures:
                failed.setdefault(test, []).append(message)
            names = ", ".join(test for test, _ in failures)
            print(f"{repetition} of {TIMES}: {len(failures)} failed {names}", file=sys.stderr, flush=True)
    for test, messages in sorted(failed.items(), key=lambda row: -len(row[1])):
        print(f"{len(messages):3} of {TIMES}  {test}  {messages[0]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
