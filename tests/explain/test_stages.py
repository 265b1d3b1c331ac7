"""Stages that a program marks, joined with where its time went: each instant in one of both."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.explain.in_process import explain

from latlab.explain.model import Explained
from latlab.explain.table import stages

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.slow,
]

PROGRAM = """
import time
import latlab

with latlab.stage("waits"):
    time.sleep(0.3)
with latlab.stage("works", bytes=1_000_000):
    until = time.thread_time() + 0.3
    while time.thread_time() < until:
        with latlab.stage("within"):
            sum(range(20_000))
time.sleep(0.1)
"""


@pytest.fixture(scope="module", params=["1", "3"])
def ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """At the highest tracing level here and at the lowest."""
    file = tmp_path_factory.mktemp("stages") / "ledger.json"
    done = explain(
        "--no-limits", "--level", request.param, "--json", str(file), "--", sys.executable, "-c", PROGRAM
    )
    assert done.returncode == 0, done.stderr
    ledger: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
    return ledger


def stage(ledger: dict[str, Any], name: str) -> dict[str, Any]:
    return next(stage for stage in ledger["stages"] if stage["name"] == name)


def share(stage: dict[str, Any], *names: str) -> float:
    parts: list[float] = [part["share"] for part in stage["categories"] if part["name"] in names]
    return sum(parts)


def test_stages_sum_to_the_wall_time_and_their_parts_to_them(ledger: dict[str, Any]) -> None:
    assert sum(stage["share"] for stage in ledger["stages"]) == pytest.approx(1.0, abs=1e-4)
    for each in ledger["stages"]:
        assert sum(part["share"] for part in each["categories"]) == pytest.approx(each["share"], abs=1e-9)
    assert ledger["stages"][-1]["name"] == ""


def test_a_stage_that_sleeps_slept_and_one_that_works_was_on_the_cpu(ledger: dict[str, Any]) -> None:
    waits, works, within = (stage(ledger, name) for name in ("waits", "works", "within"))
    # A busy machine wakes a sleeper late.
    assert waits["thread_s"] >= 0.3
    # Known by samples of its state, of which there are few when the machine is busy.
    between_samples = ledger["wall_s"] / ledger["observer"]["looks"]
    assert waits["seconds"] == pytest.approx(waits["thread_s"], abs=max(0.1, 5 * between_samples))
    others = {part["name"] for part in waits["categories"]} - {"sleep", "run-queue-wait"}
    assert all(share(waits, "sleep") > share(waits, name) for name in others), waits
    # What fell between two scans, or was over before its reason was read, is said to be that.
    assert share(waits, "sleep", "run-queue-wait", "unexplained") >= 0.5 * waits["share"], waits
    # What it did on the CPU is known from samples, of which a slow machine allows few: the kernel's part may
    # be that of the whole program. That it waited for nothing but a CPU is known from its states.
    waits_for = ("sleep", "storage-wait", "network", "pipe", "locks", "waiting-for-children", "unexplained")
    assert share(within, *waits_for) <= 0.1 * within["share"], within
    assert works["thread_s"] >= 0.3
    assert works["thread_s"] - works["own_thread_s"] == pytest.approx(within["thread_s"], abs=1e-9)
    assert (works["count"], works["bytes"]) == (1, 1_000_000)
    assert within["count"] > 100


def test_what_lies_outside_is_said(ledger: dict[str, Any]) -> None:
    outside = ledger["stages"][-1]
    assert outside["seconds"] >= 0.1
    assert outside["count"] == 0


def test_the_stages_are_a_table(ledger: dict[str, Any]) -> None:
    lines = stages(msgspec.json.decode(json.dumps(ledger), type=Explained))
    assert lines[0].split() == ["stage", "share", "time", "times", "bytes", "a", "second", "spent", "on"]
    assert len(lines) == 5
    assert lines[-1].startswith("(outside stages)")


def test_a_shell_script_marks_by_lines(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    script = 'F=$LATLAB_STAGE_LINES; echo begin nap >> "$F"; sleep 0.5; echo end nap >> "$F"; sleep 0.1'
    done = explain("--no-limits", "--json", str(file), "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    nap = stage(json.loads(file.read_text(encoding="utf-8")), "nap")
    # The lines got the time at which they were seen: scans are a tenth of a second apart at most.
    assert nap["seconds"] >= 0.3
    # The rest is the start of a process, which takes as long as the machine likes, and waiting for a CPU.
    assert share(nap, "sleep", "waiting-for-children") >= 0.5 * nap["share"], nap
    started = ("on-cpu-or-ready", "run-queue-wait", "start-and-exit", "page-faults", "user-cpu", "compute")
    assert share(nap, "sleep", "waiting-for-children", *started) >= 0.9 * nap["share"], nap
