"""Which hosts are called slow, on simulated fleets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from latlab import _core
from latlab.fleet import naming
from latlab.fleet.host import Class, Host, Key
from latlab.fleet.standings import Reason, verdicts
from latlab.fleet.why import disturbed
from latlab.run.meanwhile import Meanwhile
from latlab.run.model import Machine, Settings

HOSTS, FIGURES = 20, 12
REASON = Reason(Key("", ""), "", 1.0, 1.0, "ns", 1.0, 1.0, 1.0)


def fleet(dice: np.random.Generator, spread: float = 0.05, hosts: int = HOSTS) -> naming.Floats:
    """Logarithms of figures of hosts that are alike."""
    return dice.normal(0.0, spread, (hosts, FIGURES))


def named(values: naming.Floats, errors: naming.Floats | None = None) -> list[int]:
    """The hosts that are called slow."""
    found = naming.distances(values, np.zeros_like(values) if errors is None else errors)
    slow = found.beyond(naming.level(naming.ALARMS, values.size))
    return [int(place) for place in np.flatnonzero(slow.any(axis=1))]


def test_a_healthy_fleet_has_a_host_named_as_often_as_is_said() -> None:
    dice = np.random.default_rng(1)
    # With a spread this wide the least ratio protects nobody. Three names are what is said at most; ten would
    # come once in 900 times.
    assert sum(bool(named(fleet(dice, spread=0.3))) for _ in range(3000)) < 10
    heavy = (dice.standard_t(5, (HOSTS, FIGURES)) * 0.3 for _ in range(3000))
    # Tails as heavy as these are not what is promised for, and still in bounds.
    assert sum(bool(named(values)) for values in heavy) < 40


# A quarter of the fleet is as much as its peers are told from.
@pytest.mark.parametrize(("slow", "times"), [(1, 2.5), (2, 2.5), (5, 4.0)])
def test_slow_hosts_do_not_hide_one_another(slow: int, times: float) -> None:
    dice = np.random.default_rng(2)
    found = 0
    for _ in range(50):
        values = fleet(dice)
        values[:slow, 3] += math.log(times)
        own = named(values)
        assert set(own) <= set(range(slow))
        found += len(own)
    assert found >= 0.9 * 50 * slow


def test_a_fast_host_is_not_named() -> None:
    values = fleet(np.random.default_rng(3))
    values[4] -= math.log(3)
    assert named(values) == []


def test_a_host_that_is_hardly_slower_is_not_named_however_sure_that_is() -> None:
    values = fleet(np.random.default_rng(4), spread=0.001)
    values[7, 0] += math.log(1.2)
    assert named(values) == []
    values[7, 0] += math.log(1.1)
    assert named(values) == [7]


def test_a_host_whose_own_repeats_differ_is_not_named() -> None:
    values = fleet(np.random.default_rng(5), spread=0.01)
    values[7, 0] += math.log(1.5)
    assert named(values) == [7]
    errors = np.zeros_like(values)
    errors[7, 0] = 0.3
    assert named(values, errors) == []


def test_fewer_than_five_hosts_have_no_peers() -> None:
    values = fleet(np.random.default_rng(6), hosts=naming.LEAST_HOSTS - 1)
    values[0] += 5.0
    found = naming.distances(values, np.zeros_like(values))
    assert np.isnan(found.ratio).all()
    assert named(values) == []


def test_a_figure_that_some_hosts_lack_is_compared_between_the_others() -> None:
    values = fleet(np.random.default_rng(7))
    values[10:, 2] = np.nan
    values[1, 2] += math.log(4)
    assert named(values) == [1]


@pytest.mark.parametrize("core", [0.75, 0.5])
def test_the_variance_of_the_closest_is_scaled_to_that_of_all(core: float) -> None:
    dice = np.random.default_rng(8)
    for hosts in (5, 12, 40):
        scale, degrees = naming._of_normals(hosts, core)
        closest = (naming._closest(dice.normal(0, 1, hosts), core) for _ in range(2000))
        spreads = [float(np.var(own)) * scale for own in closest]
        # The mean of the logarithm is that of chi² with so many degrees of freedom.
        expected = float(special.digamma(degrees / 2)) - math.log(degrees / 2)
        assert np.mean(np.log(spreads)) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("x", [0.1, 1.0, 2.5, 7.9, 8.0, 40.0])
def test_the_derivatives_of_the_gamma_function_are_those_of_scipy(x: float) -> None:
    assert _core.digamma(x) == pytest.approx(special.digamma(x), rel=1e-6, abs=1e-6)
    assert _core.trigamma_inverse(special.polygamma(1, x)) == pytest.approx(x, rel=1e-6)


def test_hosts_beside_busy_programs_that_slow_nothing_are_named_as_rarely() -> None:
    dice = np.random.default_rng(9)
    cpus = Machine({"cpu": {"logical_cpus": 10}})
    found = beside = 0
    for _ in range(1000):
        slow = np.ones(HOSTS, dtype=np.bool_)
        # What stands out is measured again; half of the variance of a figure is the host's own.
        lasting = fleet(dice, spread=0.07)
        for _ in range(2):
            met = (Meanwhile(other_cpus=10 * min(own, 1.0)) for own in dice.exponential(0.2, HOSTS))
            busy = disturbed([Host("", Class((), 0, "", ()), cpus, Settings(), {}, 0, 1, own) for own in met])
            values = lasting + fleet(dice, spread=0.07)
            distances = naming.distances(values, np.zeros_like(values))
            kinds = [kind for kind, _ in verdicts(distances, values.size, lambda at: REASON, busy)]
            slow &= np.array(kinds) == "slow"
            beside += bool(busy.any())
        found += bool(slow.any())
    assert beside > 1000
    # One of 1,000 is promised.
    assert found <= 1
