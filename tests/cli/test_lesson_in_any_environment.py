"""A lesson's command shows the usual, whatever is set where it is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.environments import UNUSUAL

from latlab import environment


def lesson(tmp_path: Path, **more: str) -> tuple[dict[str, Any], str]:
    """What `latlab lesson list-cost` found with these variables, and what it said meanwhile."""
    told = subprocess.run(
        [sys.executable, "-m", "latlab", "lesson", "list-cost", "--small", "--plain", "--json", "-"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout), told.stderr


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
