"""A lesson's command shows the usual whatever is set where it is started, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.environments import UNUSUAL

from latlab import environment


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("name", ["small-files", "io-bottleneck", "downloads"])
def test_a_lesson_that_is_ended_leaves_nothing(name: str, number: signal.Signals, tmp_path: Path) -> None:
    # Seconds of measuring follow the first file, at the smallest size too.
    command = [sys.executable, "-m", "latlab", "lesson", name, "--small", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("latlab-lesson-*/[!l]*")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number), said
    assert list(tmp_path.iterdir()) == []


def lesson(tmp_path: Path, **more: str) -> tuple[dict[str, Any], str]:
    """What `latlab lesson list-cost` found with these variables, and what it said meanwhile."""
    result = subprocess.run(
        [sys.executable, "-m", "latlab", "lesson", "list-cost", "--small", "--plain", "--json"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def test_what_changes_programs_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    found, said = lesson(tmp_path, **UNUSUAL, PYTHONHASHSEED="1", LD_PRELOAD="/gone/allocator.so")
    names = ", ".join(sorted([*UNUSUAL, "PYTHONHASHSEED", "LD_PRELOAD"]))
    assert found["machine"]["environment"] == f"without {names}"
    assert f"measuring without {names}" in said
    found, said = lesson(tmp_path)
    assert "environment" not in found["machine"]
    assert "measuring" not in said


@pytest.mark.parametrize("name", UNUSUAL)
def test_each_is_known_and_said_where_it_could_not_be_left_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert environment.said() == ""
    assert environment.without() is None
    monkeypatch.setenv(name, UNUSUAL[name])
    assert environment.said() == f"with {name} set"
    kept = environment.without()
    assert kept is not None
    assert name not in kept
    for each, text in kept.items():
        monkeypatch.setenv(each, text)
    assert environment.without() is None, "it starts again once only"


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "LD_LIBRARY_PATH"])
def test_where_python_keeps_its_files_is_the_users_matter(name: str) -> None:
    assert environment.changing({name: "x"}) == []
