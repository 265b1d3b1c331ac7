"""One large file against many: the arithmetic, the published figures, a disk that cannot be written."""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from pathlib import Path

import pytest

from latlab import lessons
from latlab.lessons.bench import Arms, Bench, Times
from latlab.lessons.experiments import small_files
from latlab.lessons.figures import Cell
from latlab.lessons.model import Result
from latlab.lessons.programs import file_steps
from latlab.lessons.programs import small_files as program
from latlab.run.run import load


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
    said = " ".join(small_files.say(small_files.Found(pairs, found)).reasons)
    assert "523.9 slower" in said
    assert "unknown" in said
    near = Arms(found | {"read_many": Times((0.5,))})
    assert "523.9" not in " ".join(small_files.say(small_files.Found(pairs, near)).reasons)


def test_a_price_of_a_file_is_reported_only_where_it_is_more_than_the_rounds_differ() -> None:
    pairs = small_files.PAIRS["default"]
    found = {name: Times((0.03, 0.004)) for name in ("write_one", "read_one", "read_many")}
    for many, reported in (((0.031, 0.03), True), ((0.031, 0.003), False)):
        said = " ".join(
            small_files.say(small_files.Found(pairs, Arms(found | {"write_many": Times(many)}))).answer
        )
        assert ("beyond the writing of its bytes" in said) is reported


SLOW, FAST = Times((0.05, 0.06)), Times((0.01, 0.011))


@pytest.mark.parametrize(
    ("write", "read", "said"),
    [
        ((FAST, SLOW), (FAST, SLOW), "the premise holds here."),
        ((SLOW, FAST), (SLOW, FAST), "the premise is reversed here."),
        ((FAST, SLOW), (SLOW, FAST), "for writing the premise holds here, for reading it is reversed here."),
        (
            (FAST, Times((0.02, 0.01))),
            (FAST, SLOW),
            "for writing the premise is undecided here, for reading it holds here.",
        ),
    ],
)
def test_a_premise_that_is_reversed_is_called_so(
    write: tuple[Times, Times], read: tuple[Times, Times], said: str
) -> None:
    names = ("write_one", "write_many", "read_one", "read_many")
    question = Arms(dict(zip(names, (*write, *read), strict=True)) | {"read_kept": FAST})
    reported = small_files.say(small_files.Found(small_files.PAIRS["default"], question, question=question))
    assert said in next(each.found for each in reported.misled if "asks why" in each.says)
    reversed_read = any("For reading it is the other way round" in line for line in reported.answer)
    assert reversed_read is (read == (SLOW, FAST))


def test_memory_that_has_to_be_found_is_named_where_it_costs() -> None:
    names = ("write_one", "write_many", "new_many")
    for new, reported in ((SLOW, True), (FAST, False)):
        question = Arms(dict.fromkeys(names, FAST) | {"new_one": new})
        said = small_files.say(
            small_files.Found(small_files.PAIRS["default"], question, question=question)
        ).reasons
        assert any("a page that was not used recently" in line for line in said) is reported


@pytest.mark.parametrize(
    ("flushed", "said"), [(SLOW, "until it is on the disk"), (FAST, "the rate is no lower")]
)
def test_what_is_flushed_is_called_slower_only_where_it_is(flushed: Times, said: str) -> None:
    found = Arms({"write_one": FAST, "write_many": SLOW})
    reported = small_files.say(
        small_files.Found(small_files.PAIRS["default"], found, durable=Arms({"one": flushed}))
    )
    assert said in next(each.found for each in reported.misled if "without flushing" in each.says)


def test_each_read_is_timed_in_a_program_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pair, data = small_files.Pair(1000, 10, 1), os.urandom(1000)
    program.write_one(tmp_path, data)
    program.write_many(tmp_path, data, 10)
    for way in ("one", "many", "scattered", "kept"):
        assert small_files.read(way, tmp_path, data, pair) > 0
    (tmp_path / "large.bin").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(subprocess.CalledProcessError):
        small_files.read("one", tmp_path, data, pair)
    assert capfd.readouterr() == ("", "")


def test_the_flushed_files_are_a_few_of_the_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of 200 files took two seconds."""
    monkeypatch.setattr(small_files, "again", lambda write, fresh: (2.0, tmp_path))
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
        program.read_many(tmp_path, 100, list(range(10)))
    with pytest.raises(AssertionError):
        program.read_one(tmp_path, zlib.crc32(data))
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


def test_a_native_arm_that_has_to_find_memory_says_so_and_its_ratio_has_its_range() -> None:
    found = Arms({"write_one": Times((2e-3,) * 3), "write_many": Times((32e-3,) * 3)})
    notes = []
    for one in (8e-3, 2e-3):
        ratio = Cell("ratio", 24e-3 / one, 2.0, 15.0, 3)
        core = {"write_one": Cell("s", one, 0.9 * one, 13e-3, 3), "write_ratio": ratio}
        (table,) = [
            each
            for each in small_files.say(
                small_files.Found(small_files.PAIRS["default"], found, core=core)
            ).tables
            if each.name == "original"
        ]
        notes.append(table.note)
    assert "It writes one file in 8.00 ms in place of 2.00 ms" in notes[0]
    assert "find memory" not in notes[1]
    run = load(Path(__file__).parents[1] / "data/run-small.latlab.jsonl")
    ratio = small_files.native_passes(run)["write_ratio"]
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < (ratio.number or 0.0) < ratio.high
