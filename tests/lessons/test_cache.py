"""What is called cold or cached was looked at."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from latlab.explain import inputs
from latlab.lessons.bench import Arms, Bench, Cannot
from latlab.lessons.cache import again, brought_in, why_not_cold
from latlab.lessons.experiments import latency_ladder, small_files
from latlab.lessons.programs import block_size

asks_linux = pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="asks Linux's page cache")


class Stopped(BaseException):
    """What a signal raises."""


@asks_linux
@pytest.mark.parametrize("asked", [block_size.cached_share, inputs._pages], ids=["lesson", "explain"])
def test_a_signal_while_the_kernel_is_asked_ends_the_program_as_it_was_meant_to(
    file: Path, monkeypatch: pytest.MonkeyPatch, asked: Callable[[Path], object]
) -> None:
    def mincore(*_arguments: object) -> int:
        raise Stopped

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(mincore=mincore))
    with pytest.raises(Stopped):
        asked(file)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Bench("small", plain=True, directory=tmp_path) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(100_000))
    return path


@pytest.fixture
def nothing_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file system in memory: what is written is in the cache, whatever is asked."""
    monkeypatch.setattr(block_size, "forget", lambda path: None)


def shares(monkeypatch: pytest.MonkeyPatch, *answers: float) -> None:
    left = list(answers)
    monkeypatch.setattr(block_size, "cached_share", lambda path: left.pop(0))


@asks_linux
@pytest.mark.usefixtures("nothing_is_forgotten")
def test_a_file_of_which_a_part_stays_in_the_cache_is_not_cold(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares(monkeypatch, 1.0, 0.5, 0.25)
    assert why_not_cold(file) == "the cache did not drop 25 % of the file"
    shares(monkeypatch, 0.5, 0.0)
    assert why_not_cold(file) == ""


def test_a_file_is_read_until_all_of_it_is_in_the_cache(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares(monkeypatch, 0.5, 1.0)
    assert brought_in(file)
    shares(monkeypatch, 0.5, 0.9, 0.9)
    assert not brought_in(file)


@asks_linux
@pytest.mark.usefixtures("nothing_is_forgotten")
def test_small_files_that_stay_in_the_cache_are_not_called_forgotten(bench: Bench) -> None:
    with pytest.raises(Cannot, match="did not drop 100 %"):
        small_files.forgotten(bench, small_files.Pair(20_000, 10, 2))


@asks_linux
@pytest.mark.usefixtures("nothing_is_forgotten")
def test_a_file_that_stays_in_memory_is_no_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(latency_ladder._FILE_BYTES, "small", 1 << 20)
    disk = latency_ladder.file_reads(bench)
    assert set(disk) == {"warm", "warm_rate"}
    assert [missing.what for missing in bench.missing] == ["reading a file past the page cache"]
    assert latency_ladder.disk_kind({}, disk) == ""
    said = latency_ladder.say(disk=Arms(disk, "it stays"), why="not run", called_spinning=True)
    assert not any("row" in reason for reason in said.reasons)
    tables = {table.name: table for table in said.tables}
    table, rates = tables["original"], tables["bandwidth"]
    for key in ("SSD", "HDD"):
        assert [table.cell(key, arm).why for arm in ("native", "python")] == ["not run", "it stays"]
        assert table.cell(key, "reference").number
        assert rates.cell(key, "python").why == "it stays"
    marks = {mark.label: mark.series for mark in said.pictures[0].marks}
    assert marks["SSD, 4 KiB at random"] == marks["HDD, 4 KiB at random"] == "reference, not measured"
    assert "not both measured" in said.answer[0]
    assert "Here:" not in " ".join(each.found for each in said.misled)


def test_a_write_is_timed_after_one_whose_files_were_emptied(tmp_path: Path) -> None:
    numbers = count()

    def fresh() -> Path:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return folder

    def write(folder: Path) -> float:
        assert all(file.stat().st_size == 0 for file in tmp_path.glob("*/*"))
        (folder / "large.bin").write_bytes(b"x" * 10)
        return float(folder.name)

    assert again(write, fresh) == (1.0, tmp_path / "1")
    # An inode that is freed makes the next file dearer.
    assert [file.stat().st_size for file in tmp_path.glob("*/*")] == [0, 0]


def test_what_the_second_write_wrote_may_stay(tmp_path: Path) -> None:
    paths = iter([tmp_path / "first", tmp_path / "second"])
    assert again(lambda path: float(path.write_bytes(b"xyz")), paths.__next__, keep=True) == (
        3.0,
        tmp_path / "second",
    )
    assert [path.stat().st_size for path in sorted(tmp_path.iterdir())] == [0, 3]
