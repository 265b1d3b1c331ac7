"""The verdicts of pairs: how often they are wrong while the machine drifts, and what they find."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from latlab.compare.verdict import SHOWN
from latlab.duet import PAIRS
from latlab.duet.judge import FEWEST, Figure, Pair, Taken, figures, itself
from latlab.duet.runs import orders

SAME = 0.05

#: Logarithm of how much slower the machine is at each of so many runs.
Drift = Callable[[random.Random, int], Sequence[float]]


def steady(_: random.Random, runs: int) -> list[float]:
    return [0.0] * runs


def warming_up(_: random.Random, runs: int) -> list[float]:
    """From one run to the next 1 % slower."""
    return [0.01 * run for run in range(runs)]


def wandering(dice: random.Random, runs: int) -> list[float]:
    """A random walk in steps of 3 %."""
    at = [0.0]
    for _ in range(runs - 1):
        at.append(at[-1] + dice.gauss(0.0, 0.03))
    return at


def throttled(dice: random.Random, runs: int) -> list[float]:
    """At some moment the clock frequency falls by 15 %."""
    moment = dice.randrange(runs)
    return [0.15 * (run >= moment) for run in range(runs)]


def in_bursts(dice: random.Random, runs: int) -> list[float]:
    """Another program works now and then, about as long as a run takes: often two in a row are slow."""
    slower, at = [0.0] * runs, 0.0
    while (at := at + dice.expovariate(0.5)) < runs:
        until, cost = min(at + dice.expovariate(1.0), runs), dice.uniform(0.2, 0.6)
        for run in range(int(at), math.ceil(until)):
            slower[run] += cost * (min(until, run + 1) - max(at, run))
        at = until
    return slower


DRIFTS: list[Drift] = [steady, warming_up, wandering, throttled, in_bursts]


def duet(
    dice: random.Random, drift: Drift, noise: float, change: float = 0.0, pairs: int = PAIRS
) -> list[Pair]:
    """Simulated runs in the order of a duet; B takes longer by `change`."""
    slower = drift(dice, 2 * pairs)
    found = []
    for number, a_first in enumerate(orders(pairs, dice)):
        a, b = 2 * number + (not a_first), 2 * number + a_first
        walls = (
            math.exp(slower[a] + dice.gauss(0.0, noise)),
            math.exp(slower[b] + dice.gauss(0.0, noise)) * (1 + change),
        )
        found.append(
            tuple(Taken(wall, 0.9 * wall * math.exp(dice.gauss(0.0, 0.01)), 1000.0) for wall in walls)
        )
    return found  # type: ignore[return-value]  # pairs of two


def wall(pairs: Sequence[Pair], same: float = SAME) -> Figure:
    return figures(pairs, same)[0]


@pytest.mark.parametrize("drift", DRIFTS)
def test_of_400_duets_of_equal_programs_one_in_twenty_is_called_changed_at_most(drift: Drift) -> None:
    """Together 2,000. A change that does not matter is never called so, however small the noise."""
    dice = random.Random(drift.__name__)
    alarms = others = 0
    for number in range(400):
        noise = (0.005, 0.02, 0.05, 0.1)[number % 4]
        first, *rest = figures(duet(dice, drift, noise), SAME)
        alarms += first.kind == "changed"
        others += any(each.kind == "changed" for each in rest)
    # Twenty are allowed.
    assert alarms <= 20
    assert others <= 20


@pytest.mark.parametrize("drift", [steady, in_bursts])
def test_without_a_limit_the_interval_alone_holds_its_five_percent(drift: Drift) -> None:
    """What does not matter helps above. Bursts are what a fixed order, A B B A, would fail at: it has 9 %."""
    dice = random.Random(drift.__name__)
    alarms = sum(wall(duet(dice, drift, 0.01), 0.0001).kind == "changed" for _ in range(1000))
    # Of 1,000 at 5 %, chance makes fewer than 30 or more than 70 in one series of 250.
    assert 30 <= alarms <= 70


@pytest.mark.parametrize("drift", [steady, warming_up])
def test_a_program_that_is_10_percent_slower_is_found_in_nine_of_ten(drift: Drift) -> None:
    dice = random.Random(5)
    reported = [wall(duet(dice, drift, 0.03, 0.1)) for _ in range(200)]
    assert sum(each.kind == "changed" for each in reported) >= 180
    assert not any(each.kind == "same" for each in reported)
    inside = [each.verdict.low <= 1.1 <= each.verdict.high for each in reported if each.verdict]
    assert sum(inside) >= 180


def test_equal_programs_with_little_noise_are_the_same() -> None:
    dice = random.Random(6)
    reported = [wall(duet(dice, steady, 0.02)).kind for _ in range(200)]
    assert reported.count("same") >= 190


def test_a_change_as_large_as_is_said_to_be_visible_is_found_in_nine_of_ten() -> None:
    dice = random.Random(7)
    found = asked = 0
    for _ in range(400):
        quiet = wall(duet(dice, steady, 0.06)).verdict
        assert quiet is not None
        reported = wall(duet(dice, steady, 0.06, quiet.smallest_visible))
        assert reported.verdict is not None
        if reported.verdict.smallest_visible <= quiet.smallest_visible:
            asked += 1
            found += reported.kind == "changed"
    assert asked > 150
    assert found >= 0.9 * asked


def test_as_many_more_pairs_as_are_said_show_what_matters() -> None:
    dice = random.Random(8)
    first = wall(duet(dice, steady, 0.05)).verdict
    assert first is not None
    assert first.more_runs
    reported = [wall(duet(dice, steady, 0.05, pairs=PAIRS + first.more_runs)).verdict for _ in range(100)]
    visible = sorted(each.smallest_visible for each in reported if each)
    assert visible[50] == pytest.approx(SHOWN * SAME, rel=0.3)
    noisy = wall(duet(dice, steady, 0.5)).verdict
    assert noisy is not None
    assert noisy.more_runs is None


# ---- a program against itself


def test_a_program_against_itself_is_its_run_of_a_pair_beside_that_of_the_next() -> None:
    walls = [(1.0, 1.0), (2.0, 1.0), (1.0, 4.0), (8.0, 4.0), (1.0, 1.0), (2.0, 1.0), (9.0, 9.0)]
    pairs = [(Taken(a, a, 1.0), Taken(b, b, 1.0)) for a, b in walls]
    # A: 2, 8 taken the other way round, and 2; the last pair has no next one.
    forth, back = itself(pairs, 0, SAME), itself(pairs, 1, SAME)
    assert forth is not None
    assert back is not None
    assert (forth.times, back.times) == (3, 3)
    assert (forth.ratio, back.ratio) == pytest.approx((0.5 ** (1 / 3), 1.0))
    assert itself(pairs[:5], 0, SAME) is None


def test_each_program_is_first_in_half_of_the_pairs_at_random() -> None:
    dice = random.Random(9)
    drawn = [orders(10, dice) for _ in range(200)]
    assert {sum(each) for each in drawn} == {5}
    assert len({tuple(each) for each in drawn}) > 100
    assert {sum(orders(9, dice)) for _ in range(50)} == {4, 5}


def test_a_program_that_differs_from_itself_in_turn_is_seen() -> None:
    # As on two CPUs of different speed that the scheduler alternates between.
    pairs = []
    for number in range(PAIRS):
        a, b = (1.0, 1.3) if number % 4 in {0, 3} else (1.3, 1.0)
        jitter = 1 + 0.001 * number
        pairs.append((Taken(a * jitter, 1.0, 1.0), Taken(b * jitter, 1.0, 1.0)))
    found = itself(pairs, 0, SAME)
    assert found is not None
    assert found.verdict.kind == "changed"
    same = itself(duet(random.Random(1), steady, 0.005, pairs=20), 0, SAME)
    assert same is not None
    assert same.verdict.kind == "same"


# ---- other figures


def taken(wall_s: float, **categories: float) -> Taken:
    return Taken(
        wall_s, wall_s, 100.0, categories={name.replace("_", "-"): s for name, s in categories.items()}
    )


def test_a_category_changes_wall_time_by_its_own_part_of_it() -> None:
    pairs = []
    for number in range(PAIRS):
        more = 0.001 * (number % 3)
        a = taken(1.0 + more, compute=0.8 + more, page_faults=0.2, locks=0.001)
        pairs.append((a, taken(1.3 + more, compute=0.8 + more, page_faults=0.5, locks=0.001)))
    found = {each.name: each for each in figures(pairs, SAME)}
    assert found["page-faults"].kind == "changed"
    assert found["page-faults"].ratio == pytest.approx(1.3, abs=0.002)
    assert (found["page-faults"].a, found["page-faults"].b) == pytest.approx((0.2, 0.5))
    assert found["compute"].kind == "same"
    assert "locks" not in found, "it has less than 1 % of wall time on both sides"
    assert [each.name for each in figures(pairs, SAME) if each.is_category] == ["page-faults", "compute"]


def test_a_category_that_one_side_lacks_is_compared() -> None:
    pairs = [
        (taken(1.0 + n / 1e4, compute=0.5, sleep=0.5 + n / 1e4), taken(0.5, compute=0.5)) for n in range(5)
    ]
    found = {each.name: each for each in figures(pairs, SAME)}
    assert found["sleep"].kind == "changed"
    assert found["sleep"].ratio == pytest.approx(0.5, abs=0.001)


def test_the_ratio_is_that_of_the_values_that_are_shown() -> None:
    known = [each for each in figures(duet(random.Random(2), wandering, 0.1, 0.3), SAME) if each.a and each.b]
    assert [each.name for each in known] == ["wall time", "CPU time", "page faults"]
    for each in known:
        assert each.ratio == pytest.approx((each.b or 0.0) / (each.a or 1.0))


def test_equal_counts_are_the_same_and_unknown_memory_is_not_comparable() -> None:
    pairs = duet(random.Random(3), steady, 0.01)
    found = {each.name: each for each in figures(pairs, SAME)}
    assert found["page faults"].kind == "same"
    assert found["memory, peak"].kind == "not-comparable"
    assert found["memory, peak"].why
    known = [
        (Taken(a.wall_s, a.cpu_s, 1.0, 100e6), Taken(b.wall_s, b.cpu_s, 1.0, 200e6 + n))
        for n, (a, b) in enumerate(pairs)
    ]
    memory = figures(known, SAME)[2]
    assert (memory.name, memory.kind) == ("memory, peak", "changed")
    assert memory.ratio == pytest.approx(2.0)


def test_the_fewest_pairs_give_an_interval() -> None:
    pairs = duet(random.Random(4), steady, 0.001, 0.5, pairs=FEWEST)
    assert wall(pairs).kind == "changed"
    assert all(first != second for first, second in pairwise(pairs))
