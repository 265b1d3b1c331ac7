"""Plants the defects of tools/mutants.toml in a copy of the package, one at a time, for the tests to catch.

    mutants.py          all of them, into benches/results/mutants-python.csv
    mutants.py TEXT     those of files with TEXT in their names, printed only

Ends with 1 if fewer than nine tenths of those that can be caught are.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import evidence  # noqa: E402 - found from the project's folder

PACKAGE = ROOT / "python" / "latlab"
TABLE = "mutants-python.csv"
LEAST = 0.9


class Mutant(NamedTuple):
    """A defect: a file of the package, its text, what replaces it, the tests that must catch it."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""
    """Why no test can catch it."""


class First:
    """For pytest: remembers the first test that failed."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has ended."""
        self.name = self.name or (report.nodeid if report.failed else "")


def tested(mutant: Mutant) -> tuple[int, str, str]:
    """In a process of its own: pytest's exit code, the first test that failed, what was printed.

    Raises:
        ValueError: the mutant's text is not there once, or the tests had another package.
    """
    first, printed = First(), io.StringIO()
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(printed):
        copy = Path(place) / "latlab"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.so"))
        for core in PACKAGE.glob("*.so"):
            (copy / core.name).symlink_to(core)
        if mutant.old:
            before, *after = (copy / mutant.file).read_text(encoding="utf-8").split(mutant.old)
            if len(after) != 1:
                raise ValueError(f"{mutant.file} has {mutant.old!r} {len(after)} times, not once")
            (copy / mutant.file).write_text(before + mutant.new + after[0], encoding="utf-8")
        os.environ |= {"PYTHONPATH": place, "HYPOTHESIS_STORAGE_DIRECTORY": f"{place}/hypothesis"}
        sys.path.insert(0, place)
        options = ["-x", "-q", f"--basetemp={place}/tests", "--override-ini=cache_dir=.pytest_cache/mutants"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = pytest.main([*options, *mutant.tests], plugins=[first])
        if Path(importlib.import_module("latlab").__file__ or "").parent != copy:
            raise ValueError("the tests ran with another package")
    return code, first.name, printed.getvalue()


def judged(mutant: Mutant) -> tuple[str, str]:
    """`caught`, and by which test; `missed`; or `equivalent`, and why."""
    code, failed, printed = tested(mutant)
    if code == pytest.ExitCode.TESTS_FAILED:
        return "caught", failed
    if code != pytest.ExitCode.OK:
        raise ValueError(f"{mutant.file}: {mutant.old} -> {mutant.new}\n{printed}")
    return ("equivalent", mutant.equivalent) if mutant.equivalent else ("missed", "")


def main(arguments: Sequence[str]) -> int:
    """Judges all; returns the exit code."""
    os.chdir(ROOT)
    files = tomllib.loads(Path("tools/mutants.toml").read_text(encoding="utf-8"))
    chosen = [
        Mutant(file, old, new, tuple(about["tests"]), *equivalent)
        for file, about in files.items()
        for old, new, *equivalent in about["mutants"]
        if not arguments or arguments[0] in file
    ]
    for name in ("hypothesis.strategies", "numpy", "syrupy"):  # Once for all processes.
        importlib.import_module(name)
    found = []
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        every = tuple(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
        code, _, printed = pool.apply(tested, [Mutant("", "", "", every)])
        if code != pytest.ExitCode.OK:
            print(f"the tests fail without any defect:\n{printed}")
            return 1
        for mutant, outcome in zip(chosen, pool.imap(judged, chosen), strict=True):
            found.append((mutant.file, f"{mutant.old.strip()} -> {mutant.new}", *outcome))
            print(*found[-1], sep="  ", flush=True)
    if not arguments:
        origin = evidence.origin("make mutants")
        columns = ("file", "mutant", "outcome", "reason")
        evidence.write(TABLE, [origin | dict(zip(columns, row, strict=True)) for row in found])
    caught, missed = (sum(outcome == row[2] for row in found) for outcome in ("caught", "missed"))
    print(f"{caught} of {caught + missed} caught")
    return 0 if caught >= LEAST * (caught + missed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
