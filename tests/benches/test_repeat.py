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


class Place(Protocol):
    """What is looked at of a point."""

    spread: float


def place(repeat: ModuleType, *figures: tuple[float, float, float], step: float = 0.0) -> Place:
    """A point of so many runs."""
    own = [
        repeat.Figure(str(number), value, (low, high), step)
        for number, (value, low, high) in enumerate(figures)
    ]
    made: Place = repeat.Place("curve", "a.probe", "point", tuple(own))
    return made


@pytest.mark.parametrize(
    ("one", "other", "step", "known"),
    [
        ((10, 9, 11), (12, 11, 13), 0.0, True),
        ((10, 9, 10.9), (12, 11, 13), 0.0, False),
        ((12, 11, 13), (10, 9, 10.9), 0.0, False),
        ((10, 10, 10), (20, 20, 20), 10.0, True),
    ],
)
def test_intervals_overlap_where_they_touch_or_the_clock_cannot_tell_them_apart(
    repeat: ModuleType,
    one: tuple[float, float, float],
    other: tuple[float, float, float],
    step: float,
    known: bool,
) -> None:
    (found,) = repeat.row("all", [place(repeat, one, other, step=step)]).worst.overlaps
    assert found is known


def test_the_spread_is_the_highest_over_the_lowest(repeat: ModuleType) -> None:
    assert place(repeat, (10, 9, 11), (25, 24, 26), (20, 19, 21)).spread == 2.5
    assert place(repeat, (0, 0, 0), (0, 0, 0)).spread == 1.0
    assert place(repeat, (0, 0, 0), (1, 1, 1)).spread == math.inf


def test_a_row_counts_pairs_and_takes_medians(repeat: ModuleType) -> None:
    places = [
        place(repeat, (10, 9, 11), (10, 9, 11), (20, 19, 21)),
        place(repeat, (10, 5, 20), (11, 5.5, 22)),
    ]
    row = repeat.row("all", places)
    assert (row.figures, row.pairs, row.overlapping) == (2, 4, 2)
    assert row.half == pytest.approx(math.sqrt(11 / 9) - 1)
    assert (row.spread, row.most) == (pytest.approx(1.55), 2.0)
    assert row.worst is places[0]


def test_a_figure_without_an_interval_counts_in_the_ratios_alone(repeat: ModuleType) -> None:
    alone = repeat.Place(
        "detail", "a.probe", "point", (repeat.Figure("1", 10, None), repeat.Figure("2", 30, (29, 31)))
    )
    row = repeat.row("all", [alone])
    assert (row.figures, row.pairs, row.spread) == (1, 0, 3.0)


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


def test_a_run_agrees_with_itself_and_not_with_one_three_times_as_slow(
    repeat: ModuleType, tmp_path: Path
) -> None:
    same = repeat.row("all", repeat.figures_of([("1", RUN), ("2", RUN)]))
    assert same.figures > 50
    assert (same.overlapping, same.spread) == (same.pairs, 1.0)
    places = repeat.figures_of([("1", RUN), ("2", scaled(RUN, 3.0))])
    slower = repeat.row("all", places)
    assert slower.pairs == same.pairs
    assert slower.overlapping < 0.1 * slower.pairs
    assert slower.spread == pytest.approx(3.0)
    repeat.write_csv(tmp_path / "figures.csv", places)
    head, *lines = (tmp_path / "figures.csv").read_text().splitlines()
    assert head == "rank,probe,point,run,value,low,high,by_cpu"
    assert len(lines) == 2 * slower.figures
