"""Block sizes: rates and 30 GB from the times, verdicts from the spread, caches that are looked at."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.some import some

from latlab import lessons
from latlab.lessons.bench import KEPT_BYTES, Arms, Bench, Times
from latlab.lessons.experiments import block_size as lesson
from latlab.lessons.experiments.block_size.disks import Curve
from latlab.lessons.machine import file_system
from latlab.lessons.model import Result
from latlab.lessons.programs import block_size


@pytest.mark.parametrize("table", ["original", "blocks"])
def test_thirty_gigabytes_take_as_long_as_the_rate_shown_says(result: Result, table: str) -> None:
    shown = [
        (row.cells[way].number, row.cells[thirty].number)
        for row in result.table(table).rows
        for way, thirty in (("write", "thirty_write"), ("read_cold", "thirty"))
    ]
    for rate, seconds in some((rate, seconds) for rate, seconds in shown if rate is not None):
        assert seconds == pytest.approx(30e9 / rate)


def test_the_published_figures_are_as_printed(result: Result) -> None:
    printed = {row.name: row.cells["python"].published for row in result.table("claims").rows}
    assert {name: each.text for name, each in printed.items() if each} == {
        "best_read": "500 MB/s",
        "thirty_best": "one minute",
        "small_flushed": "0.1 MB/s",
        "small_buffered": "20 MB/s or so",
        "slowest": "10 MB/s (or slower)",
        "sweet_read": "1-100 MB",
        "sweet_write": "1-100 MB",
        "sweet_block": "1-100 MB",
        "battery": "30 MB/s",
    }


def curve(reads: dict[int, tuple[float, ...]], writes: dict[int, tuple[float, ...]]) -> Curve:
    return {size: {"read_cold": Times(reads[size]), "write": Times(writes[size])} for size in reads}


def test_a_rule_is_true_or_false_only_beyond_the_spread_of_the_repeats() -> None:
    apart = curve({1000: (1.0, 1.1), 10**6: (1.0, 1.2)}, {1000: (2.0, 2.2), 10**6: (3.0, 3.1)})
    assert [lesson.verdicts(apart)[rule][0] for rule in ("large_write", "large_read", "reading")] == [
        "true"
    ] * 3
    mixed = curve({1000: (1.0, 3.0), 10**6: (900.0, 4000.0)}, {1000: (2.0, 2.2), 10**6: (2000.0, 2200.0)})
    assert {verdict for verdict, _ in lesson.verdicts(mixed).values()} == {"undecided"}
    slower = curve({1000: (3.0, 3.1), 10**6: (9000.0, 9100.0)}, {1000: (1.0, 1.1), 10**6: (2000.0, 2100.0)})
    assert {verdict for verdict, _ in lesson.verdicts(slower).values()} == {"false"}


@pytest.mark.parametrize(
    ("times", "verdict", "shown"),
    [
        (((1.0, 1.1), (5.0, 5.1), (10.0, 11.0)), "true", "95 kB/s at 1 MB, 950 B/s at 1 kB"),
        (((1.0, 1.1), (5.0, 5.1), (90.0, 99.0)), "true up to 100 kB", "11 kB/s at 1 MB, 20 kB/s at 100 kB"),
        (((1.0, 1.1), (200.0, 210.0), (2e3, 2.1e3)), "false", "490 B/s at 100 kB, 950 B/s at 1 kB"),
        (((1.0, 1.1), (100.0, 110.0), (1e3, 1.1e3)), "undecided", "at 1 MB"),
        (((1.0, 1.1), (5.0, 60.0), (40.0, 400.0)), "true", "at 1 MB"),
    ],
)
def test_the_rule_of_large_blocks_looks_at_every_size(
    times: tuple[tuple[float, ...], ...], verdict: str, shown: str
) -> None:
    sizes = (1000, 10**5, 10**6)
    files = {size: {"write": Times(values)} for size, values in zip(sizes, times, strict=True)}
    found, detail = lesson.verdicts(files)["large_write"]
    assert found == verdict, detail
    assert shown in detail


def test_a_sweet_spot_at_the_end_of_the_scan_is_called_so() -> None:
    files = {size: {"read_cold": Times((size**0.5,)), "write": Times((1.0,))} for size in (10**6, 10**8)}
    found = lesson.say(files, {})
    assert "has 100 MB, the largest that was tried" in found.answer[0]
    flat = {size: {"read_cold": Times((float(size),)), "write": Times((1.0,))} for size in (10**6, 10**8)}
    assert "has 1 MB; at the best rate" in lesson.say(flat, {}).answer[0]


def test_each_probe_decides_its_own_side_of_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def derived(probe: str, verdict: str) -> SimpleNamespace:
        rules = [{"rule": "large blocks beat small ones", "verdict": verdict, "detail": probe}]
        return SimpleNamespace(probe=probe, findings={"rules": rules})

    records = [derived("storage.read.sequential", "undecided"), derived("storage.write.sequential", "true")]
    run: Any = SimpleNamespace(
        select=lambda probe, **_: [record for record in records if record.probe == probe], absent=()
    )
    monkeypatch.setattr(lesson, "_reading_ahead", lambda native: ("false", "writing was ahead"))
    assert lesson.native_rules(run) == {
        "large_read": ("undecided", "storage.read.sequential"),
        "large_write": ("true", "storage.write.sequential"),
        "reading": ("false", "writing was ahead"),
    }


def test_the_sweet_spot_is_the_smallest_size_with_nine_tenths_of_the_best() -> None:
    found = curve({10: (10.0,), 100: (10.5,), 1000: (100.0,)}, {10: (1.0,), 100: (1.0,), 1000: (1.0,)})
    assert lesson.sweet_spot(found, "read_cold") == 100
    assert lesson.sweet_spot(found, "write") == 1000
    assert lesson.sweet_spot({}, "write") is None


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="asks Linux's page cache")
def test_a_file_that_is_in_the_cache_is_seen_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    block_size.write_file(path, os.urandom(100_000), flush=True)
    assert block_size.read_blocks(path, 4096) > 0
    assert block_size.cached_share(path) == 1.0


def test_both_layouts_hold_the_same_column_and_a_broken_one_is_noticed(tmp_path: Path) -> None:
    rows_first, columns_first = tmp_path / "rows", tmp_path / "columns"
    total = block_size.write_table(rows_first, columns_first, 2048, 8)
    assert block_size.scan_rows(rows_first, 8)[1] == block_size.scan_column(columns_first, 2048)[1] == total
    assert rows_first.stat().st_size == columns_first.stat().st_size
    with columns_first.open("r+b") as file:
        file.write(array("q", [99]).tobytes())
    assert block_size.scan_column(columns_first, 2048)[1] != total


def test_one_disk_does_not_decide_what_takes_two(result: Result) -> None:
    said = str(result["rules.solid.python"].value)
    assert said.startswith("by the published figures: true; not measured here (")
    assert "67 times at 4 KiB, 20 times at 1 MB" in said
    assert result["references.solid.small"].shown == "150 µs"
    assert result["references.spinning.large"].shown == "20.0 ms"
    assert all(
        "not measured here" in result[f"references.{kind}.{column}"].why
        for kind in ("solid", "spinning")
        for column in ("small", "large")
    )


def disk(small: tuple[float, ...], large: tuple[float, ...], times: float = 1.0) -> Curve:
    """Small files and large ones: cold reads, and writes that take so many times as long."""
    return {
        size: {"read_cold": Times(values), "write": Times(tuple(times * each for each in values))}
        for size, values in ((1000, small), (10**6, large))
    }


SOLID = disk((70e-6, 80e-6, 90e-6), (1e-3, 1.1e-3, 1.2e-3))
SPINNING = disk((8e-3, 9e-3, 10e-3), (15e-3, 16e-3, 17e-3))


def third_rule(*two: Curve, systems: tuple[str, str] = ("", ""), why: str = "") -> str:
    found = lesson.say({}, {}, two=two, systems=systems, why={**lesson.NO_WHY, "two": why})
    (table,) = (each for each in found.tables if each.name == "rules")
    return str(table.cell("solid", "python").value)


def test_where_the_one_disk_stands_is_known_by_its_own_cold_reads() -> None:
    for curve_of, stands in (
        (SOLID, "80.0 µs, like solid state"),
        (SPINNING, "9.00 ms, like a spinning disk"),
    ):
        found = lesson.say(curve_of, {})
        (rules, references) = (each for each in found.tables if each.name in {"rules", "references"})
        said = str(rules.cell("solid", "python").value)
        assert said.startswith("by the published figures: true; not measured here (")
        assert said.endswith(f"the one disk that was measured reads 1 kB cold in {stands})")
        assert references.cell("here", "large").number == curve_of[10**6]["read_cold"].median
    assert "could not be read cold" in third_rule()
    assert "is memory, not a disk" in third_rule(systems=("tmpfs", ""))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("spinning", "verdict"),
    [
        (SPINNING, "true ("),
        (disk((2e-3, 2e-3, 2e-3), (50e-3, 51e-3, 52e-3)), "true; especially for small: false ("),
        (disk((8e-3, 9e-3, 10e-3), (1e-3, 100e-3, 200e-3)), "undecided ("),
        (disk((8e-3, 9e-3, 10e-3), (0.1e-3, 0.2e-3, 0.2e-3)), "false ("),
    ],
)
def test_two_disks_decide_the_third_rule_where_one_spins(
    spinning: Curve, verdict: str, *, swapped: bool
) -> None:
    said = third_rule(*((SOLID, spinning), (spinning, SOLID))[swapped])
    assert said.startswith(verdict), said
    assert "times as long on the slower one: written 1 kB" in said


def test_two_disks_of_one_kind_are_compared_and_decide_nothing() -> None:
    twice = disk((140e-6, 160e-6, 180e-6), (1e-3, 1.1e-3, 1.2e-3))
    said = third_rule(SOLID, twice)
    assert said.startswith("both are solid (times as long on the second: written 1 kB 2.0 times (2.0 – 2.0)")
    assert third_rule(SPINNING, SPINNING).startswith("both are as slow as spinning disks (")
    in_memory = {size: {"write": own["write"]} for size, own in SOLID.items()}
    said = third_rule(SPINNING, in_memory, systems=("", "tmpfs"))
    assert said.startswith(
        "undecided (the first reads 1 kB cold in 9.00 ms, like a spinning disk; the second is memory"
    )
    assert "read 1 kB" not in said
    said = third_rule(SOLID, SPINNING, systems=("", "nfs4"))
    assert said.startswith("undecided (")
    assert "the second is accessed through nfs4" in said
    assert third_rule(why="the disk is full") == "undecided (the two disks alternately: the disk is full)"


def test_the_two_disks_stand_side_by_side_with_the_ratio_of_their_times() -> None:
    found = lesson.say({}, {}, two=(SOLID, SPINNING), systems=("", ""))
    (table,) = (each for each in found.tables if each.name == "disks")
    assert [row.name for row in table.rows] == ["bytes_1000", "bytes_1000000"]
    small = table.rows[0].cells
    assert (small["read_cold_first"].number, small["read_cold_second"].number) == (1000 / 80e-6, 1000 / 9e-3)
    assert small["read_cold_ratio"].number == pytest.approx(9e-3 / 80e-6)
    assert "The second reads 1 kB cold in 9.00 ms, like a spinning disk." in table.note
    assert not any(each.name == "references" for each in found.tables)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system than the temporary one, with room."""
    place = Path("/dev/shm")
    if not (place.is_dir() and os.access(place, os.W_OK) and place.stat().st_dev != tmp_path.stat().st_dev):
        pytest.skip("there is no second file system")
    if shutil.disk_usage(place).free < KEPT_BYTES + 10**8:
        pytest.skip("the second file system has too little room")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def test_each_disk_is_measured_in_its_own_directory_in_turns(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, real = [], block_size.write_file

    def write(path: Path, data: bytes, *, flush: bool) -> float:
        assert flush
        where.append((len(data), path.parent.parent.parent))
        return real(path, data, flush=flush)

    monkeypatch.setattr(block_size, "write_file", write)
    with Bench("small", directory=tmp_path) as bench:
        first, second = lesson.by_disk(bench, elsewhere)
    sizes = lesson.FILES["small"]
    assert where[::2] == where[1::2], "each write comes after one of the same form"
    up = [(size, place) for size in sizes for place in (tmp_path, elsewhere)]
    assert where[::2] == [*up, *reversed(up), *up]
    assert all(len(each[size]["write"].values) == 3 for each in (first, second) for size in sizes)
    assert [*tmp_path.iterdir(), *elsewhere.iterdir()] == []


@pytest.mark.slow
def test_two_directories_are_compared_and_nothing_is_left_in_either(tmp_path: Path, elsewhere: Path) -> None:
    found = lessons.run("block-size", "small", plain=True, directory=[tmp_path, elsewhere])
    for row in some(found.table("disks").rows):
        assert row.cells["write_ratio"].number
        assert row.cells["write_ratio"].repeats == 3
    note = found.table("disks").note
    if file_system(elsewhere) == "tmpfs":
        assert "The second is memory" in note
        assert str(found["rules.solid.python"].value).startswith("undecided")
    assert [*tmp_path.iterdir(), *elsewhere.iterdir()] == []


@pytest.mark.slow
def test_a_comparison_that_is_ended_leaves_nothing_on_either_disk(tmp_path: Path, elsewhere: Path) -> None:
    directories = ["--dir", str(tmp_path), "--dir", str(elsewhere)]
    command = [sys.executable, "-m", "latlab", "lesson", "block-size", "--small", "--plain", *directories]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list(elsewhere.glob("latlab-lesson-*/files-*/file-*")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, said
    assert [*tmp_path.iterdir(), *elsewhere.iterdir()] == []


def test_a_second_directory_that_cannot_be_written_is_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lessons, "check_directories", lambda *_: None)
    found = lessons.run("block-size", "small", plain=True, directory=[tmp_path, tmp_path / "gone"])
    assert str(found["rules.solid.python"].value).startswith("undecided (the two disks alternately: ")
    assert any(each.what == "the two disks alternately" for each in found.missing)
    assert found["rules.large_write.python"].value


@pytest.mark.parametrize(
    ("buffered", "rows", "said"),
    [
        ((0.001, 0.002), (8.0, 9.0), ("Yes: ", "because all other")),
        ((0.9, 1.3), (0.9, 1.1), ("Any difference is within run-to-run variation: ", "although all other")),
    ],
)
def test_what_the_repeats_do_not_bear_out_is_not_said(
    buffered: tuple[float, float], rows: tuple[float, float], said: tuple[str, str]
) -> None:
    files = {1000: {"write": Times((1.0, 1.2)), "write_buffered": Times(buffered)}}
    column = {
        f"{layout}_{state}": Times(rows if layout == "rows" else (1.0, 1.0))
        for layout in ("rows", "columns")
        for state in ("cold", "warm")
    }
    found = lesson.say(files, {}, Arms(column))
    assert next(each for each in found.answers if "protect" in each.question).answer.startswith(said[0])
    assert said[1] in found.reasons[-1]


def test_power_is_said_or_unknown() -> None:
    assert lesson.power()
