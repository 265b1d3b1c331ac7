"""The charts in the page: small, and the same when they are unpacked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from latlab.charts import CHARTS
from latlab.report import html
from latlab.report.document import Document, Figure
from latlab.report.packing import packed, rounded

#: What one chart may add to the page with its figures as table and CSV: three quarters of it are their text.
MOST_OF_ONE = 64_000
#: Its picture alone.
MOST_OF_A_PICTURE = 24_000
#: Forty such charts fit into two megabytes beside Vega and the words.
MOST_ON_AVERAGE = 20_000


def unpacked(node: Any, parts: list[Any]) -> Any:  # noqa: ANN401 - any JSON
    """What `report.js` does."""
    if isinstance(node, list):
        return [unpacked(value, parts) for value in node]
    if not isinstance(node, dict):
        return node
    if "$part" in node:
        return unpacked(parts[node["$part"]], parts)
    whole = {key: unpacked(value, parts) for key, value in node.items()}
    if "$runs" in whole:
        return [value for value, times in whole["$runs"] for _ in range(times)]
    if "$columns" in whole:
        columns = whole["$columns"]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return whole


def with_short_fractions(node: Any, *, rows: bool = False) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node, dict):
        return {
            key: rounded(value)
            if rows
            else with_short_fractions(value, rows=key == "values" and isinstance(value, list))
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [with_short_fractions(value, rows=rows) for value in node]
    return node


def figures_of(document: Document) -> list[Figure]:
    return [figure for section in document.sections for figure in section.figures]


def test_unpacked_every_chart_is_what_it_was_but_for_digits_that_nobody_sees(document: Document) -> None:
    specs = {figure.name: figure.spec for figure in figures_of(document)}
    small, parts = packed(specs)
    assert unpacked(small, parts) == with_short_fractions(specs)


def test_packing_changes_nothing_in_the_document(document: Document) -> None:
    before = json.dumps([figure.spec for figure in figures_of(document)])
    html.render(document)
    assert json.dumps([figure.spec for figure in figures_of(document)]) == before


def test_a_fraction_keeps_what_is_drawn_and_a_whole_number_everything() -> None:
    assert rounded(0.00012345678) == 0.00012346
    assert rounded(39_123_456_789.25) == 39_123_000_000
    assert rounded(1_073_741_824.0) == rounded(1_073_741_824) == 1_073_741_824
    assert rounded(True) is True
    assert rounded("1.23456789") == "1.23456789"


def test_fields_that_only_some_rows_have_stay_with_their_rows() -> None:
    rows = [{"x": 1, "y": None}, {"x": 2}]
    small, parts = packed({"chart": {"data": {"values": rows}}})
    assert unpacked(small, parts) == {"chart": {"data": {"values": rows}}}


def test_true_and_one_are_distinguished() -> None:
    rows = [{"x": 1}, {"x": True}, {"x": 1}, {"x": 1}, {"x": 1}, {"x": 1}, {"x": 1}, {"x": 1}]
    small, parts = packed({"chart": {"values": rows}})
    assert json.dumps(unpacked(small, parts)) == json.dumps({"chart": {"values": rows}})


def test_what_two_charts_share_is_written_once() -> None:
    axis = {"labelExpr": "datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"}
    small, parts = packed({"one": {"axis": axis}, "other": {"axis": axis}})
    assert json.dumps([small, parts]).count("KiB") == 1
    assert unpacked(small, parts) == {"one": {"axis": axis}, "other": {"axis": axis}}


@pytest.fixture(scope="module")
def cost(document: Document) -> Callable[..., int]:
    """Bytes that some charts add to a page of one section."""

    def size(*figures: Figure) -> int:
        one = replace(
            document, front=None, chapters=(), sections=(replace(document.sections[0], figures=figures),)
        )
        return len(html.render(one).encode())

    bare = size()
    return lambda *figures: size(*figures) - bare


@pytest.mark.parametrize("name", [chart.id for chart in CHARTS])
def test_no_chart_takes_the_room_of_others(name: str, document: Document, cost: Callable[..., int]) -> None:
    figure = next(figure for figure in figures_of(document) if figure.name == name)
    picture = json.dumps(packed({name: figure.spec}), ensure_ascii=False, separators=(",", ":"))
    assert len(picture.encode()) <= MOST_OF_A_PICTURE
    assert cost(figure) <= MOST_OF_ONE


def test_charts_are_small_enough_on_average_for_forty(document: Document, cost: Callable[..., int]) -> None:
    figures = figures_of(document)
    assert cost(*figures) <= MOST_ON_AVERAGE * len(figures)


def test_the_page_without_its_charts_leaves_them_their_room(document: Document) -> None:
    bare = replace(
        document,
        front=None,
        chapters=(),
        sections=tuple(replace(section, figures=()) for section in document.sections),
    )
    assert len(html.render(bare).encode()) + 40 * MOST_ON_AVERAGE < 2_000_000
