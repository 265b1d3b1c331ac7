"""What a reader's browser does with the page of `latlab explain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.explain.in_process import explain

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
]

PROGRAM = """
import time
import latlab

with latlab.stage("work"):
    until = time.thread_time() + 0.1
    while time.thread_time() < until:
        sum(range(10_000))
with latlab.stage("rest"), open(__file__) as file:
    file.read()
    time.sleep(0.1)
"""
MARKS = """[...document.querySelectorAll('[data-chart]')].map((place) => [
    place.dataset.chart, place.querySelectorAll('svg g[class*=mark-] path, svg text').length])"""


def test_every_picture_is_drawn_in_light_and_dark_and_nothing_is_asked_for(
    browser: Browser, tmp_path: Path
) -> None:
    page_file, program = tmp_path / "where.html", tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    result = explain("--no-limits", "--html", str(page_file), "--", sys.executable, str(program))
    assert result.returncode == 0, result.stderr
    complaints: list[Any] = []
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith("file:") else complaints.append(request.url),
        )
        page.goto(page_file.as_uri())
        for _ in range(600):
            if page.evaluate("document.documentElement.dataset.allDrawn === ''"):
                break
            page.wait_for_timeout(50)
        marks = dict(page.evaluate(MARKS))
        assert {"explain_bar", "explain_timeline", "explain_threads", "explain_flame"} <= set(marks)
        assert all(count > 3 for count in marks.values()), marks
        page.close()
    assert complaints == []
