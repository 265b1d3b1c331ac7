"""Ratios with their intervals: what is drawn, and what stands where there is none."""

from __future__ import annotations

import json

from tests.charts.schema import against_its_schema

from latlab.view import forest

ROWS = [
    forest.Row("disk", 1.6, 1.5, 1.7, "changed", "disk: 1.60"),
    forest.Row("RAM", 1.0, 0.95, 1.05, "the same", "RAM: 1.00"),
    forest.Row("L3", 1.2, 0.001, 900.0, "cannot tell", "L3: 1.20"),
    forest.Row("switch", None, 1.0, 1.0, "no data in B", "switch: not comparable"),
]


def test_a_row_has_its_mark_and_its_interval_within_the_axis() -> None:
    spec = against_its_schema(forest.drawn(ROWS, 0.1, "B / A"))
    assert spec["layer"][0]["data"]["values"] == [{"from": 1 / 1.1, "to": 1.1}]
    marks = spec["layer"][2]["data"]["values"]
    assert [row["name"] for row in marks] == ["disk", "RAM", "L3"]
    low, high = spec["layer"][2]["encoding"]["x"]["scale"]["domain"]
    assert low < 1 / 1.1 < 1.7 < high < 4
    # An interval that nothing is known by does not squeeze the others together: it ends at the edge.
    assert (marks[2]["low"], marks[2]["high"]) == (low, high)


def test_where_there_is_no_ratio_words_stand_in_its_place() -> None:
    spec = against_its_schema(forest.drawn(ROWS, 0.1, "B / A"))
    text = spec["layer"][-1]
    assert text["mark"]["type"] == "text"
    assert text["data"]["values"] == [{"name": "switch", "text": "no data in B"}]
    # Not where the ratio of what is the same would be.
    assert text["encoding"]["x"] == {"value": 0}


def test_shapes_and_no_colours_tell_the_verdicts() -> None:
    spec = against_its_schema(forest.drawn(ROWS, 0.1, "B / A"))
    assert '"color"' not in json.dumps(spec["layer"])
    assert len(set(spec["layer"][3]["encoding"]["shape"]["scale"]["range"])) == 3


def test_a_large_change_widens_the_axis_up_to_a_limit() -> None:
    far = forest.Row("far", 1e6, 1e5, 1e7, "changed", "far")
    spec = against_its_schema(forest.drawn([far], 0.1, "B / A"))
    _, high = spec["layer"][2]["encoding"]["x"]["scale"]["domain"]
    assert high == 16
    assert spec["layer"][2]["data"]["values"][0]["ratio"] == high
