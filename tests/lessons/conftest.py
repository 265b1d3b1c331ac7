from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.compiling import alone
from tests.conftest import Calibrated

from latlab import lessons
from latlab.lessons import compiled
from latlab.lessons.document import document
from latlab.lessons.experiments import linked_list, small_files
from latlab.lessons.experiments.io_bottleneck import workshop
from latlab.lessons.model import Result
from latlab.report.document import Document

HERE = Path(__file__).parent
Found = Callable[[str], Result]
Made = Callable[[str], Document]
CompiledOnce = Callable[[], AbstractContextManager[None]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What looks at a lesson's result needs the whole lesson."""
    for item in items:
        if isinstance(item, pytest.Function) and "found" in item.fixturenames and item.path.parent == HERE:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="session")
def programs_are_compiled(compilers: None) -> None:
    """Lessons have programs in several languages."""


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the lessons work; nothing may be left in it."""
    return tmp_path_factory.mktemp("lessons")


@pytest.fixture(scope="session")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> CompiledOnce:
    """In whose context each program of io-bottleneck is compiled by the first who builds it."""
    kept, build = tmp_path_factory.mktemp("compiled"), compiled.built

    def once(language: str, source: Path, place: Path) -> Path:
        program = kept / place.name
        with alone():
            if not program.exists():
                shutil.copy(build(language, source, place), program)
        return program

    @contextmanager
    def context() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workshop, "built", once)
            yield

    return context


@pytest.fixture(scope="session")
def found(place: Path, compiled_once: CompiledOnce, calibrated: Calibrated) -> Found:
    """Each lesson once at its smallest size, for all tests that look at its result."""

    @cache
    def run(name: str) -> Result:
        # Two of them have a program explained.
        calibrated(Path(os.environ["XDG_DATA_HOME"]))
        with compiled_once(), pytest.MonkeyPatch.context() as patch:
            # Each round starts a program for each way; a spread needs two rounds.
            fewer = tuple(replace(pair, rounds=3) for pair in small_files.PAIRS["small"])
            patch.setitem(small_files.PAIRS, "small", fewer)
            plan = replace(linked_list.ways.PLANS["small"], rounds=5)
            patch.setitem(linked_list.ways.PLANS, "small", plan)
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
