"""The Python that the documentation shows of a lesson runs on its result."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pages import PAGES, lesson_of, run_python
from tests.some import some

from latlab import lessons
from latlab.lessons.model import Result

SHOWN = [(name, page) for page in PAGES if (name := lesson_of(page)) is not None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "page"), SHOWN, ids=[f"{name}: {page.name}" for name, page in some(SHOWN, 11)]
)
def test_the_python_of_a_page_runs(
    name: str, page: Path, found: Callable[[str], Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, asked = found(name), list[str]()

    def run(lesson: str, *given: object, **options: object) -> Result:
        inspect.signature(real_run).bind(lesson, *given, **options)
        asked.append(lesson)
        return result

    real_run = lessons.run
    monkeypatch.setattr(lessons, "run", run)
    run_python(page)
    assert asked == [name]
