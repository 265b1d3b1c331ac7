"""What a reader's browser does with a lesson's page: programs are folded, wide tables fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from latlab.lessons.document import document
from latlab.lessons.figures import Cell, Column, Mark, Picture, Published, Row, Table
from latlab.lessons.model import Program, Result
from latlab.report import html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def lesson() -> Result:
    """A table with as many figures, spreads and published figures as the widest of the lessons has."""
    columns = tuple(Column(name, f"Python ({name} optimised)") for name in ("one", "two", "three"))
    cell = Cell("s", 0.123, 0.101, 0.145, 3, Published("0.123 s", 0.123))
    row = Row("reading", "Reading, when the file is not cached", {each.name: cell for each in columns})
    return Result(
        name="made-up",
        question="Does it fit?",
        origin="a test",
        size="small",
        plain=False,
        tool="1",
        started="2026-01-01T00:00:00Z",
        seconds=1.0,
        machine={"cpus": "2"},
        answer=("It does.",),
        programs=(Program("program.py", "python", "print('how many?')\n" * 80),),
        tables=(Table("original", "A wide table", "stage", columns, (row,) * 3, original=True),),
        pictures=(Picture("bars", "How long?", "bars", "time", "s", (Mark("a", 0.1, "here"),)),),
    )


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = Path(tmp_path_factory.mktemp("lesson")) / "lesson.html"
    path.write_text(html.render(document(lesson())), encoding="utf-8")
    shown: Page = browser.new_page(viewport={"width": 1280, "height": 900})
    shown.goto(path.as_uri())
    yield shown
    shown.close()


def test_a_program_is_folded_on_the_screen_and_open_on_paper(page: Page) -> None:
    program = page.get_by_text("print('how many?')").first
    assert page.get_by_text("program.py (80 lines)").is_visible()
    assert not program.is_visible()
    page.emulate_media(media="print")
    assert program.is_visible()
    page.emulate_media(media="screen")


def test_a_table_of_figures_with_their_spreads_is_read_without_scrolling_sideways(page: Page) -> None:
    room = "document.querySelector('#answer .scroll')"
    assert page.evaluate(f"{room}.scrollWidth <= {room}.clientWidth")
    lines = "[...document.querySelectorAll('td.s')].map((cell) => cell.innerText)"
    assert set(page.evaluate(lines)) == {"123\u00a0ms (101 ms – 145 ms)"}
