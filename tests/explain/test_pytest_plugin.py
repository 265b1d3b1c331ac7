"""The pytest plugin: what a test with budgets says when they are held, broken, unknown, or none."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from tests.explain.ledgers import ledger
from tests.pages import ROOT, python_blocks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")
pytest_plugins = ["pytester"]

PAGE = ROOT / "docs/how-to/gate-a-test.md"
#: A core that was built before the plugin was declared has no entry point of it.
PLUGIN = [] if entry_points(group="pytest11", name="latlab") else ["-p", "latlab.pytest_plugin"]

Outcome = Callable[..., pytest.RunResult]


@pytest.fixture
def outcome(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Runs a test in a process of ours, on a ledger that nobody measured."""

    def call(test: str, *more: str, **shares: float) -> pytest.RunResult:
        explained = ledger(
            {name.replace("_", "-"): share for name, share in shares.items()},
            counters={"minor_faults": 5000.0},
        )
        monkeypatch.setattr("latlab.explain.apart.explain_apart", lambda *_, **__: explained)
        monkeypatch.setattr("latlab.explain.gated.explain_apart", lambda *_, **__: explained)
        pytester.makepyfile(test)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *PLUGIN, *more)

    return call


HELD = """
def test_the_program_keeps_its_budgets(latlab_gate):
    ledger = latlab_gate(["./prog"], wait_disk="5 %", page_faults="50 per request", requests=100)
    assert ledger.share("storage-wait") == 0.02
"""


def test_a_budget_that_is_held_passes_and_its_figure_is_kept(
    outcome: Outcome, pytester: pytest.Pytester
) -> None:
    outcome(HELD, "--junit-xml=junit.xml", storage_wait=0.02).assert_outcomes(passed=1)
    kept = (pytester.path / "junit.xml").read_text(encoding="utf-8")
    assert 'name="latlab wait_disk" value="wait_disk is 2.0 % (1.0–3.0 %) of 10.0 s, allowed: 5.0 %"' in kept
    assert 'value="page_faults is 50 per request, allowed: 50 per request"' in kept


def test_a_broken_budget_fails_on_the_users_line_with_the_figure(outcome: Outcome) -> None:
    done = outcome(HELD, storage_wait=0.2)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            '>   *latlab_gate([[]"./prog"[]], wait_disk=*',
            "E   *Failed: latlab_gate: ./prog takes more than it may:",
            "E   *wait_disk is 20 % (19–21 %) of 10.0 s, allowed: 5.0 %",
            "test_*.py:2: Failed",
        ]
    )
    assert "pytest_plugin.py" not in done.stdout.str()


def test_what_cannot_be_determined_skips_with_the_reason_or_fails_if_the_test_says_so(
    outcome: Outcome,
) -> None:
    done = outcome(HELD, "-rs", storage_wait=0.05)
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*./prog: wait_disk is 5.0 % (4.0–6.0 %)*cannot tell*"])
    strict = HELD.replace("requests=100", 'requests=100, undecided="fail"')
    done = outcome(strict, storage_wait=0.05)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E   *Failed: latlab_gate: ./prog, not known:", "E   *wait_disk is 5.0 %*"])


MARKED = """
import pytest

pytestmark = pytest.mark.latlab(sleep="15 %")

@pytest.mark.latlab(wait_disk="5 %")
class TestProgram:
    def test_all_marks_hold(self, latlab_gate):
        latlab_gate(["./prog"])

    @pytest.mark.latlab(wait_disk="50 %", sleep="50 %")
    def test_the_nearest_mark_wins(self, latlab_gate):
        latlab_gate(["./prog"])

    def test_what_the_call_says_wins(self, latlab_gate):
        latlab_gate(["./prog"], wait_disk="50 %", sleep="50 %")
"""


