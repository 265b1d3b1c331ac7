from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from latlab.run.run import Run, load

Told = subprocess.CompletedProcess[str]
Command = Callable[..., Told]


@pytest.fixture(scope="session")
def file(root: Path) -> str:
    """A run file."""
    return str(root / "tests/data/run-small.latlab.jsonl")


@pytest.fixture(scope="session")
def run(file: str) -> Run:
    return load(file)


@pytest.fixture
def command(latlab: str, tmp_path: Path, own_home: Path) -> Command:
    """Runs the installed command in an empty folder, as a program without a terminal would."""
    place = tmp_path / "place"
    place.mkdir()

    def call(*arguments: str, **environment: str) -> Told:
        plain = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR"}}
        return subprocess.run(
            [latlab, *arguments],
            cwd=place,
            env=plain | {"HOME": str(own_home), "LC_ALL": "C.UTF-8"} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return call


@pytest.fixture
def place(command: Command, tmp_path: Path) -> Path:
    """The folder in which `command` runs."""
    return tmp_path / "place"
