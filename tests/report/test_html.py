"""The page: one file, nothing loaded, nothing run but its own scripts, hostile strings shown as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from tests.some import some

from latlab.report import html
from latlab.report.document import Document


class Page(HTMLParser):
    """Elements and attributes as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.text: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.raw:
            self.raw[self._inside][-1] += data
        else:
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def source(document: Document) -> str:
    return html.render(document)


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_the_page_is_under_two_megabytes(source: str) -> None:
    assert len(source.encode("utf-8")) < 2_000_000


def test_the_same_run_gives_the_same_page(source: str, document: Document) -> None:
    assert html.render(document) == source


def test_no_element_loads_anything(page: Page) -> None:
    loading = {"src", "srcset", "href", "data", "action", "poster", "background", "formaction", "xlink:href"}
    for _, attributes in some(page.elements, 100):
        for name in loading & set(attributes):
            assert (attributes[name] or "").startswith("#")
    assert (
        not page.all("link") + page.all("iframe") + page.all("object") + page.all("embed") + page.all("base")
    )
    assert not any("url(" in style or "@import" in style for style in page.raw["style"])


def test_no_element_has_a_handler_or_a_style_of_its_own(page: Page) -> None:
    for _, attributes in some(page.elements, 100):
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


def test_the_policy_allows_exactly_the_scripts_and_styles_of_the_page(page: Page) -> None:
    policy = (
        next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy") or ""
    )
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    allowed = set(re.findall(r"'sha256-[^']+'", policy))
    kinds = [attributes.get("type") for attributes in page.all("script")]
    scripts = [text for text, kind in zip(page.raw["script"], kinds, strict=True) if kind is None]
    assert {digest(text) for text in [*scripts, *page.raw["style"]]} == allowed


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_data_are_json_that_html_cannot_misread(source: str, page: Page) -> None:
    island = next(
        text
        for text, attributes in zip(page.raw["script"], page.all("script"), strict=True)
        if attributes.get("type") == "application/json"
    )
    assert not set(island) & set("<>&\u2028\u2029")
    charts = json.loads(island)["charts"]
    assert charts["hierarchy"]["csv"].startswith("series,working set (bytes),median (ns)")


def test_every_chart_has_words_a_table_and_a_way_to_save_its_figures(page: Page, document: Document) -> None:
    names = sorted(figure.name for figure in document.figures)
    places = [a for a in page.all("div") if "data-chart" in a]
    assert sorted(a["data-chart"] or "" for a in places) == names
    assert all(a["role"] == "img" and a["aria-label"] and a["tabindex"] == "0" for a in places)
    assert sorted(a["data-csv"] or "" for a in page.all("button")) == names
    assert len([a for a in page.all("details") if a.get("class") == "data"]) == len(names)


def test_every_table_has_a_caption_and_headings_for_columns_and_rows(page: Page) -> None:
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(attributes.get("scope") in {"col", "row"} for attributes in some(page.all("th")))


def test_every_link_leads_to_a_place_in_the_page(page: Page) -> None:
    places = {attributes.get("id") for _, attributes in page.elements}
    assert all((attributes["href"] or "").removeprefix("#") in places for attributes in some(page.all("a")))


def test_without_scripts_the_page_says_so_and_shows_its_tables(source: str) -> None:
    assert "The table below each chart's place has its figures." in source


def test_hostile_strings_of_a_run_file_are_text(hostile_document: Document, page: Page) -> None:
    poisoned = Page(html.render(hostile_document))
    assert not poisoned.all("img")
    assert len(poisoned.all("script")) == len(page.all("script"))
    assert any("<img src=x onerror=" in text for text in poisoned.text)
    assert any("{{7*7}}" in text for text in poisoned.text)
    assert not any("\x1b" in text or "\u202e" in text for text in poisoned.text)


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    assert html.glued("took 16.0 µs of 1 GiB at 39 GB/s") == "took 16.0\xa0µs of 1\xa0GiB at 39\xa0GB/s"
    assert html.glued("4 machines") == "4 machines"
