"""The published tables, as published."""

from __future__ import annotations

import pytest

from latlab.run.textbook import OPERATIONS, TABLES, Textbook, of_year, scott


@pytest.mark.parametrize("table", [*TABLES, scott(2020)], ids=lambda table: str(table.year))
def test_every_table_has_a_source_and_known_keys(table: Textbook) -> None:
    assert table.source
    assert set(table.figures_ns) <= set(OPERATIONS)
    assert all(figure > 0 for figure in table.figures_ns.values())


def test_a_figure_that_a_table_does_not_list_is_absent() -> None:
    assert of_year(2001).get("L3") is None
    assert of_year(2001).get("ssd_random_4k") is None


def test_the_trend_gives_what_its_page_shows_for_2020() -> None:
    table = scott(2020)
    assert table.get("L1") == pytest.approx(1.0)
    assert table.get("L2") == pytest.approx(13 / 3)
    assert table.get("RAM") == 100.0
    # The page rounds to 3,000 ns.
    assert table.get("read_1mb_memory") == pytest.approx(3000, rel=0.02)


def test_the_trend_of_1995_has_slower_clocks_and_memory() -> None:
    table = scott(1995)
    assert table.get("L1") == pytest.approx(32.0)
    assert (table.get("RAM") or 0) > 100


def test_a_year_without_a_published_table_gets_the_trend() -> None:
    assert "trends, not measurements" in of_year(2015).source
    assert "trends" not in of_year(2012).source


def test_a_year_without_a_trend_is_refused() -> None:
    with pytest.raises(ValueError, match="1990 to 2100, not 1789"):
        of_year(1789)
