"""The ladder: a cycle that visits all, references that are marked, orders of magnitude from what is shown."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable

import pytest

from latlab.lessons.bench import Times
from latlab.lessons.experiments import latency_ladder as lesson
from latlab.lessons.model import Result
from latlab.lessons.programs import ladder

Found = Callable[[str], Result]


@pytest.fixture
def result(found: Found) -> Result:
    return found("latency-ladder")


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
    assert packet.why.startswith("reference, not measured")
    assert packet.published is not None
    assert packet.published.text == "140 milliseconds"
    (picture,) = result.pictures
    references = {mark.label for mark in picture.marks if mark.series == "reference, not measured"}
    assert "packet London – California – London" in references
    assert len(references) == 2, "the packet and the kind of disk that is not here"


def test_the_published_bandwidths_are_as_printed(result: Result) -> None:
    printed = {row.name: row.cells["native"].published for row in result.table("bandwidth").rows}
    assert {name: each.text for name, each in printed.items() if each} == {
        "L1": "1 TB/s",
        "L2": "1 TB/s",
        "RAM": "100 GB/s",
        "SSD": "up to 32 GB/s",
        "HDD": "up to 150 MB/s",
    }


def test_the_orders_of_magnitude_are_those_of_the_figures_shown(result: Result) -> None:
    for column in ("native", "python"):
        ratio = result[f"orders.disk_over_ram_ratio.{column}"].number
        if ratio is None:
            continue
        disk = result[f"original.SSD.{column}"]
        if disk.number is None or disk.why.startswith("reference"):
            disk = result[f"original.HDD.{column}"]
        assert ratio == pytest.approx((disk.number or 0) / (result[f"original.RAM.{column}"].number or 1))
        assert result[f"orders.magnitude.{column}"].value == f"{math.log10(ratio):.1f}"


def test_a_cycle_visits_every_place_once_and_a_broken_one_is_noticed() -> None:
    assert ladder.visits_all(ladder.cycle(1 << 10))
    assert not ladder.visits_all(array("I", [1, 0, 3, 2]))


def test_a_disk_is_taken_for_what_its_reads_say() -> None:
    assert lesson.disk_kind({}, {"cold": Times((90e-6,))}) == "SSD"
    assert lesson.disk_kind({}, {"cold": Times((8e-3,))}) == "HDD"
    assert "row SSD" in lesson.about_the_disk("SSD", called=True)[0]
    assert lesson.about_the_disk("SSD", called=False) == ()


def test_no_packet_is_faster_than_light_in_fibre() -> None:
    assert 0.084 < lesson.FLOOR_S < 0.085
    assert lesson.LATENCIES["packet"].value > lesson.FLOOR_S
