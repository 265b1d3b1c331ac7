from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest
from tests.some import some

pytest.importorskip("latlab._core")

from latlab import stats
from latlab.run.model import Record, Spread
from latlab.run.run import Run, load
from latlab.stats import tails


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return load(root / "tests/data/run-small.latlab.jsonl")


@pytest.fixture(scope="module")
def poke(run: Run) -> Record:
    """The read pokes of the largest array."""
    reads = [r for r in run.records if r.probe == "memory.poke" and r.point.operation == "read"]
    return max(
        (r for r in reads if r.kind == "per_op"), key=lambda record: record.point.working_set_bytes or 0
    )


def blocks_of(samples: np.ndarray, number: int = 8) -> list[np.ndarray]:
    return np.array_split(samples, number)


def test_hills_estimate_is_the_mean_logarithm_above_the_threshold() -> None:
    samples = 5.0 + np.random.default_rng(1).pareto(1.5, 5000) * 5.0
    ordered = np.sort(samples)[::-1]
    for point in some(tails.tail(tails.of_samples(blocks_of(samples))).hill):
        k = round(point.beyond)
        assert point.index == pytest.approx(1 / np.log(ordered[:k] / ordered[k]).mean())
        assert point.threshold == ordered[k]


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.4, 1.1])
def test_the_shape_of_the_tail_is_that_of_scipys_fit(shape: float, scipy_stats: ModuleType) -> None:
    samples = 100 + scipy_stats.genpareto.rvs(shape, scale=7, size=3000, random_state=3)
    for point in some(tails.tail(tails.of_samples(blocks_of(samples))).shape[::6]):
        excess = samples[samples > point.threshold] - point.threshold
        theirs, _, scale = scipy_stats.genpareto.fit(excess, floc=0)
        mine = scipy_stats.genpareto.logpdf(excess, point.shape, scale=point.scale).sum()
        # Scipy's simplex may end early: ours is at least as likely.
        assert mine >= scipy_stats.genpareto.logpdf(excess, theirs, scale=scale).sum() - 1e-3


def test_the_fitted_families_are_scipys(scipy_stats: ModuleType) -> None:
    samples = np.random.default_rng(5).lognormal(3.0, 0.6, 6000)
    at = (10.0, 30.0, 100.0)
    found = tails.families(tails.of_samples(samples), at)
    assert found is not None
    assert found.best.family == "lognormal"
    sigma, _, scale = scipy_stats.lognorm.fit(samples, floc=0)
    assert found.best.above == pytest.approx(scipy_stats.lognorm.sf(at, sigma, scale=scale), rel=0.02)
    normal = found.of("normal")
    assert normal.above == pytest.approx(scipy_stats.norm.sf(at, samples.mean(), samples.std()), rel=0.01)
    assert normal.vuong_p is not None
    assert normal.vuong_p < 0.001
    assert normal.factor_off > 5


@pytest.mark.parametrize(("seen", "put", "times"), [(0.25, 0.5, 2), (0.5, 0.25, 2), (0.5, 0.0, math.inf)])
def test_a_family_is_as_far_off_with_too_many_slow_ones_as_with_too_few(
    seen: float, put: float, times: float
) -> None:
    fit = tails.Fit("normal", (), log_likelihood=0.0, bic=0.0, above=(), furthest_off=(9.0, seen, put))
    assert fit.factor_off == times


def test_a_value_is_not_above_itself() -> None:
    assert tails.of_samples([1.0, 2.0, 2.0, 5.0]).above(2.0) == 1


def test_a_tail_index_is_given_for_a_power_law_with_its_interval_and_for_nothing_else() -> None:
    random = np.random.default_rng(2)
    found = tails.tail(tails.of_samples(blocks_of(1 + random.pareto(1.5, 20_000)))).index
    assert found is not None
    assert found.at.interval is not None
    assert found.at.interval[0] < 1.5 < found.at.interval[1]
    assert found.span >= 10
    for other in (random.lognormal(0, 2, 20_000), random.normal(100, 5, 20_000), 1 + random.pareto(1.5, 500)):
        tail = tails.tail(tails.of_samples(blocks_of(other)))
        assert tail.index is None
        assert tail.why_no_index


def test_mean_excess_is_the_mean_distance_above_the_threshold() -> None:
    samples = np.random.default_rng(4).exponential(10, 3000)
    for point in some(tails.tail(tails.of_samples(samples)).mean_excess):
        assert point.excess == pytest.approx(
            float((samples[samples > point.threshold] - point.threshold).mean())
        )


def test_samples_in_two_groups_have_two_modes_and_dip() -> None:
    random = np.random.default_rng(6)
    two = np.concatenate((random.normal(100, 5, 3000), random.normal(300, 20, 1000)))
    random.shuffle(two)
    found = tails.modes(tails.of_samples(two, step=1.0))
    assert [round(mode.p50_ns, -1) for mode in found.modes] == [100, 300]
    assert found.dip is not None
    assert found.dip.p < 0.01
    one = tails.modes(tails.of_samples(random.lognormal(5, 0.3, 4000)))
    assert len(one.modes) == 1
    assert one.dip is not None
    assert one.dip.p > 0.1


