from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest

pytest.importorskip("latlab._core")

from latlab import stats
from latlab.run.model import Record
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


def intervals(samples: np.ndarray) -> dict[str, tuple[float, float]]:
    """Of p90, p99, p99.9 and p99.99, as far as there are samples enough."""
    shares = {"p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
    return {
        name: stats.order_statistic_interval(samples, share)
        for name, share in shares.items()
        if len(samples) >= stats.min_samples(share)
    }


def exact(ratios: tuple[float, ...]) -> dict[str, tuple[float, float]]:
    """Quantiles known to a millionth, each so many times the one before."""
    values = np.cumprod((100.0, *ratios))
    return {
        name: (at, at * 1.000_001) for name, at in zip(("p90", "p99", "p999", "p9999"), values, strict=False)
    }


def test_a_normal_would_put_one_in_a_billion_where_pokes_were_seen(
    poke: Record, scipy_stats: ModuleType
) -> None:
    claim = tails.normal_claim(poke)
    assert claim is not None
    assert scipy_stats.norm.sf(tails._FAR) == pytest.approx(1e-9, rel=0.02)
    assert claim.total == poke.samples
    assert poke.summary is not None
    assert poke.summary.mean is not None
    assert poke.summary.std is not None
    assert claim.beyond == pytest.approx(poke.summary.mean + 6 * poke.summary.std)
    assert claim.seen == sum(count for low, _, count in poke.buckets() if low > claim.beyond)
    assert claim.seen > 0


def test_the_slowest_take_the_share_that_their_times_sum_to(poke: Record) -> None:
    values = sorted(
        ((low + high) / 2 for low, high, count in poke.buckets() for _ in range(count)), reverse=True
    )
    for part in (1e-3, 0.5, 1.0):
        slowest = values[: round(part * len(values))]
        assert tails.slowest_share(poke, part) == pytest.approx(sum(slowest) / sum(values), rel=1e-6)
    assert tails.slowest_share(msgspec.structs.replace(poke, histogram=None), 0.1) is None


def test_what_has_no_spread_is_compared_with_no_normal(run: Run, poke: Record) -> None:
    assert poke.summary is not None
    even = msgspec.structs.replace(poke, summary=msgspec.structs.replace(poke.summary, std=0.0))
    assert tails.normal_claim(even) is None
    assert tails.normal_claim(next(record for record in run.records if record.summary is None)) is None


def called_possible(draw: Callable[[int], np.ndarray], number: int, sets: int) -> int:
    """Of so many sets of samples, those that a power law was called possible for."""
    found = [tails.power_law(intervals(draw(number))) for _ in range(sets)]
    return sum(law is not None and law.possible for law in found)


@pytest.mark.parametrize("index", [0.8, 1.5, 3.0])
@pytest.mark.parametrize("number", [4_000, 40_000])
def test_a_pareto_of_any_index_is_hardly_ever_refused(index: float, number: int) -> None:
    random = np.random.default_rng(2)
    assert called_possible(lambda count: 1 + random.pareto(index, count), number, 60) >= 57


def test_a_lognormal_is_distinguished_from_a_power_law_by_100_000_samples_and_not_by_4_000() -> None:
    random = np.random.default_rng(3)
    assert called_possible(lambda count: random.lognormal(0, 2, count), 100_000, 20) == 0
    assert called_possible(lambda count: random.lognormal(0, 2, count), 4_000, 60) >= 54


def test_p9999_counts_where_it_has_an_interval() -> None:
    random = np.random.default_rng(4)
    for number, last in ((stats.min_samples(0.999), "p999"), (stats.min_samples(0.9999), "p9999")):
        found = tails.power_law(intervals(1 + random.pareto(1.5, number)))
        assert found is not None
        assert found.quantiles[-1] == last


def test_no_power_law_fits_a_normal_or_two_groups() -> None:
    random = np.random.default_rng(5)
    groups = np.where(random.random(100_000) < 0.003, 600.0, 10.0) * random.uniform(1, 2, 100_000)
    for samples in (random.normal(100, 5, 100_000), groups):
        found = tails.power_law(intervals(samples))
        assert found is not None
        assert not found.possible


@pytest.mark.parametrize(
    ("ratios", "possible", "settles"),
    [
        ((2.0, 2.0), True, True),
        ((2.0, 2.0, 2.0), True, True),
        ((3.1, 3.1), True, True),
        ((3.2, 3.2), True, False),
        ((2.0, 5.0), False, False),
        ((5.0, 2.0), False, True),
        ((2.0, 2.0, 2.1), False, True),
        ((4.0, 3.9, 4.0), False, False),
    ],
)
def test_a_power_law_keeps_the_ratio_and_averages_go_by_the_last_one(
    ratios: tuple[float, ...], possible: bool, settles: bool
) -> None:
    found = tails.power_law(exact(ratios))
    assert found is not None
    assert (found.possible, found.settles) == (possible, settles)


def test_ratios_count_as_equal_within_what_the_quantiles_are_known_by() -> None:
    known = exact((2.0, 2.2))
    apart = tails.power_law(known)
    assert apart is not None
    assert not apart.possible
    wider = tails.power_law(known | {"p999": (380.0, 800.0)})
    assert wider is not None
    assert wider.possible
    assert wider.settles is None, "from 1.9 to 4 times p99"
    both = tails.power_law(known | {"p99": (150.0, 300.0), "p999": (600.0, 700.0)})
    assert both is not None
    assert both.settles is None, "from 2 to 4.7 times p99"
    coarse = tails.power_law(known, step=12.0)
    assert coarse is not None
    assert coarse.possible, "100, 200 and 440 ns by a clock with steps of 12 ns"


def test_quantiles_that_are_missing_equal_or_broken_tell_nothing_of_a_power_law() -> None:
    known = exact((2.0, 2.0))
    for name in known:
        assert tails.power_law({key: ends for key, ends in known.items() if key != name}) is None
    assert tails.power_law(exact((1.0, 1.0))) is None
    assert tails.power_law(exact((1.05, 1.05)), step=20.0) is None, "all within a step of the clock"
    for ends in ((0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0), (9.0, 1.0), (1.0, math.inf)):
        assert tails.power_law(known | {"p999": ends}) is None
