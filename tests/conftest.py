"""What all tests share: where the project is, and a home of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or fills the run folder of the person who runs it."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    return home


@pytest.fixture(scope="session")
def latlab() -> str:
    """The command as it is installed beside the interpreter that runs the tests."""
    name = "latlab.exe" if os.name == "nt" else "latlab"
    return str(Path(sys.executable).parent / name)
