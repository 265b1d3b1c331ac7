"""Programs of every kind are explained without a change to them, to the watcher or to the machine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")

Told = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=[1, 3], ids=["as much as is allowed", "from /proc alone"])
def told(request: pytest.FixtureRequest) -> Told:
    """What became of each program."""
    program = Path(__file__).with_name("robust.py")
    done = subprocess.run(
        [sys.executable, str(program), str(request.param)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert done.returncode == 0, done.stderr
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("forks", 3),
        ("execs", 5),
        ("ignores signals", 6),
        ("exits at once", 0),
        ("takes two milliseconds", 0),
        ("starts 500 threads", 0),
        ("closes all descriptors", 9),
        ("leaves a child running", 4),
        ("drops its privileges", 7),
        ("does not exist", 127),
        ("cannot be executed", 126),
    ],
)
def test_the_exit_code_is_the_programs(told: Told, name: str, code: int) -> None:
    if name not in told:
        pytest.skip("needs root")
    assert told[name]["exit_code"] == code


def test_the_signal_that_ended_a_program_is_told(told: Told) -> None:
    assert told["is killed"]["signal"] == signal.SIGKILL
    assert told["crashes"]["signal"] == signal.SIGSEGV


def test_a_program_that_does_not_exist_is_told_in_one_line(told: Told) -> None:
    assert "no such program" in told["does not exist"]["not_started"]
    assert "\n" not in told["does not exist"]["not_started"]


def test_the_books_close_whatever_the_program_does(told: Told) -> None:
    for each in told.values():
        if "sum" in each:
            assert each["sum"] == pytest.approx(1.0, abs=1e-9), each
            assert each["closes"], each


def test_nothing_is_left_behind_and_nothing_changed(told: Told) -> None:
    for each in told.values():
        assert each["unchanged"] is True, each


def test_all_threads_are_followed(told: Told) -> None:
    assert told["starts 500 threads"]["threads"] >= 500


def test_a_process_that_goes_on_is_counted_and_left_alone(told: Told) -> None:
    assert told["leaves a child running"]["left_running"] == 1
    assert told["leaves a child running"]["wall_s"] < 4
