"""Times of parts together: means add, ranges hold another repeat."""

from __future__ import annotations

import math

import numpy as np
import pytest

from latlab.predict.model import (
    LEVEL,
    Part,
    Source,
    deviation_of,
    deviation_of_range,
    largest,
    together,
)

SOURCE = Source("storage.read.sequential", "block 1 MiB")


def part(seconds: float, deviation: float = 0.1, repeats: int = 5) -> Part:
    return Part("reading", seconds, deviation, repeats, SOURCE)


def test_means_add_and_the_range_holds_their_sum() -> None:
    found = together([part(3.0), part(1.0)])
    assert found.seconds == pytest.approx(4.0)
    assert found.low < 4.0 < found.high


def test_a_range_holds_nine_of_ten_further_repeats() -> None:
    dice = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        repeats = np.exp(dice.normal(0.0, 0.2, 5))
        own = together([part(float(np.exp(np.log(repeats).mean())), deviation_of(list(repeats)), 5)])
        held += own.low <= math.exp(dice.normal(0.0, 0.2)) <= own.high
    # Nine of ten of 400, within three standard deviations of that count.
    assert abs(held - LEVEL * 400) < 3 * math.sqrt(400 * LEVEL * (1 - LEVEL))


def test_the_range_of_many_independent_parts_is_narrower_than_of_one() -> None:
    one, many = together([part(10.0)]), together([part(1.0)] * 10)
    assert many.high / many.low < one.high / one.low


def test_answers_do_not_change_from_time_to_time() -> None:
    assert together([part(3.0), part(1.0)]) == together([part(3.0), part(1.0)])


def test_what_overlaps_takes_as_long_as_its_longest() -> None:
    found = together([part(3.0, 0.0), part(1.0, 0.0)], overlap=lambda times: np.maximum(*times))
    assert found.seconds == found.low == found.high == 3.0


def test_the_part_that_most_of_the_range_comes_from_is_found() -> None:
    wide, long = part(1.0, 1.0), part(3.0, 0.05)
    assert largest([long, wide]) is wide


def test_a_single_value_differs_by_what_runs_usually_differ_by() -> None:
    assert deviation_of([2.0]) == deviation_of([]) == deviation_of_range(2.0, 2.0, 5) > 0.1


def test_a_deviation_comes_from_the_range_of_repeats() -> None:
    dice = np.random.default_rng(2)
    found = []
    for _ in range(500):
        values = np.exp(dice.normal(0.0, 0.3, 6))
        found.append(deviation_of_range(float(values.min()), float(values.max()), 6))
    assert np.mean(found) == pytest.approx(0.3, rel=0.05)
