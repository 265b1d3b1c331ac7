"""One large file against many: the arithmetic, the published figures, a disk that cannot be written."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from latlab import lessons
from latlab.lessons.bench import Arms, Bench, Times
from latlab.lessons.experiments import small_files
from latlab.lessons.model import Result
from latlab.lessons.programs import file_steps
from latlab.lessons.programs import small_files as program


def test_the_ratios_are_those_of_the_timings_shown(result: Result) -> None:
    for table in ("original", "question"):
        for kind in ("write", "read"):
            one, many = result[f"{table}.{kind}_one.python"], result[f"{table}.{kind}_many.python"]
            ratio = result[f"{table}.{kind}_ratio.python"]
            assert ratio.number == pytest.approx((many.number or 0) / (one.number or 1))


def test_the_published_figures_are_as_printed(result: Result) -> None:
    printed = {
        "write_one": "0.00198 seconds",
        "write_many": "0.14886 seconds",
        "read_one": "0.00478 seconds",
        "read_many": "2.50339 seconds",
        "write_ratio": "75.1 slower",
        "read_ratio": "523.9 slower",
    }
    for name, text in printed.items():
        published = result[f"original.{name}.python"].published
        assert published is not None
        assert published.text == text
        assert published.value == float(re.match(r"[\d.]+", text)[0])  # type: ignore[index]


def test_the_native_arm_stands_beside_the_plain_one(result: Result) -> None:
    cell = result["original.write_many.native"]
    assert cell.number or cell.why
    assert result.run is not None
    assert result.run.probes == ("storage.files",)


def test_a_reason_or_unknown_is_given_where_the_published_ratio_is_far_away() -> None:
    pairs = small_files.PAIRS["default"]
    times = {"write_one": 0.002, "write_many": 0.15, "read_one": 0.001, "read_many": 0.01}
    found = Arms({name: Times((value,)) for name, value in times.items()})
    said = " ".join(small_files.say(pairs, found).reasons)
    assert "523.9 slower" in said
    assert "unknown" in said
    near = Arms(found | {"read_many": Times((0.5,))})
    assert "523.9" not in " ".join(small_files.say(pairs, near).reasons)


def test_a_price_of_a_file_is_told_only_where_it_is_more_than_the_rounds_differ() -> None:
    pairs = small_files.PAIRS["default"]
    found = {name: Times((0.03, 0.004)) for name in ("write_one", "read_one", "read_many")}
    for many, told in (((0.031, 0.03), True), ((0.031, 0.003), False)):
        said = " ".join(small_files.say(pairs, Arms(found | {"write_many": Times(many)})).answer)
        assert ("beyond the writing of its bytes" in said) is told


def test_the_flushed_files_are_a_few_of_the_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of 200 files took two seconds."""
    monkeypatch.setattr(small_files, "timed", lambda work: 2.0)
    with Bench("small", directory=tmp_path) as bench:
        found = small_files.flushed(bench, small_files.Pair(1000, 200, 3))
    assert found["one"].values == (2.0,) * 3
    assert found["many"].values == (40.0,) * 3


def test_the_steps_of_a_file_are_all_there(result: Result) -> None:
    rows = {row.name for row in result.table("steps").rows}
    assert rows == {
        "lookup",
        "write_create",
        "write_write",
        "write_close",
        "read_open",
        "read_read",
        "read_close",
        "missing",
    }


def test_a_read_that_lost_bytes_is_noticed(tmp_path: Path) -> None:
    data = os.urandom(1000)
    program.write_one(tmp_path, data)
    program.write_many(tmp_path, data, 10)
    (tmp_path / "small_3.bin").write_bytes(b"short")
    (tmp_path / "large.bin").write_bytes(data[:-1] + b"?")
    with pytest.raises(AssertionError):
        program.read_many(tmp_path, data, 10, list(range(10)))
    with pytest.raises(AssertionError):
        program.read_one(tmp_path, data)
    (tmp_path / "missing_1.bin").touch()
    with pytest.raises(AssertionError):
        file_steps.open_nothing(tmp_path, 2)


def test_where_nothing_can_be_written_the_reason_is_in_every_cell(tmp_path: Path) -> None:
    place = tmp_path / "gone"
    result = lessons.run("small-files", "small", plain=True, directory=place)
    cells = result.cells
    assert cells
    assert all(cell.value is None and cell.why for cell in cells.values())
    assert len(result.missing) >= 4
