"""What a reader's browser does with the page of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.test_page import opened
from tests.compare.conftest import Made, made

from latlab.compare import Side, compare
from latlab.report import compared

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

__all__ = ["made"]

OPEN_ALL = "for (const fold of document.querySelectorAll('details.topic')) fold.open = true;"
MARKS = """[...document.querySelectorAll('[data-chart]')].map((place) => [
    place.dataset.chart, place.querySelectorAll('svg g[class*=mark-] path, svg text').length])"""
FILLS = """(name) => [...document.querySelectorAll(`[data-chart='${name}'] .role-legend path`)].map(
    (mark) => getComputedStyle(mark).fill).filter((fill) => fill !== "none")"""


@pytest.fixture
def page_file(made: Made, tmp_path: Path) -> Path:
    sides = (Side(label, tuple(made(first + k) for k in range(3))) for label, first in (("a", 0), ("b", 3)))
    return compared.write(compare(*sides), tmp_path / "page.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_every_picture_is_drawn_and_nothing_is_asked_for(
    browser: Browser, page_file: Path, width: int, scheme: str
) -> None:
    complaints: list[Any] = []
    page = opened(browser, page_file, complaints, width=width)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.evaluate(OPEN_ALL)
    opened_all = "[...document.querySelectorAll('[data-chart]')].every((place) => place.querySelector('svg'))"
    for _ in range(1200):
        if page.evaluate(opened_all):
            break
        page.wait_for_timeout(50)
    marks = dict(page.evaluate(MARKS))
    assert {"headline_figures", "ladder", "hierarchy", "bandwidth", "of-storage.sync"} <= set(marks)
    assert all(count > 3 for count in marks.values()), marks
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(FILLS, "ladder") == page.evaluate(FILLS, "bandwidth")
    assert len(set(page.evaluate(FILLS, "ladder"))) == 2
    page.close()
    assert complaints == []


def test_the_first_screen_has_the_verdict_and_the_headline_figures(browser: Browser, page_file: Path) -> None:
    page = opened(browser, page_file, [], width=1400)
    for selector in ("h1", "[data-chart=headline_figures] svg", ".rail .group"):
        box = page.locator(selector).first.bounding_box()
        assert box is not None, selector
        assert box["y"] < 450, selector
    assert page.locator("h1").inner_text().startswith("The same within 10 %: all 12 headline figures")
    page.close()
