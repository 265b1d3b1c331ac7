"""A point of a probe, and its label."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from latlab.run.point import _LABEL, Point
from latlab.run.run import load

QUICK = Path(__file__).parent.parent / "golden/inputs/quick.latlab.jsonl.zst"


def test_a_label_names_every_field_that_tells_two_points_apart() -> None:
    # The first CPU of a pair stands with the second; draws repeat a point; a machine has one instruction set.
    assert set(Point.__struct_fields__) - set(_LABEL) == {"from_cpu", "draw", "isa"}


def test_two_points_of_a_run_have_two_labels() -> None:
    named = defaultdict(set)
    for record in load(QUICK).records:
        named[record.probe, record.point.label(), record.kind].add(record.point)
    assert len(named) > 300
    assert {label: points for label, points in named.items() if len(points) > 1} == {}
