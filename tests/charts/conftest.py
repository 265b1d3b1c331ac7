from __future__ import annotations

from pathlib import Path

import pytest

from latlab.run.run import Run, load


@pytest.fixture(scope="session")
def run(root: Path) -> Run:
    return load(root / "tests/data/run-small.latlab.jsonl")


@pytest.fixture(scope="session")
def empty(run: Run) -> Run:
    """A run that was stopped before its first record."""
    return Run(run.header, (), None)
