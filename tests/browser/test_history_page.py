"""What a reader's browser does with the page of `latlab history`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.test_history import after_the_kernel

from latlab.compare.history import history
from latlab.report.history_page import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

MARKS = (
    "[...document.querySelectorAll('[data-chart]')].map((place) => place.querySelectorAll('svg path').length)"
)


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (390, False)])
def test_every_panel_is_drawn_and_fits_and_nothing_is_asked_for(
    browser: Browser, tmp_path: Path, width: int, *, dark: bool
) -> None:
    after_the_kernel(tmp_path / "runs")
    found = history(sorted((tmp_path / "runs").iterdir()))
    file = tmp_path / "history.html"
    file.write_bytes(render(found))
    complaints: list[Any] = []
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith("file:") else complaints.append(request.url),
    )
    page.goto(file.as_uri())
    for _ in range(600):
        if page.evaluate("document.documentElement.dataset.allDrawn === ''"):
            break
        page.wait_for_timeout(50)
    counts = page.evaluate(MARKS)
    assert len(counts) == len(found.figures)
    assert all(count > len(found.runs) for count in counts), counts
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("text=kernel: 6.1.2 to 6.18.1").count() >= 1
    assert complaints == []
    page.close()
