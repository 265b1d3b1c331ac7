"""Changes and spikes of series whose changes are known, and what chance alone makes of unchanged ones."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Iterable

import numpy as np
import pytest
from tests.some import some

from latlab.compare import series as series_module
from latlab.compare.series import LEAST, between, changes, energy, judged, spikes

SAME = math.log(1.1)
RUNS = 30


def series(levels: list[tuple[int, float]], seed: int, noise: float = 0.02) -> list[float]:
    """Logarithms of values: so many runs at each level, each with a run's own deviation."""
    dice = random.Random(seed)
    return [math.log(level) + dice.gauss(0, noise) for count, level in levels for _ in range(count)]


# --------------------------------------------------------------------------------------- exhaustive searches


def distance(first: list[float], second: list[float]) -> float:
    """The energy statistic of two samples, as Matteson and James write it, pair by pair."""

    def mean(pairs: list[tuple[float, float]]) -> float:
        return statistics.fmean(abs(a - b) for a, b in pairs)

    across = mean(list(itertools.product(first, second)))
    within = mean(list(itertools.combinations(first, 2))) + mean(list(itertools.combinations(second, 2)))
    return len(first) * len(second) / (len(first) + len(second)) * (2 * across - within)


@pytest.mark.parametrize("count", [6, 7, 20])
def test_the_statistic_of_every_split_is_that_of_all_its_pairs(count: int) -> None:
    values = series([(count // 2, 1.0), (count - count // 2, 1.2)], seed=count, noise=0.1)
    expected = [distance(values[:place], values[place:]) for place in range(LEAST, count - LEAST + 1)]
    assert energy(np.asarray(values)) == pytest.approx(expected)


def best(values: list[float]) -> list[int]:
    """Of all sets of at most two changes the one whose levels leave least, each change at its price."""

    def price(chosen: Iterable[int]) -> float:
        places = list(chosen)
        ends = [0, *places, len(values)]
        parts = [values[start:end] for start, end in itertools.pairwise(ends)]
        if min(map(len, parts)) < LEAST:
            return math.inf
        left = sum((value - statistics.fmean(part)) ** 2 for part in parts for value in part)
        return len(values) * math.log(left) + 4 * len(places) * math.log(len(values))

    sets = itertools.chain.from_iterable(
        itertools.combinations(range(LEAST, len(values) - LEAST + 1), count) for count in range(3)
    )
    return list(min(sets, key=price))


# --------------------------------------------------------------------------------------------- golden series

GOLDEN = {
    "nothing": ([(30, 1.0)], []),
    "5 %": ([(15, 1.0), (15, 1.05)], []),
    "14 %": ([(15, 1.0), (15, 1.14)], [15]),
    "30 %": ([(15, 1.0), (15, 1.3)], [15]),
    "30 % faster": ([(10, 1.3), (20, 1.0)], [10]),
    "there and back": ([(12, 1.0), (6, 1.3), (12, 1.0)], [12, 18]),
    "twice upwards": ([(10, 1.0), (10, 1.3), (10, 1.69)], [10, 20]),
    "after three runs": ([(3, 1.0), (27, 1.5)], [3]),
    "before the last three": ([(27, 1.0), (3, 1.5)], [27]),
    "too late to be known": ([(28, 1.0), (2, 1.5)], []),
    "two runs that return": ([(14, 1.0), (2, 1.5), (14, 1.0)], []),
    "two runs that return near the end": ([(25, 1.0), (2, 1.5), (3, 1.0)], []),
}


@pytest.mark.parametrize(("levels", "expected"), GOLDEN.values(), ids=GOLDEN)
def test_a_series_has_the_changes_that_were_made(
    levels: list[tuple[int, float]], expected: list[int]
) -> None:
    for seed in range(5):
        values = series(levels, seed)
        assert changes(values, SAME) == expected
        if expected:
            assert best(values) == expected
        assert changes(values, SAME) == changes(values, SAME), "chance has no part in it"


def test_ten_per_cent_is_no_change_unless_that_is_asked_for() -> None:
    values = series([(15, 1.0), (15, 1.08)], seed=1)
    assert changes(values, SAME) == []
    assert changes(values, math.log(1.05)) == [15]


def test_a_drift_is_one_or_more_changes_in_its_direction_if_it_is_large_enough() -> None:
    for seed in range(5):
        far = [log + math.log(1.4) * place / RUNS for place, log in enumerate(series([(RUNS, 1.0)], seed))]
        found = some(changes(far, SAME))
        assert all(test.change > SAME for test in between(far, found))
        near = [log + math.log(1.08) * place / RUNS for place, log in enumerate(series([(RUNS, 1.0)], seed))]
        assert changes(near, SAME) == []


def test_a_change_has_its_factor_between_its_neighbours() -> None:
    values = series([(10, 1.0), (10, 1.3), (10, 1.69)], seed=3)
    for test in between(values, [10, 20]):
        assert math.exp(test.change) == pytest.approx(1.3, rel=0.02)
        assert test.degrees == 18


def test_values_without_noise_have_their_change() -> None:
    assert changes([0.0] * 5 + [1.0] * 5, SAME) == [5]
    assert changes([0.0] * 10, SAME) == []
    assert changes([], SAME) == changes([0.0] * 5, SAME) == []


@pytest.mark.parametrize("value", [0.1, 1.7, math.log(3)])
def test_a_long_series_of_one_value_has_no_change_and_no_place_to_test(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested: list[int] = []
    whole = series_module._test

    def counted(before: list[float], after: list[float]) -> object:
        tested.append(len(before))
        return whole(before, after)

    monkeypatch.setattr(series_module, "_test", counted)
    assert judged([value] * 500, SAME) == ([], [])
    assert len(tested) < 50


def test_two_single_values_are_no_change() -> None:
    assert series_module._test([0.0], [1.0]).nearer < LEAST


@pytest.mark.parametrize("factor", [0.3, 1.5, 20.0])
@pytest.mark.parametrize("place", [2, 15, 27])
def test_a_single_run_that_departs_and_returns_is_a_spike(place: int, factor: float) -> None:
    for seed in range(5):
        values = series([(30, 1.0)], seed)
        values[place] += math.log(factor)
        assert spikes(values, SAME) == [place]
        assert changes(values[:place] + values[place + 1 :], SAME) == []


def test_a_step_is_no_spike_and_a_spike_beside_it_is_one() -> None:
    for seed in range(5):
        values = series([(15, 1.0), (15, 1.3)], seed)
        assert spikes(values, SAME) == []
        values[14] += math.log(3)
        assert spikes(values, SAME) == [14]
        assert changes(values[:14] + values[15:], SAME) == [14]


def test_what_departs_last_has_not_returned() -> None:
    values = series([(30, 1.0)], seed=1)
    values[-1] += 1.0
    assert spikes(values, SAME) == []
    assert changes(values, SAME) == []


# -------------------------------------------------------------------------------------------------- by chance


def alarms(count: int, noise: float, figures: int = 1, *, heavy: bool = False) -> float:
    """Which share of 1,000 unchanged series has any change, spikes taken out as for a history."""
    dice = random.Random(count)
    found = 0
    for _ in range(1000):
        # Divided by the root of a gamma variate a normal one is Student's t, here with four degrees.
        scale = [math.sqrt(dice.gammavariate(2, 0.5)) if heavy else 1.0 for _ in range(count)]
        values = [noise * dice.gauss(0, 1) / each for each in scale]
        found += bool(judged(values, SAME, figures)[1])
    return found / 1000


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
def test_at_most_one_of_a_hundred_unchanged_series_of_thirty_runs_has_a_change(noise: float) -> None:
    assert alarms(RUNS, noise) <= 0.01
    assert alarms(RUNS, noise, heavy=True) <= 0.01


def test_shorter_series_and_many_figures_have_no_more_alarms() -> None:
    assert alarms(10, 0.5) <= 0.01
    assert alarms(RUNS, 0.5, figures=12) <= 0.01 / 4