def test_marks_of_a_test_its_class_and_its_module_are_budgets(outcome: Outcome) -> None:
    done = outcome(MARKED, "--strict-markers", storage_wait=0.2, sleep=0.2)
    done.assert_outcomes(failed=1, passed=2)
    done.stdout.fnmatch_lines(["E   *sleep is 20 %*allowed: 15 %", "E   *wait_disk is 20 %*allowed: 5.0 %"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            'wait_dsk="5 %"',
            "latlab_gate: wait_dsk: is no budget; did you mean wait_disk? There are: wall, cpu, *",
        ),
        ("wall=2", 'latlab_gate: wall: 2 has no unit: write it as "2 s"'),
        ("", "latlab_gate: no budget: write *"),
    ],
)
def test_a_mistake_is_said_on_the_users_line(outcome: Outcome, given: str, words: str) -> None:
    done = outcome(f'def test(latlab_gate):\n    latlab_gate(["true"], {given})\n')
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([f"E   *Failed: {words}", "*:2: Failed"])


def test_a_mark_without_a_name_is_a_mistake(outcome: Outcome) -> None:
    test = '@__import__("pytest").mark.latlab("5 %")\ndef test(latlab_gate):\n    pass\n'
    done = outcome(test)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*@pytest.mark.latlab: '5 %' has no name: write wall=\"2 s\""])


# ---- for real


REAL = """
import sys

PYTHON = [sys.executable, "-I", "-S", "-c"]

def test_faults(latlab_gate):
    latlab_gate([*PYTHON, "bytearray(50_000 << 12).__setitem__(slice(None, None, 4096), bytes(50_000))"],
                page_faults=40_000)

def test_sleeps(latlab_gate, monkeypatch, tmp_path):
    monkeypatch.setenv("OWN", "x")
    monkeypatch.chdir(tmp_path)
    program = "import os, time; print(os.environ['OWN'], os.getcwd()); time.sleep(0.3)"
    latlab_gate([*PYTHON, program], wall="100 ms")

def test_fails(latlab_gate):
    latlab_gate([*PYTHON, "import sys; sys.exit('no such table')"], wall="60 s")

def test_takes_too_long(latlab_gate):
    latlab_gate(["sleep", "600"], wall="60 s", timeout="0.3 s")

def test_is_not_there(latlab_gate):
    latlab_gate(["./none"], wall="60 s")

def test_keeps_its_budgets(latlab_gate):
    assert latlab_gate([*PYTHON, "pass"], page_faults=40_000, wall="60 s", runs=2).runs == 2
"""


@pytest.mark.slow
def test_programs_are_run_in_the_tests_folder_and_environment(
    pytester: pytest.Pytester, own_home: Path, calibrated: Callable[[Path], None]
) -> None:
    calibrated(own_home / "data")
    pytester.makepyfile(REAL)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", *PLUGIN, "-v")
    done.assert_outcomes(failed=5, passed=1)
    done.stdout.fnmatch_lines(
        [
            "E   *page_faults is 5*, allowed: 40,000*",
            "E   *wall is *ms, allowed: 100 ms. python* spends * sleeping*",
            "x /*test_sleeps*",
            "E   *ended with exit code 1",
            "no such table",
            "E   *sleep 600 took more than its time",
            "E   *./none cannot be started: *",
        ]
    )


@pytest.mark.slow
def test_the_tests_of_the_page_pass(
    pytester: pytest.Pytester, own_home: Path, calibrated: Callable[[Path], None]
) -> None:
    calibrated(own_home / "data")
    (example,) = python_blocks(PAGE)
    pytester.makepyfile(test_report=example)
    for name, text in (("data.csv", "1,2\n" * 1000), ("empty.csv", "")):
        (pytester.path / name).write_text(text, encoding="ascii")
    program = "import csv, sys\nprint(sum(int(row[0]) for row in csv.reader(open(sys.argv[1]))))\n"
    (pytester.path / "report.py").write_text(program, encoding="ascii")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--strict-markers", *PLUGIN)
    found = done.parseoutcomes()
    # On a busy machine a share may be too uncertain to be held against a limit.
    assert set(found) <= {"passed", "skipped"}, done.stdout.str()
    assert found["passed"] >= 1
    assert sum(found.values()) == 4


# ---- for people who do not use it


def test_the_plugin_is_declared_where_pytest_looks() -> None:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"latlab": "latlab.pytest_plugin"}


def test_loading_the_plugin_imports_nothing_of_latlab_but_itself() -> None:
    program = (
        "import pytest, sys; before = set(sys.modules); import latlab.pytest_plugin"
        "; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["latlab", "latlab.pytest_plugin"]
