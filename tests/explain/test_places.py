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

from latlab.explain.model import Explained
from latlab.explain.places import places

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")

C_PROGRAM = """\
#include <stdio.h>
#include <time.h>

static volatile unsigned long sum;

__attribute__((noinline)) static void heavy(void) {
    for (unsigned long at = 0; at < 30000000; at++)
        sum += at * at;
}

__attribute__((noinline)) static void light(void) {
    for (unsigned long at = 0; at < 10000000; at++)
        sum += at * 3;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(void) {
    double heavies = 0, lights = 0;
    for (int run = 0; run < 4; run++) {
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
import json, sys, time

def f():
    total = 0
    for at in range(300_000):
        total += at * at
    return total

def g():
    total = 0
    for at in range(300_000):
        total += at + at
    return total

class Waiter:
    def wait(self):
        time.sleep(0.3)

spent = {"f": 0.0, "g": 0.0}
for turn in range(20):
    name = "g" if turn % 10 >= 7 else "f"
    begin = time.thread_time()
    globals()[name]()
    spent[name] += time.thread_time() - begin
Waiter().wait()
print(json.dumps(spent))
"""
LINES = {"f": (5, 6), "g": (11, 12)}


def explain(
    folder: Path, level: str, *program: str, by: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    file = folder / "ledger.json"
    command = [sys.executable, "-m", "latlab", "explain", "--level", level, "--by", by, "--runs", "1"]
    told = subprocess.run(
        [*command, "--json", str(file), "--", *program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return told, json.loads(file.read_text(encoding="utf-8"))


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
    told, ledger = explain(two_functions, request.param, str(two_functions / "two"), by="line")
    if ledger["observer"]["samples"] < FEW:
        pytest.skip("nothing may be sampled here, or too little")
    return told, ledger


def test_functions_and_lines_sum_to_the_time_on_the_cpu(
    compiled: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    _, ledger = compiled
    for table in ("symbols", "lines"):
        rows = ledger[table]
        assert sum(row["cpu_share"] for row in rows) == pytest.approx(1.0, abs=1e-6)
        # Both tables are of the same time, which is no more than there was.
        assert sum(row["share"] for row in rows) <= 1 + 1e-6
        for row in rows:
            assert 0 <= row["low"] <= row["share"] <= row["high"] <= 1
    sums = [sum(row["share"] for row in ledger[table]) for table in ("symbols", "lines")]
    assert sums[0] == pytest.approx(sums[1], abs=1e-6)


def test_functions_are_in_the_order_that_the_programs_own_clock_gives(
    compiled: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    told, ledger = compiled
    own = json.loads(told.stdout)
    shares = {row["name"]: row["share"] for row in ledger["symbols"] if row["object"] == "two"}
    assert set(shares) >= {"heavy", "light"}
    assert (shares["heavy"] > shares["light"]) == (own["heavy"] > own["light"])


def test_lines_are_those_of_the_loops(
    compiled: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    told, ledger = compiled
    found = {
        (row["function"], row["line"]) for row in ledger["lines"] if row.get("file", "").endswith("two.c")
    }
    assert {line for function, line in found if function == "heavy"} & set(HEAVY)
    assert {line for function, line in found if function == "light"} & set(LIGHT)
    assert not {line for function, line in found if function == "heavy"} - set(HEAVY)
    assert "two.c:" in told.stderr
    assert "line tables" in told.stderr


def test_without_samples_no_function_is_named_and_it_is_said(two_functions: Path) -> None:
    told, ledger = explain(two_functions, "3", str(two_functions / "two"), by="symbol")
    assert "symbols" not in ledger
    assert "python" not in ledger
    assert "Functions cannot be told" in told.stderr
    decoded = msgspec.json.decode(json.dumps(ledger), type=Explained)
    assert places(decoded, None) == []


@pytest.fixture(scope="module", params=["1", "3"])
def interpreted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """A Python program, at the most sight that there is here, and at the least."""
    folder = tmp_path_factory.mktemp("python")
    script = folder / "two.py"
    script.write_text(PYTHON_PROGRAM, encoding="utf-8")
    told, ledger = explain(folder, request.param, sys.executable, "-I", "-S", str(script), by="line")
    if ledger.get("python", {}).get("reads", 0) < FEW:
        pytest.skip(f"no memory may be read here: {ledger.get('python')}")
    return told, ledger


def test_python_functions_and_lines_are_found_and_sum_to_wall_time(
    interpreted: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    told, ledger = interpreted
    python, own = ledger["python"], json.loads(told.stdout)
    for table in ("functions", "lines"):
        assert sum(row["share"] for row in python[table]) == pytest.approx(1.0, abs=1e-6)
    shares = {row["name"]: row for row in python["functions"]}
    assert (shares["f"]["share"] > shares["g"]["share"]) == (own["f"] > own["g"])
    # A call of a function of a class bears the name of both where the interpreter keeps it.
    waiter = next(row for name, row in shares.items() if name.endswith("wait"))
    # Sleeping cannot be over sooner, and is no work.
    assert waiter["share"] * ledger["wall_s"] > 0.2
    assert waiter["busy_share"] < shares["f"]["busy_share"]
    for name, lines in LINES.items():
        found = [row for row in python["lines"] if row["name"] == name]
        assert set(lines) & {row["line"] for row in found}
        assert all(row["file"].endswith("two.py") for row in found)
    assert "two.py:" in told.stderr


def test_what_calls_is_told_from_what_runs(
    interpreted: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    _, ledger = interpreted
    python = ledger["python"]
    heaviest = max(python["stacks"], key=lambda stack: float(stack["share"]))
    assert heaviest["frames"][0] == "<module>"
    assert python["torn"] <= 0.1 * python["reads"]
    module = [
        row for row in python["functions"] if row["name"] == "<module>" and row["file"].endswith("two.py")
    ]
    assert all(row["within"] >= row["share"] for row in module)


def test_nothing_is_said_of_python_where_there_is_none(tmp_path: Path) -> None:
    told, ledger = explain(tmp_path, "3", "sleep", "0.1", by="symbol")
    assert "python" not in ledger
    assert "Python" not in told.stderr
