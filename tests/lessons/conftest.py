from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from latlab import lessons
from latlab.lessons.document import document
from latlab.lessons.model import Result
from latlab.report.document import Document

Found = Callable[[str], Result]
Made = Callable[[str], Document]


@pytest.fixture(autouse=True, scope="session")
def programs_are_compiled(compilers: None) -> None:
    """Lessons have programs in several languages."""


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


@pytest.fixture(scope="session")
def made(found: Found) -> Made:
    """The page of each lesson before it is rendered."""
    return cache(lambda name: document(found(name)))


@pytest.fixture
def result(found: Found, request: pytest.FixtureRequest) -> Result:
    """Of the lesson that the file of the test is named after."""
    return found(request.path.stem.removeprefix("test_").replace("_", "-"))
