from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from latlab.run.run import Run, load
from latlab.view.drawing import unchecked


@pytest.fixture(scope="session")
def run(root: Path) -> Run:
    return load(root / "tests/data/run-small.latlab.jsonl")


@pytest.fixture(scope="session")
def empty(run: Run) -> Run:
    """A run that was stopped before its first record."""
    return Run(run.header, (), None)


@pytest.fixture(scope="session", autouse=True)
def drawn_as_for_a_report() -> Iterator[None]:
    """Whole charts are checked, by `against_its_schema`, not each of their parts as well."""
    with unchecked():
        yield
