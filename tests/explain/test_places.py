"""Where the time went by function and by line: of C programs with debug information, and of Python code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.explain.in_process import explain
from tests.some import some

from latlab.explain.model import Explained
from latlab.explain.places import places

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.slow,
]

C_PROGRAM = """\
#include <stdio.h>
#include <time.h>

static volatile unsigned long sum;

__attribute__((noinline)) static void heavy(void) {
    for (unsigned long at = 0; at < 3000000; at++)
        sum += at * at;
}

__attribute__((noinline)) static void light(void) {
    for (unsigned long at = 0; at < 1000000; at++)
        sum += at * 3;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(void) {
    double heavies = 0, lights = 0;
    while (now() < 0.6) {
        double begin = now();
        heavy();
        double middle = now();
        light();
        heavies += middle - begin;
        lights += now() - middle;
    }
    printf("{\\"heavy\\": %f, \\"light\\": %f}", heavies, lights);
    return 0;
}
"""
FEW = 20
"""With fewer samples one of two functions may have none."""
HEAVY, LIGHT = range(6, 10), range(11, 15)

PYTHON_PROGRAM = """\
import time

def f():
    until = time.perf_counter() + 1.5
    while time.perf_counter() < until:
        sum(range(100_000))
        time.sleep(0.003)
    g()

def g():
    until = time.perf_counter() + 0.7
    while time.perf_counter() < until:
        sum(range(100_000))
        time.sleep(0.003)

class Waiter:
    def wait(self):
        time.sleep(0.3)

# On a busy machine the first scan comes late, and what was before it is in no share.
time.sleep(0.3)
f()
Waiter().wait()
"""
LINES = {"f": (5, 6, 7), "g": (12, 13, 14)}


def explained(
    folder: Path, level: str, *program: str, by: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    file = folder / "ledger.json"
    result = explain("--no-limits", "--level", level, "--by", by, "--json", str(file), "--", *program)
    assert result.returncode == 0, result.stderr
    return result, json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def two_functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc here")
    folder = tmp_path_factory.mktemp("two")
    (folder / "two.c").write_text(C_PROGRAM, encoding="utf-8")
    subprocess.run(["gcc", "-O1", "-g", "-o", "two", "two.c"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module", params=["1", "2"])
def compiled(
    request: pytest.FixtureRequest, two_functions: Path
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """A C program with line tables, with the kernel and without."""
    result, ledger = explained(two_functions, request.param, str(two_functions / "two"), by="line")
    seen = {level["level"]: level for level in ledger["levels"]}[int(request.param)]
    if not seen["available"]:
        pytest.skip(f"nothing may be sampled here: {seen['reason']}")
    assert ledger["observer"]["samples"] >= FEW, ledger["observer"]
    return result, ledger


def test_functions_and_lines_sum_to_the_time_on_the_cpu(
    compiled: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    _, ledger = compiled
    for table in ("symbols", "lines"):
        rows = ledger[table]
        assert sum(row["cpu_share"] for row in rows) == pytest.approx(1.0, abs=1e-6)
        # Both tables are of the same time, which is no more than there was.
        assert sum(row["share"] for row in rows) <= 1 + 1e-6
        for row in some(rows):
            assert 0 <= row["low"] <= row["share"] <= row["high"] <= 1
    sums = [sum(row["share"] for row in ledger[table]) for table in ("symbols", "lines")]
    assert sums[0] == pytest.approx(sums[1], abs=1e-6)


def test_functions_are_in_the_order_that_the_programs_own_clock_gives(
    compiled: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    result, ledger = compiled
    own = json.loads(result.stdout)
    rows = {row["name"]: row for row in ledger["symbols"] if row["object"] == "two"}
    assert set(rows) >= {"heavy", "light"}
    more, less = sorted(("heavy", "light"), key=lambda name: -own[name])
    # On a busy machine there are few samples: what their intervals say holds.
    assert rows[more]["high"] > rows[less]["low"]


def test_lines_are_those_of_the_loops(
    compiled: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    result, ledger = compiled
    found = {
        (row["function"], row["line"]) for row in ledger["lines"] if row.get("file", "").endswith("two.c")
    }
    assert {line for function, line in found if function == "heavy"} & set(HEAVY)
    assert {line for function, line in found if function == "light"} & set(LIGHT)
    assert not {line for function, line in found if function == "heavy"} - set(HEAVY)
    assert "two.c:" in result.stderr
    assert "line tables" in result.stderr


def test_without_samples_no_function_is_named_and_it_is_said_and_nothing_of_python(tmp_path: Path) -> None:
    result, ledger = explained(tmp_path, "3", "sleep", "0.1", by="symbol")
    assert "symbols" not in ledger
    assert "python" not in ledger
    assert "nothing was sampled" in result.stderr
    assert "Python" not in result.stderr
    decoded = msgspec.json.decode(json.dumps(ledger), type=Explained)
    assert places(decoded, None) == []


@pytest.fixture(scope="module", params=["1", "3"])
def interpreted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """A Python program, at the highest tracing level here and at the lowest."""
    folder = tmp_path_factory.mktemp("python")
    script = folder / "two.py"
    script.write_text(PYTHON_PROGRAM, encoding="utf-8")
    result, ledger = explained(folder, request.param, sys.executable, "-I", "-S", str(script), by="line")
    if ledger["python"].get("refused"):
        pytest.skip(f"no memory may be read here: {ledger['python']['refused']}")
    assert ledger["python"]["reads"] >= FEW, ledger["python"]
    return result, ledger


def test_python_functions_and_lines_are_found_and_sum_to_wall_time(
    interpreted: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    result, ledger = interpreted
    python = ledger["python"]
    for table in ("functions", "lines"):
        assert sum(row["share"] for row in python[table]) == pytest.approx(1.0, abs=1e-6)
    shares = {row["name"]: row for row in python["functions"]}
    # Of wall time, as the program's own clock: the same on a busy machine.
    assert shares["f"]["share"] > shares["g"]["share"]
    # A call of a function of a class bears the name of both where the interpreter keeps it.
    waiter = next(row for name, row in shares.items() if name.endswith("wait"))
    # Sleeping cannot be over sooner, and is no work. On a busy machine looks at it are few.
    assert waiter["high"] * ledger["wall_s"] > 0.25
    assert waiter["busy_share"] < shares["f"]["busy_share"]
    for name, lines in LINES.items():
        found = [row for row in python["lines"] if row["name"] == name]
        assert set(lines) & {row["line"] for row in found}
        assert all(row["file"].endswith("two.py") for row in some(found))
    assert "two.py:" in result.stderr


def test_what_calls_is_distinguished_from_what_runs(
    interpreted: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    _, ledger = interpreted
    python = ledger["python"]
    heaviest = max(python["stacks"], key=lambda stack: float(stack["share"]))
    assert heaviest["frames"][0] == "<module>"
    assert python["torn"] <= 0.1 * python["reads"]
    functions = {row["name"]: row for row in python["functions"]}
    both = functions["f"]["share"] + functions["g"]["share"]
    assert functions["f"]["within"] == pytest.approx(both, abs=1e-6)
