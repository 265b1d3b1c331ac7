from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from latlab import lessons
from latlab.lessons.model import Result

Found = Callable[[str], Result]


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the lessons work; nothing may be left in it."""
    return tmp_path_factory.mktemp("lessons")


@pytest.fixture(scope="session")
def found(place: Path) -> Found:
    """Each lesson once at its smallest size, for all tests that look at its result."""

    @cache
    def run(name: str) -> Result:
        return lessons.run(name, "small", directory=place)

    return run
