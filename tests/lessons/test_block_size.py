"""Block sizes: rates and 30 GB from the times, verdicts from the spread, caches that are looked at."""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.some import some

from latlab.lessons.bench import Arms, Times
from latlab.lessons.experiments import block_size as lesson
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


def curve(reads: dict[int, tuple[float, ...]], writes: dict[int, tuple[float, ...]]) -> lesson.Curve:
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
    assert "one of 100 MB, the largest that was tried" in found.answer[0]
    flat = {size: {"read_cold": Times((float(size),)), "write": Times((1.0,))} for size in (10**6, 10**8)}
    assert "one of 1 MB; at the best rate" in lesson.say(flat, {}).answer[0]


def test_each_probe_decides_its_own_side_of_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def derived(probe: str, verdict: str) -> SimpleNamespace:
        rules = [{"rule": "large blocks beat small ones", "verdict": verdict, "detail": probe}]
        return SimpleNamespace(probe=probe, finding=lambda name: rules if name == "rules" else None)

    records = [derived("storage.read.sequential", "undecided"), derived("storage.write.sequential", "true")]
    run: Any = SimpleNamespace(
        select=lambda probe, kind: [record for record in records if record.probe == probe], absent=()
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
    assert str(result["rules.solid.python"].value).startswith("undecided")


@pytest.mark.parametrize(
    ("buffered", "rows", "said"),
    [
        ((0.001, 0.002), (8.0, 9.0), ("Yes: ", "because all other")),
        ((0.9, 1.3), (0.9, 1.1), ("Not beyond what the repeats differ: ", "although all other")),
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
    assert next(each for each in found.answers if "guard" in each.question).answer.startswith(said[0])
    assert said[1] in found.reasons[-1]


def test_power_is_said_or_unknown() -> None:
    assert lesson.power()
