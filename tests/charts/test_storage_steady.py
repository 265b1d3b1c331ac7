"""A long stream and first readings: what is drawn, and what is never said."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from latlab.charts import named
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import storage_first_touch, storage_steady


def stream(run: Run, operation: str, **changed: Any) -> Record:  # noqa: ANN401 - findings are free
    record = next(r for r in storage_steady.records(run) if r.point.operation == operation)
    assert isinstance(record.findings, dict)
    return msgspec.structs.replace(record, findings=record.findings | changed)


def test_levels_lie_end_to_end_over_the_bytes_that_were_moved(run: Run) -> None:
    record = stream(run, "write")
    first, last = storage_steady.regimes(record)
    assert first.from_bytes == 0
    assert first.to_bytes == last.from_bytes
    moved = sum(rate * 0.25 for _, rate in storage_steady.slices(record))
    assert last.to_bytes == pytest.approx(moved)
    assert storage_steady.levels_in_words(record) == "first 11.9 GB at 1.99 GB/s, then 516 MB/s"
    assert storage_steady.levels_in_words(stream(run, "read")).endswith("24.6 GB at 1.07 GB/s")


def test_a_few_hundred_points_are_embedded_however_long_it_took(run: Run) -> None:
    record = stream(run, "read", slices=[1e9 + number for number in range(7000)], regimes=[])
    drawn = named("storage_steady").chart(Run(run.header, [record]))
    assert drawn is not None
    assert len(drawn.to_dict()["data"]["values"]) <= 200


@pytest.mark.parametrize(
    "bad", [None, "fast", [], [1e9, None], [1e9, -1.0], [1e9, True], [float("inf")], [0.0]]
)
def test_slices_that_cannot_be_are_not_drawn(run: Run, bad: object) -> None:
    assert named("storage_steady").chart(Run(run.header, [stream(run, "read", slices=bad)])) is None


@pytest.mark.parametrize("bad", [None, 7, [{"from_bytes": -1}], [{"from_bytes": 1e99, "bytes_per_s": 1.0}]])
def test_levels_that_cannot_be_are_left_out(run: Run, bad: object) -> None:
    assert storage_steady.regimes(stream(run, "read", regimes=bad)) == []


def test_the_word_sustained_needs_the_run_to_say_so_and_twenty_seconds(run: Run) -> None:
    steady = stream(run, "read")
    assert storage_steady.is_sustained(steady)
    assert isinstance(steady.findings, dict)
    for changed in (
        {"sustained": False},
        {"sustained": "true"},
        {"slices": steady.findings["slices"][:79]},
        {"slice_s": None},
    ):
        assert not storage_steady.is_sustained(stream(run, "read", **changed)), changed


def test_both_readings_stand_on_one_panel_for_each_size(run: Run) -> None:
    readings = storage_first_touch.readings(run)
    assert list(readings) == [4096, 1 << 20]
    assert all(list(pair) == ["first", "second"] for pair in readings.values())
    drawn = named("storage_first_touch").chart(run)
    assert drawn is not None
    rows = [row for panel in drawn.to_dict()["hconcat"] for row in panel["data"]["values"]]
    assert len(rows) <= 4 * 70


def test_a_first_reading_alone_is_not_compared(run: Run) -> None:
    alone = Run(run.header, run.select("storage.first_touch", operation="first"))
    assert named("storage_first_touch").chart(alone) is None
