"""Runs a test command; what failed in it is tried once more, alone, and said.

    run_tests.py cargo ... test [arguments]
    run_tests.py ... pytest [arguments]

Tests of what measures a machine share it: with each other, with the tests of the emulator, and often with
other people's work. One that a neighbour spoilt (a fork makes every page of the process fault, a thread gets
no CPU for a second) holds in a process of its own; a defect does not. Both are shown: the first failure in
full, and the list of what held alone, at the end, where `.ci/run` repeats it. Such a test is to be mended all
the same.

More than twenty failures are no matter of neighbours, and neither is a program that does not compile or that
died.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

#: More than so many are not tried again.
MOST = 20
#: What pytest's exit code says when tests failed and nothing else went wrong.
TESTS_FAILED = 1


class Outcome(NamedTuple):
    """How a command ended: its exit code and what it printed."""

    code: int
    text: str


def run(command: Sequence[str]) -> Outcome:
    """Runs it; what it prints is passed on as it comes."""
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None  # noqa: S101 - it was asked for
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line)
    return Outcome(process.returncode, "".join(lines))


def failed_in_rust(text: str) -> list[str] | None:
    """The tests that libtest's closing lists name; None when a program failed without such a list."""
    # Each program's output ends where cargo begins the next or says that this one failed.
    names: list[str] = []
    for part in re.split(r"^error: test failed, to rerun pass .*$", text, flags=re.MULTILINE)[:-1]:
        program = re.split(r"^ +Running .*$", part, flags=re.MULTILINE)[-1]
        listed = re.findall(r"^failures:\n((?: {4}\S+\n)+)", program, flags=re.MULTILINE)
        if not listed:
            return None
        names += listed[-1].split()
    return list(dict.fromkeys(names)) or None


def failed_in_python(outcome: Outcome) -> list[str] | None:
    """The tests that pytest's short summary names; None when something else than a test failed."""
    if outcome.code != TESTS_FAILED:
        return None
    named = re.findall(
        r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.*?)?)(?: - .*)?$", outcome.text, flags=re.MULTILINE
    )
    return list(dict.fromkeys(named)) or None


def rust_alone(command: Sequence[str], names: Sequence[str]) -> tuple[list[str], Outcome]:
    """Runs these tests and no others, one after another."""
    again = [*command, "--", "--exact", "--test-threads=1", *names]
    outcome = run(again)
    held = sum(map(int, re.findall(r"^test result: ok\. (\d+) passed", outcome.text, flags=re.MULTILINE)))
    return again, outcome if held >= len(names) else outcome._replace(code=outcome.code or 1)


def python_alone(command: Sequence[str], names: Sequence[str]) -> tuple[list[str], Outcome]:
    """The same with pytest: in its own process, without workers."""
    again = [*command, "--numprocesses=0", *names]
    return again, run(again)


def main(command: Sequence[str]) -> int:
    """Runs the command, and what failed once more; returns the exit code."""
    in_rust = "test" in command
    if in_rust:
        verb = command.index("test") + 1
        command = [*command[:verb], "--no-fail-fast", *command[verb:]]
    first = run(command)
    if first.code == 0:
        return 0
    names = failed_in_rust(first.text) if in_rust else failed_in_python(first)
    if names is None or len(names) > MOST or "--" in command:
        return first.code
    print(f"\nfailed beside others, now alone: {', '.join(names)}", flush=True)
    again, second = (rust_alone if in_rust else python_alone)(command, names)
    if second.code != 0:
        print(f"failed alone too: {' '.join(again)}")
        return second.code
    for name in names:
        print(f"held only alone: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
