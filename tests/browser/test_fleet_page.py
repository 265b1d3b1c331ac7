"""What a reader's browser does with the pages of `latlab fleet`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.fleet.files import run_of
from tests.fleet.simulated import Simulated

from latlab.fleet import Failure, Links, Survey, merge
from latlab.report.fleet_page import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<script>document.title='taken'</script>"


def hosts(folder: Path, count: int) -> Survey:
    """A survey of so many hosts, the last of which is slow, and one that failed."""
    for number in range(count):
        slow = 4.0 if number == count - 1 else 1.0
        (folder / f"{number}.latlab.jsonl").write_text(run_of(f"node{number}", number, slow))
    found = merge(sorted(folder.glob("*.jsonl")))
    return Survey(found.standings, found.classes, found.tests, found.visible, (Failure(HOSTILE, HOSTILE),))


def links(count: int) -> Links:
    """A survey of links, one host of which is slow."""
    fleet = Simulated(count, seed=1)
    fleet.hosts["node2"] = 30.0
    return fleet.survey()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("which", ["hosts", "links", "many links"])
def test_a_page_fits_names_the_slow_host_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, which: str, width: int
) -> None:
    found = hosts(tmp_path, 6) if which == "hosts" else links(1000 if which == "many links" else 6)
    file = tmp_path / "fleet.html"
    file.write_bytes(render(found))
    complaints: list[Any] = []
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith("file:") else complaints.append(request.url),
    )
    page.goto(file.as_uri())
    assert page.title() != "taken"
    first = page.locator("#hosts tbody tr").first.inner_text().split()
    assert first[0] == ("node5" if which == "hosts" else "node2")
    assert "slow" in first
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert complaints == []
    page.close()
