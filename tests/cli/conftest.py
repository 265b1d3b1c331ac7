from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import calling

from latlab.run.run import Run, load

Reported = subprocess.CompletedProcess[str]
Command = Callable[..., Reported]


@pytest.fixture(scope="session")
def file(root: Path) -> str:
    """A run file."""
    return str(root / "tests/data/run-small.latlab.jsonl")


@pytest.fixture(scope="session")
def rounds(root: Path) -> str:
    """One with the lines of its rounds."""
    return str(root / "tests/data/run-rounds.latlab.jsonl")


@pytest.fixture(scope="session")
def run(file: str) -> Run:
    return load(file)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The empty folder in which `command` and `called` run."""
    place = tmp_path / "place"
    place.mkdir()
    return place


@pytest.fixture
def environment(own_home: Path) -> dict[str, str]:
    """As without a terminal."""
    plain = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR"}}
    return plain | {"HOME": str(own_home), "LC_ALL": "C.UTF-8"}


@pytest.fixture
def command(latlab: str, place: Path, environment: dict[str, str]) -> Command:
    """Runs the installed command in an empty folder, as a program without a terminal would."""

    def call(*arguments: str, **more: str) -> Reported:
        return subprocess.run(
            [latlab, *arguments],
            cwd=place,
            env=environment | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return call


@pytest.fixture
def called(place: Path, environment: dict[str, str]) -> Command:
    """The same without a process of its own."""

    def call(*arguments: str, **more: str) -> Reported:
        return calling.called(arguments, place, environment | more)

    return call
