"""What a reader's browser does with the report."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from latlab.charts import CHARTS, named
from latlab.report.packing import rounded
from latlab.run.run import load

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PATIENCE_MS = 120_000
"""Only what never comes is waited for so long."""
DRAWN = "document.documentElement.dataset.allDrawn === ''"
SHORT = 13
"""Charts of the short page, with that of the first screen."""
BEGUN = "document.documentElement.dataset.drawMs"


def opened(
    browser: Browser,
    path: Path,
    complaints: list[Any],
    width: int = 1280,
    before: str = "",
    until: str = DRAWN,
) -> Page:
    """The page when that is true, with a script that ran before its own."""
    page: Page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on(
        "request", lambda request: None if request.url.startswith("file:") else complaints.append(request.url)
    )
    if before:
        page.add_init_script(before)
    page.goto(path.as_uri())
    wait_until(page, until)
    return page


def wait_until(page: Page, script: str) -> None:
    """Playwright's own waiting compiles a string in the page, which the page's policy forbids."""
    for _ in range(PATIENCE_MS // 50):
        if page.evaluate(script):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never true: {script}")


@pytest.fixture(scope="module")
def said() -> list[Any]:
    """What the page that most tests look at has complained of."""
    return []


@pytest.fixture(scope="module")
def shared_page(browser: Browser, page_file: Path, said: list[Any]) -> Iterator[Page]:
    shown = opened(browser, page_file, said, width=1100)
    yield shown
    shown.close()


@pytest.fixture
def page(shared_page: Page) -> Page:
    """Opened and drawn once; as it was for each test."""
    shared_page.emulate_media(color_scheme="light", media="screen")
    if shared_page.viewport_size != {"width": 1100, "height": 900}:
        shared_page.set_viewport_size({"width": 1100, "height": 900})
        wait_until(
            shared_page, "Number(document.querySelector('[data-chart=hierarchy]').dataset.drawn) > 900"
        )
    shared_page.evaluate(
        """() => {
            for (const fold of document.querySelectorAll('details[open]')) fold.open = false;
            // Where the next Tab begins.
            document.querySelector("a.skip").focus();
            document.activeElement.blur();
            window.scrollTo(0, 0);
        }"""
    )
    return shared_page


OPEN_ALL = "for (const fold of document.querySelectorAll('details.topic')) fold.open = true;"
DRAWN_CHARTS = "[...document.querySelectorAll('[data-chart]')].filter((e) => e.querySelector('svg')).length"
FOLDED_CHARTS = "document.querySelectorAll('details:not([open]) [data-chart]').length"


def test_what_is_folded_is_drawn_when_it_is_opened(page: Page) -> None:
    folded = page.evaluate(FOLDED_CHARTS)
    assert folded > len(CHARTS) / 2
    assert page.evaluate(DRAWN_CHARTS) == len(CHARTS) + 1 - folded
    assert page.locator("[data-chart=stride] svg").count() == 0
    page.locator("#stride > summary").click()
    wait_until(page, "document.querySelector('[data-chart=stride] svg') !== null")
    assert page.evaluate(DRAWN_CHARTS) == len(CHARTS) + 2 - folded


def test_a_link_into_a_fold_opens_it(page: Page) -> None:
    page.evaluate("location.hash = '#prefetch'")
    wait_until(page, "document.querySelector('[data-chart=prefetch] svg') !== null")
    assert page.locator("#prefetch > summary").is_visible()


@pytest.mark.parametrize(("width", "most"), [(1400, 12_000), (390, 20_000)])
def test_a_page_is_so_long_before_anything_is_opened(
    browser: Browser, page_file: Path, complaints: list[Any], width: int, most: int
) -> None:
    page = opened(browser, page_file, complaints, width=width)
    assert 3000 < page.evaluate("document.documentElement.scrollHeight") <= most
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_the_first_screen_has_the_verdict_four_cards_the_chart_and_what_it_means(page: Page) -> None:
    page.set_viewport_size({"width": 1400, "height": 900})
    for selector in (
        ".rail .group",
        ".trust a",
        ".cards li",
        "[data-chart=first]",
        ".jobs dd",
        ".surprises li",
    ):
        box = page.locator(selector).last.bounding_box()
        assert box is not None, selector
        assert box["y"] + min(box["height"], 300) <= 900, selector


def test_every_chart_is_drawn_and_nothing_complains(
    page: Page, said: list[Any], record_property: Callable[[str, object], None]
) -> None:
    page.evaluate(OPEN_ALL)
    wait_until(page, f"{DRAWN_CHARTS} === {len(CHARTS) + 1}")
    counts = page.evaluate(
        """[...document.querySelectorAll('[data-chart]')].map((place) => [
            place.dataset.chart, place.querySelectorAll('svg g[class*=mark-] path, svg text').length])"""
    )
    assert all(marks > 10 for _, marks in counts), counts
    assert said == []
    # Recorded, not judged: how long it takes is the machine's affair as much as ours.
    record_property("draw_ms", page.evaluate(BEGUN))


NEVER_IDLE = "window.requestIdleCallback = () => 0;"


def test_charts_are_drawn_as_the_reader_comes_near_them(
    browser: Browser, short_file: Path, complaints: list[Any]
) -> None:
    page = opened(browser, short_file, complaints, before=NEVER_IDLE, until=BEGUN)
    assert page.locator("[data-chart=first] svg").count() == 1
    assert 0 < page.evaluate(DRAWN_CHARTS) < SHORT / 2
    assert page.locator("[data-chart=storage_steady] svg").count() == 0
    page.evaluate("document.querySelector('#storage_steady').scrollIntoView()")
    wait_until(page, "document.querySelector('[data-chart=storage_steady] svg') !== null")
    assert page.evaluate(DRAWN_CHARTS) < SHORT
    assert complaints == []
    page.close()


def test_what_nobody_has_come_near_is_drawn_before_it_is_printed(
    browser: Browser, short_file: Path, tmp_path: Path, complaints: list[Any]
) -> None:
    page = opened(browser, short_file, complaints, before=NEVER_IDLE, until=BEGUN)
    assert page.evaluate(DRAWN_CHARTS) < SHORT / 2
    paper = tmp_path / "paper.pdf"
    page.pdf(path=paper)
    assert page.evaluate(DRAWN_CHARTS) == SHORT
    assert complaints == []
    page.close()
    tool = shutil.which("pdftotext")
    if tool is None:
        pytest.skip("pdftotext (poppler-utils) is not installed: nobody reads what is on the paper")
    text = subprocess.run([tool, paper, "-"], capture_output=True, check=True, text=True).stdout
    # Only the picture of the last chart says so.
    assert "moved so far, GB" in text


@pytest.mark.parametrize(
    "before", ["delete window.IntersectionObserver;", "window.requestIdleCallback = undefined;"]
)
def test_a_browser_that_lacks_what_this_needs_draws_everything(
    browser: Browser, short_file: Path, complaints: list[Any], before: str
) -> None:
    page = opened(browser, short_file, complaints, before=before)
    assert page.evaluate(DRAWN_CHARTS) == SHORT
    assert complaints == []
    page.close()


def test_no_mark_lies_at_a_place_that_is_no_number(page: Page) -> None:
    assert not page.evaluate(
        "[...document.querySelectorAll('svg *')].filter((e) => /NaN/.test(e.outerHTML)).length"
    )


def test_the_page_draws_the_figures_that_the_chart_holds(page: Page, root: Path) -> None:
    chart = named("stride").chart(load(root / "tests/data/run-small.latlab.jsonl"))
    assert chart is not None
    rows = [
        {key: rounded(value) for key, value in row.items()}
        for row in chart.to_dict(validate=False)["data"]["values"]
    ]
    page.evaluate(OPEN_ALL)
    wait_until(page, "document.querySelector('[data-chart=stride] svg') !== null")
    drawn = page.evaluate("document.querySelector('[data-chart=stride]').latlabView.data('source_0')")
    assert len(rows) > 10
    assert [{key: row[key] for key in rows[0]} for row in drawn] == rows


def test_hostile_strings_of_a_run_file_do_nothing(
    browser: Browser, hostile_file: Path, complaints: list[Any]
) -> None:
    page = opened(browser, hostile_file, complaints)
    page.evaluate(OPEN_ALL)
    wait_until(page, f"{DRAWN_CHARTS} === {len(CHARTS) + 1}")
    assert page.evaluate("typeof window.pwned") == "undefined"
    assert page.evaluate("document.querySelectorAll('img, svg image, svg a, svg script').length") == 0
    assert "<img src=x onerror=" in page.inner_text("body")
    assert "<img src=x onerror=" in page.locator("[data-chart=clocks] svg").inner_html().replace("&lt;", "<")
    assert complaints == []
    page.close()


def test_a_script_that_is_not_the_pages_own_is_not_run(
    browser: Browser, short_file: Path, tmp_path: Path, complaints: list[Any]
) -> None:
    changed = tmp_path / "changed.html"
    source = short_file.read_text(encoding="utf-8")
    changed.write_text(
        source.replace("</main>", "<script>window.pwned = 1</script></main>"), encoding="utf-8"
    )
    page = opened(browser, changed, complaints)
    assert page.evaluate("typeof window.pwned") == "undefined"
    assert any("Content Security Policy" in str(complaint) for complaint in complaints)
    page.close()


def test_the_button_saves_the_figures_of_its_chart(page: Page, tmp_path: Path) -> None:
    page.evaluate(
        "for (const fold of document.querySelectorAll('#bandwidth, #bandwidth details')) fold.open = true;"
    )
    with page.expect_download() as download:
        page.click("button[data-csv=bandwidth]")
    assert download.value.suggested_filename == "latlab-bandwidth.csv"
    target = tmp_path / "figures.csv"
    download.value.save_as(target)
    lines = target.read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("series,working set (bytes),median (bytes/s)")
    assert len(lines) == 36


def test_charts_folds_and_buttons_are_reached_with_the_keyboard_alone(page: Page) -> None:
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(e => e.dataset.chart ?? e.dataset.csv ?? e.tagName.toLowerCase())(document.activeElement)"
            )
        )
        if {"first", "hierarchy", "bandwidth", "summary", "a"} <= reached:
            break
    assert {"first", "hierarchy", "bandwidth", "summary", "a"} <= reached


def test_a_fold_opens_with_the_keyboard_and_shows_the_table(page: Page) -> None:
    for name in ("#hierarchy", "#hierarchy details.data"):
        page.locator(f"{name} > summary").focus()
        page.keyboard.press("Enter")
    fold = page.locator("#hierarchy details.data")
    assert fold.locator("tbody tr").first.is_visible()


@pytest.mark.parametrize(("scheme", "light"), [("light", True), ("dark", False)])
def test_the_charts_follow_the_colour_scheme_of_the_reader(
    page: Page, scheme: Literal["light", "dark"], light: bool
) -> None:
    page.emulate_media(color_scheme=scheme)
    script = """[getComputedStyle(document.querySelector('section')).backgroundColor,
                getComputedStyle(document.querySelector('#caches-and-ram svg .role-axis-label text')).fill]"""
    background, label = page.evaluate(script)
    assert (brightness(background) > 200) is light
    assert (brightness(label) < brightness(background)) is light


def test_paper_is_light_even_for_a_reader_in_the_dark(page: Page) -> None:
    page.emulate_media(color_scheme="dark", media="print")
    script = "getComputedStyle(document.querySelector('body')).backgroundColor"
    assert brightness(page.evaluate(script)) == 255
    assert brightness(page.evaluate("getComputedStyle(document.querySelector('h1')).color")) < 60


def brightness(colour: str) -> float:
    numbers = [float(part) for part in colour.strip("rgba()").split(",")[:3]]
    return sum(numbers) / 3


def test_paper_shows_how_it_was_measured_and_leaves_out_what_only_a_screen_can_use(page: Page) -> None:
    page.emulate_media(media="print")
    assert not page.locator("details.data").first.is_visible()
    assert not page.locator("button").first.is_visible()
    assert page.locator("#hierarchy details.method p").first.is_visible()


def test_without_scripts_the_tables_are_there(browser: Browser, page_file: Path, tmp_path: Path) -> None:
    # What a browser with scripts switched off makes of the page; one that is driven by scripts cannot be one.
    source = page_file.read_text(encoding="utf-8").replace("<noscript>", "").replace("</noscript>", "")
    plain = tmp_path / "plain.html"
    plain.write_text(re.sub(r"<script.*?</script>", "", source, flags=re.DOTALL), encoding="utf-8")
    page = browser.new_page()
    page.goto(plain.as_uri())
    assert page.get_by_text("The charts need JavaScript, which is off").is_visible()
    assert page.locator("#hierarchy details.data tbody tr").first.is_visible()
    assert not page.locator("[data-chart]").first.is_visible()
    page.close()


def test_a_narrow_screen_needs_no_scrolling_sideways(page: Page) -> None:
    # The last one to look at this page: no other has it drawn anew in its old width.
    page.set_viewport_size({"width": 360, "height": 700})
    wait_until(page, "Number(document.querySelector('[data-chart=hierarchy]').dataset.drawn) < 360")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
