from __future__ import annotations

from pathlib import Path

import pytest

from latlab.run.run import Run, load


@pytest.fixture(scope="session")
def run(root: Path) -> Run:
    return load(root / "tests/data/run-small.latlab.jsonl")
