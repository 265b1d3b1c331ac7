"""What a list costs: the arithmetic, and that the lists are really made."""

from __future__ import annotations

import pytest
from tests.some import some

from latlab.lessons.model import Result
from latlab.lessons.programs import list_cost


def test_the_ratios_are_those_of_the_timings_shown(result: Result) -> None:
    for ratio, above, below in (
        ("reuse_ratio", "new", "kept"),
        ("collector_ratio", "collector_on", "collector_off"),
    ):
        shown = result[f"reuse.{ratio}"].number
        assert shown == pytest.approx(
            (result[f"reuse.{above}"].number or 0) / (result[f"reuse.{below}"].number or 1)
        )


def test_every_way_makes_a_list_of_its_length() -> None:
    for make in some(list_cost.WAYS.values()):
        assert len(make(1234)) == 1234


def test_a_way_that_makes_too_little_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(list_cost.WAYS, "repeat", lambda n: [None] * (n - 1))
    with pytest.raises(AssertionError):
        list_cost.create("repeat", 10, 1)


def test_the_native_arm_measured_the_same_ways(result: Result) -> None:
    cells = [cell for row in result.table("native").rows for cell in row.cells.values()]
    assert all(cell.number is not None or cell.why for cell in cells)
    assert any(cell.number is not None for cell in cells)
    assert result.run is not None
    assert result.run.probes == ("python.object",)


def test_the_collector_is_left_as_it_was() -> None:
    import gc  # noqa: PLC0415 - for this test only

    list_cost.collector(10, on=False)
    assert gc.isenabled()
