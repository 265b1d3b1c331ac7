from __future__ import annotations

import json

import pytest

from latlab.topics.slow_operations import steps_between
from latlab.view.axes import decades, size_axis, widened


def test_steps_on_a_logarithmic_axis_have_both_ends_and_one_factor() -> None:
    assert steps_between(1.0, 16.0, 4) == pytest.approx((1, 2, 4, 8, 16))


def test_decades_stay_within_their_ends() -> None:
    assert decades(0.5, 1200) == [1, 10, 100, 1000]
    assert decades(1, 100, (1, 2, 5)) == [1, 2, 5, 10, 20, 50, 100]


@pytest.mark.parametrize(("low", "high"), [(900, 2**31), (2**14, 2**20), (2**24, 2**25)])
def test_sizes_are_marked_at_powers_of_two_and_not_too_many(low: float, high: float) -> None:
    values = ticks(low, high)
    assert len(values) <= 10
    assert all(value & (value - 1) == 0 for value in values)


def test_a_wide_size_axis_says_64_kib_and_1_mib() -> None:
    assert ticks(900, 2**31) == [4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20]


def test_an_axis_without_values_has_ends_all_the_same() -> None:
    assert widened([]) == (1.0, 10.0)
    assert widened([0.0, -3.0, float("inf")]) == (1.0, 10.0)


def ticks(low: float, high: float) -> list[int]:
    specification = json.loads(size_axis("x", "working set", low, high).to_json(validate=False))
    return list(specification["axis"]["values"])