def test_autocorrelation_is_spearmans_of_the_shifted_series(scipy_stats: ModuleType) -> None:
    random = np.random.default_rng(8)
    series = np.empty(4000)
    series[0] = random.normal()
    for at in range(1, 4000):
        series[at] = 0.7 * series[at - 1] + random.normal()
    for found in tails.autocorrelation([np.exp(series)])[:6]:
        theirs = scipy_stats.spearmanr(series[: -found.lag], series[found.lag :]).statistic
        assert found.value == pytest.approx(theirs, abs=0.01)
    assert stats.dependence([series]).effective_samples < 2000


def test_samples_that_follow_each_other_have_wider_intervals_than_independent_ones() -> None:
    random = np.random.default_rng(9)
    bursts = np.repeat(1 + random.pareto(1.5, 1000), 20)
    following = tails.tail(tails.of_samples(blocks_of(bursts, 10))).hill[-1]
    alone = tails.tail(tails.of_samples(blocks_of(random.permutation(bursts), 10))).hill[-1]
    assert following.interval is not None
    assert alone.interval is not None
    assert following.index == pytest.approx(alone.index)
    wide, narrow = (math.log(hi / lo) for lo, hi in (following.interval, alone.interval))
    assert wide > 2 * narrow


def test_a_normal_would_put_one_in_a_billion_where_pokes_were_seen(
    poke: Record, scipy_stats: ModuleType
) -> None:
    claim = tails.normal_claim(tails.of_record(poke))
    assert claim is not None
    assert claim.share == pytest.approx(scipy_stats.norm.sf(6))
    assert claim.seen > 0
    assert claim.total == poke.samples
    assert poke.summary is not None
    assert poke.summary.mean is not None
    assert poke.summary.std is not None
    assert claim.beyond == pytest.approx(poke.summary.mean + 6 * poke.summary.std)


def test_the_deviation_of_samples_is_that_of_a_sample_not_of_a_population() -> None:
    assert tails.of_samples([1.0, 2.0, 6.0]).deviation == pytest.approx(math.sqrt(7))


def test_a_record_is_worth_as_many_independent_samples_as_scatter_like_its_blocks(poke: Record) -> None:
    """Of n independent samples the interval holds a share of 2 x 1.96 x sqrt(1/4 / n) of all."""
    low, high = (poke.value or 0.0) / 1.01, 1.01 * (poke.value or 0.0)
    within = math.log(1.01) * math.sqrt(len(poke.blocks)) / tails._NORMAL_95
    values = tails.of_record(msgspec.structs.replace(poke, spread=Spread(within=within)))
    inside = sum(count for at, count in values.counts if low < at < high) / values.total
    assert inside > 0
    assert inside == pytest.approx(2 * 1.96 * math.sqrt(0.25 / values.effective))


def test_a_record_has_its_tail_from_its_histogram_and_intervals_from_its_slow_samples(poke: Record) -> None:
    values = tails.of_record(poke)
    assert values.total == poke.samples
    assert sum(map(len, values.slow)) == len(poke.tail)
    assert len(values.slow) == len(poke.blocks)
    tail = tails.tail(values)
    assert [point.beyond for point in tail.hill] == sorted(point.beyond for point in tail.hill)
    # Where the order of measuring is not known, nothing says how far neighbours depend on each other.
    assert all(point.interval is None for point in tail.hill if point.beyond > len(poke.tail))
    incomplete = msgspec.structs.replace(poke, tail_dropped=1)
    assert tails.of_record(incomplete).slow == ()


def test_a_planted_change_of_regime_is_found_and_noise_has_none() -> None:
    random = np.random.default_rng(12)
    noise = random.lognormal(0, 0.1, 60)
    steady = tails.regimes(100 * noise)
    assert steady is not None
    assert len(steady.levels) == 1
    noise[25:] *= 2
    found = tails.regimes(100 * noise)
    assert found is not None
    assert [(level.first, level.end) for level in found.levels] == [(0, 25), (25, 60)]
    assert found.levels[1].median / found.levels[0].median == pytest.approx(2, rel=0.1)
    assert tails.regimes([1.0] * 3) is None


def test_what_has_no_tail_is_refused(run: Run) -> None:
    batch = next(record for record in run.records if record.kind == "batch_mean")
    with pytest.raises(stats.Refused):
        tails.of_record(batch)
    for samples in ([], [1.0, -1.0], [1.0, math.nan]):
        with pytest.raises(stats.Refused):
            tails.of_samples(samples)
    equal = tails.of_samples([5.0] * 100)
    assert tails.normal_claim(equal) is None
    assert tails.families(equal) is None
    assert tails.tail(equal).hill == ()


def test_values_of_no_length_at_all_on_a_coarse_clock_are_fitted() -> None:
    """Nine of ten took no step of a clock of 40 ns."""
    samples = np.where(np.random.default_rng(7).uniform(size=2000) < 0.9, 0.0, 40.0)
    samples[:30] = 4000.0
    found = tails.families(tails.of_samples(samples, step=40.0), (20.0,))
    assert found is not None
    assert all(0 <= share <= 1 for fit in found.fits for share in fit.above)
