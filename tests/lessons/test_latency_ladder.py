"""The ladder: a cycle that visits all, references that are marked, orders of magnitude from what is shown."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from latlab.lessons.bench import Arms, Times
from latlab.lessons.experiments import latency_ladder as lesson
from latlab.lessons.model import Result
from latlab.lessons.programs import ladder
from latlab.run.run import load
from latlab.run.rung import Rung


def test_every_bar_of_the_documents_chart_has_its_row(result: Result) -> None:
    assert [row.name for row in result.table("original").rows] == [
        "L1",
        "L2",
        "L3",
        "RAM",
        "SSD",
        "HDD",
        "packet",
    ]


def test_what_was_not_measured_is_marked_as_a_reference(result: Result) -> None:
    packet = result["original.packet.native"]
    assert packet.value is None
    assert packet.published is not None
    assert result["original.packet.reference"].value == 0.14
    columns = {column.name: column.title for column in result.table("original").columns}
    assert columns["reference"] == "reference, not measured"
    assert packet.published.text == "140 milliseconds"
    (picture,) = [each for each in result.pictures if each.name == "ladder"]
    references = {mark.label for mark in picture.marks if mark.series == "reference, not measured"}
    assert "packet London – California – London" in references
    disks = [result[f"original.{kind}.python"].number for kind in ("SSD", "HDD")]
    assert len(references) == 1 + disks.count(None), "the packet and each kind of disk that is not here"


def test_the_published_bandwidths_are_as_printed(result: Result) -> None:
    printed = {row.name: row.cells["native"].published for row in result.table("bandwidth").rows}
    assert {name: each.text for name, each in printed.items() if each} == {
        "L1": "1 TB/s",
        "L2": "1 TB/s",
        "RAM": "100 GB/s",
        "SSD": "up to 32 GB/s",
        "HDD": "up to 150 MB/s",
    }


def test_the_disks_bandwidth_is_that_of_the_probe_that_reads_it_in_order(root: Path) -> None:
    run = load(root / "tests/data/run-small.latlab.jsonl")
    rungs = {rung.key: rung for rung in run.ladder()}
    said = lesson.say(disk=Arms({"warm_rate": Times((5e9,))}), native=run)
    table = next(table for table in said.tables if table.name == "bandwidth")
    for row, path in (("SSD", "direct"), ("cache", "buffered-warm")):
        (record,) = run.select("storage.read.sequential", path=path, block_bytes=1 << 20)
        assert table.cell(row, "native").value == record.finding("bytes_per_s")
    assert table.cell("RAM", "native").value == rungs["RAM"].bandwidth


def test_ram_that_a_cache_may_have_answered_for_says_so(root: Path) -> None:
    run = load(root / "tests/data/run-small.latlab.jsonl")
    rungs = {rung.key: replace(rung, bandwidth=None) for rung in run.ladder()}
    cell = lesson.Ladder("SSD", rungs, run, "").rate("RAM")
    assert cell.value is None
    assert cell.why == "the largest size read is 1 GiB, part of which a cache may have answered"


def test_the_orders_of_magnitude_are_those_of_the_figures_shown(result: Result) -> None:
    for column in ("native", "python"):
        ratio = result[f"orders.disk_over_ram_ratio.{column}"].number
        if ratio is None:
            continue
        disk = result[f"original.SSD.{column}"]
        if disk.number is None:
            disk = result[f"original.HDD.{column}"]
        assert ratio == pytest.approx((disk.number or 0) / (result[f"original.RAM.{column}"].number or 1))
        assert result[f"orders.magnitude.{column}"].value == f"{math.log10(ratio):.1f}"


def test_memory_that_seems_faster_than_a_cache_has_no_figure() -> None:
    chased = Arms({1 << 14: Times((50e-9, 60e-9, 70e-9)), 1 << 26: Times((60e-9, 55e-9, 65e-9))})
    said = lesson.say(chased, disk=Arms({"cold": Times((1e-4, 2e-4))}), why="not run")
    tables = {table.name: table for table in said.tables}
    assert tables["original"].cell("RAM", "python").value is None
    assert "took no longer" in tables["original"].cell("RAM", "python").why
    assert tables["orders"].cell("magnitude", "python").value is None
    assert said.misled
    assert said.pictures[0].marks
    assert "not both measured" in said.answer[0]


def test_an_array_that_a_cache_holds_is_not_taken_for_ram() -> None:
    chased = Arms({1 << 14: Times((50e-9, 50e-9, 50e-9)), 1 << 21: Times((54e-9, 54e-9, 54e-9))})
    disk = Arms({"cold": Times((1e-4, 1e-4))})
    within, beyond = (lesson.say(chased, disk=disk, largest_cache=size) for size in (32 << 20, 1 << 20))
    tables = [{table.name: table for table in said.tables} for said in (within, beyond)]
    refused, taken = (found["original"].cell("RAM", "python") for found in tables)
    assert refused.value is None
    assert refused.why == "the last-level cache holds 32 MiB, the largest array 2 MiB"
    assert "not both measured" in within.answer[0]
    assert taken.number == pytest.approx(4e-9)
    assert "One access to RAM takes 4 ns" in beyond.answer[0].replace("4.00", "4")


def test_a_cycle_visits_every_place_once_and_a_broken_one_is_noticed() -> None:
    assert ladder.visits_all(ladder.cycle(1 << 10))
    assert not ladder.visits_all(array("I", [1, 0, 3, 2]))


def test_a_disk_is_taken_for_what_its_reads_say() -> None:
    assert lesson.disk_kind({}, {"cold": Times((90e-6,))}) == "SSD"
    assert lesson.disk_kind({}, {"cold": Times((8e-3,))}) == "HDD"
    disk = Arms({"cold": Times((90e-6, 95e-6))})
    assert "row SSD" in lesson.say(disk=disk, called_spinning=True).reasons[-1]
    assert "row SSD" not in lesson.say(disk=disk, called_spinning=False).reasons[-1]


def test_no_packet_is_faster_than_light_in_fibre() -> None:
    assert 0.084 < lesson.FLOOR_S < 0.085
    assert lesson.LATENCIES["packet"].value > lesson.FLOOR_S


def test_each_level_has_its_bandwidth_also_as_a_picture(result: Result) -> None:
    rows = [row.name for row in result.table("bandwidth").rows]
    assert rows[:6] == ["L1", "L2", "L3", "RAM", "SSD", "HDD"]
    (picture,) = [each for each in result.pictures if each.name == "bandwidth"]
    drawn = {mark.label for mark in picture.marks if mark.series != "published"}
    assert {"L1 cache", "L2 cache", "L3 cache", "RAM"} <= drawn


def test_a_level_seen_at_several_sizes_has_more_than_one_repeat() -> None:
    rung = Rung(
        "L3", "L3 cache", latency_p50_ns=53.0, interval=(41.0, 68.0), interval_kind="spread over its sizes"
    )
    cell = lesson.rung_cell(rung, None)
    assert cell.repeats > 1
    assert cell.shown == "53.0 ns (41.0 ns – 68.0 ns)"
    assert lesson.rung_cell(replace(rung, interval=None), None).repeats == 1
