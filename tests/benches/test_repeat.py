"""The arithmetic of benches/repeat.py."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Protocol

import msgspec
import pytest

from latlab.run import reader
from latlab.run.run import Run

RUN = reader.read(Path(__file__).resolve().parent.parent / "data" / "run-small.latlab.jsonl")


@pytest.fixture(scope="module")
def repeat() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benches"))
        yield importlib.import_module("repeat")
    del sys.modules["repeat"]


class Pair(Protocol):
    """What is looked at of two figures."""

    ratio: float
    apart: bool
    farther: bool


class Place(Protocol):
    """What is looked at of a point."""

    spread: float


def pair(
    repeat: ModuleType,
    one: tuple[float, float, float],
    other: tuple[float, float, float],
    *,
    step: float = 0.0,
) -> Pair:
    """Two figures, each with its interval."""
    made: Pair = repeat.Pair(repeat.Figure("1", *one, step), repeat.Figure("2", *other, step))
    return made


def test_intervals_that_touch_are_not_apart(repeat: ModuleType) -> None:
    assert not pair(repeat, (10, 9, 11), (12, 11, 13)).apart
    assert pair(repeat, (10, 9, 10.9), (12, 11, 13)).apart
    assert pair(repeat, (12, 11, 13), (10, 9, 10.9)).apart, "in any order"
    assert not pair(repeat, (10, 10, 10), (20, 20, 20), step=10.0).apart, "the clock cannot tell them apart"


def test_figures_are_farther_apart_than_both_intervals_allow_together(repeat: ModuleType) -> None:
    # The root of 3² + 4² is 5.
    assert not pair(repeat, (10, 9, 13), (14.9, 10.9, 15)).farther
    assert pair(repeat, (10, 9, 13), (15.1, 11.1, 15.2)).farther


def test_a_ratio_is_of_the_larger_to_the_smaller(repeat: ModuleType) -> None:
    assert pair(repeat, (10, 9, 11), (25, 24, 26)).ratio == 2.5
    assert pair(repeat, (25, 24, 26), (10, 9, 11)).ratio == 2.5
    assert pair(repeat, (0, 0, 0), (0, 0, 0)).ratio == 1.0
    assert pair(repeat, (0, 0, 0), (1, 1, 1)).ratio == math.inf


def place(repeat: ModuleType, *figures: tuple[float, float, float], disturbed: int = 0) -> Place:
    """A point of so many runs; the last ones are disturbed."""
    calm = len(figures) - disturbed
    own = [
        repeat.Figure(str(number), *figure, disturbed=number >= calm) for number, figure in enumerate(figures)
    ]
    made: Place = repeat.Place("a.probe", "point", tuple(own))
    return made


def test_a_row_counts_pairs_of_undisturbed_figures(repeat: ModuleType) -> None:
    places = [
        place(repeat, (10, 9, 11), (10, 9, 11), (20, 19, 21)),
        place(repeat, (10, 9, 11), (99, 98, 100), disturbed=1),
    ]
    row = repeat.row("all", places)
    assert (row.points, row.pairs, row.apart, row.large, row.disturbed) == (2, 3, 2, 2, 1)
    assert row.worst is places[0]
    assert places[0].spread == 2.0
    assert places[1].spread == 1.0, "a disturbed figure is one of the disturbance"


def scaled(run: Run, times: float) -> Run:
    """Every figure so many times as large."""
    records = []
    for record in run.records:
        summary = record.summary
        if summary is None or summary.p50 is None:
            records.append(record)
            continue
        intervals = {name: (low * times, high * times) for name, (low, high) in summary.intervals.items()}
        larger = msgspec.structs.replace(summary, p50=summary.p50 * times, intervals=intervals)
        records.append(msgspec.structs.replace(record, summary=larger))
    return Run(run.header, records, run.footer)


def test_a_run_agrees_with_itself_and_not_with_one_twice_as_slow(repeat: ModuleType) -> None:
    same = repeat.row("all", repeat.figures_of([("1", RUN), ("2", RUN)]))
    assert same.points > 50
    assert (same.apart, same.farther, same.spread) == (0, 0, 1.0)
    places = repeat.figures_of([("1", RUN), ("2", scaled(RUN, 3.0))])
    slower = repeat.row("all", places)
    assert slower.points == same.points
    assert slower.apart > 0.9 * slower.pairs
    assert slower.spread == pytest.approx(3.0)
    assert "3.00" in repeat.table(places)


def test_figures_of_other_versions_of_a_method_are_not_compared(repeat: ModuleType) -> None:
    newer = [msgspec.structs.replace(record, method=record.method + 1) for record in RUN.records]
    assert repeat.figures_of([("1", RUN), ("2", Run(RUN.header, newer, RUN.footer))]) == []


def test_the_ladder_is_compared_by_its_rungs(repeat: ModuleType) -> None:
    names = {place.label for place in repeat.rungs_of([("1", RUN), ("2", RUN)])}
    assert {"L1 cache", "RAM"} <= names
