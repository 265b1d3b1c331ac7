"""Times of parts together: means add, ranges hold another job."""

from __future__ import annotations

import math

import numpy as np
import pytest

from latlab.predict.model import EXTRAPOLATED, LEVEL, Part, Source, Spread, largest, together

SOURCE = Source("storage.read.sequential", "block 1 MiB")


def part(seconds: float, deviation: float = 0.1, visits: int = 5) -> Part:
    return Part("reading", seconds, SOURCE, Spread(deviation, visits))


def test_means_add_and_the_range_holds_their_sum() -> None:
    found = together([part(3.0), part(1.0)])
    assert found.seconds == pytest.approx(4.0)
    assert found.low < 4.0 < found.high


def test_a_range_holds_nine_of_ten_further_visits() -> None:
    dice = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        rates = np.exp(dice.normal(0.0, 0.2, 8))
        spread = Spread.of([(float(rate), 1.0) for rate in rates])
        own = together([Part("reading", float(1 / rates.mean()), SOURCE, spread)])
        held += own.low <= float(np.exp(dice.normal(0.0, 0.2))) <= own.high
    # Nine of ten of 400, within four standard deviations of that count; what lasts is counted in, too.
    assert abs(held - LEVEL * 400) < 4 * math.sqrt(400 * LEVEL * (1 - LEVEL))


def test_a_job_that_is_as_long_as_many_visits_is_known_better_than_a_short_one() -> None:
    spread = Spread.of([(rate, 0.1) for rate in (80.0, 120.0, 60.0, 140.0)])
    short, long = (Part("reading", seconds, SOURCE, spread) for seconds in (0.1, 100.0))
    assert together([long]).half < together([short]).half


def test_visits_weigh_by_their_time() -> None:
    assert Spread.of([(100.0, 1.0), (100.0, 1.0)]).deviation == pytest.approx(0.0)
    assert Spread.of([(100.0, 1.0), (300.0, 1.0)]).deviation == pytest.approx(0.5)
    assert Spread.of([(5.0, 1.0)]) == Spread()


def test_the_range_of_many_independent_parts_is_narrower_than_of_one() -> None:
    one, many = together([part(10.0)]), together([part(1.0)] * 10)
    assert many.high / many.low < one.high / one.low


def test_few_operations_are_drawn_from_the_distribution_of_single_ones() -> None:
    shape = (*([0.5] * 99), 50.5)
    few, many = (
        Part("reading", 1.0, SOURCE, Spread(0.01, 9), amount, 1e9, single=shape) for amount in (5.0, 1e6)
    )
    assert together([few]).low < 0.6
    assert together([many]).low > 0.8


def test_what_is_far_beyond_what_was_measured_is_less_certain() -> None:
    near, far = (
        Part("reading", 1.0, SOURCE, Spread(), size, 1.0) for size in (EXTRAPOLATED, 1000 * EXTRAPOLATED)
    )
    assert far.spread[0] > near.spread[0]


def test_answers_do_not_change_from_time_to_time() -> None:
    assert together([part(3.0), part(1.0)]) == together([part(3.0), part(1.0)])


def test_what_overlaps_takes_as_long_as_its_longest() -> None:
    both = together([part(3.0), part(1.0)], max)
    assert both.seconds == 3.0
    assert both.high < together([part(3.0), part(1.0)]).high


def test_the_part_that_most_of_the_range_comes_from_is_found() -> None:
    wide, long = part(1.0, 1.0), part(3.0, 0.05)
    assert largest([long, wide]) is wide
