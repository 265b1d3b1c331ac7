from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("latlab._core")

from latlab import stats

SAMPLES = st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=1, max_size=200)


@given(SAMPLES, st.floats(min_value=0, max_value=1))
def test_a_quantile_is_numpys(samples: list[float], q: float) -> None:
    assert stats.quantile(samples, q) == pytest.approx(float(np.quantile(samples, q)), rel=1e-9, abs=1e-6)


@given(SAMPLES)
def test_moments_are_numpys(samples: list[float]) -> None:
    found = stats.moments(samples)
    assert found.mean == pytest.approx(np.mean(samples), rel=1e-9, abs=1e-6)
    assert (found.min, found.max) == (min(samples), max(samples))
    if len(samples) > 1:
        assert found.std == pytest.approx(np.std(samples, ddof=1), rel=1e-6, abs=1e-6)
    else:
        assert found.std is None


def test_numpy_arrays_and_lists_are_the_same() -> None:
    values = [3.0, 1.0, 2.0]
    assert stats.quantile(np.array(values), 0.5) == stats.quantile(values, 0.5) == 2.0


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_the_interval_of_a_quantile_is_scipys(q: float, scipy_stats: ModuleType) -> None:
    samples = np.random.default_rng(1).lognormal(size=2000)
    lo, hi = stats.order_statistic_interval(samples, q)
    theirs = scipy_stats.quantile_test(samples, q=float(np.quantile(samples, q)), p=q).confidence_interval(
        0.95
    )
    ordered = np.sort(samples)
    # Neighbouring ranks are both right: there is no interval of exactly 95 %.
    for mine, other in ((lo, theirs.low), (hi, theirs.high)):
        assert abs(int(np.searchsorted(ordered, mine)) - int(np.searchsorted(ordered, other))) <= 2


@pytest.mark.parametrize("q", [0.5, 0.99, 0.999])
def test_the_least_number_of_samples_is_the_least(q: float, scipy_stats: ModuleType) -> None:
    def missed(n: int) -> float:
        """How often the true quantile lies above the largest of n samples, or below the smallest."""
        return max(float(scipy_stats.binom.pmf(0, n, 1 - q)), float(scipy_stats.binom.pmf(0, n, q)))

    n = stats.min_samples(q)
    assert missed(n) <= 0.025
    assert missed(n - 1) > 0.025


def test_the_interval_of_independent_samples_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(200):
        lo, hi = stats.order_statistic_interval(random.exponential(size=480), 0.5)
        covered += lo <= math.log(2) <= hi
    assert covered >= 180


def test_what_cannot_be_stood_for_is_refused_with_a_reason() -> None:
    for asked in (
        lambda: stats.quantile([], 0.5),
        lambda: stats.quantile([1.0], 1.5),
        lambda: stats.quantile([1.0], math.nan),
        lambda: stats.min_samples(1.0),
        lambda: stats.min_samples(0.5, 2.0),
        lambda: stats.moments([]),
        lambda: stats.order_statistic_interval([1.0, 2.0], 0.99),
    ):
        with pytest.raises(stats.Refused) as refusal:
            asked()
        assert str(refusal.value)
