"""The verdicts of many figures at once: how often they are wrong, and how often what changed is found."""

from __future__ import annotations

import math
import random

import pytest

from latlab import _core
from latlab.compare.verdict import Contrast, verdicts

#: Probes of a quick run, and figures of each.
PROBES, EACH = 12, 9
#: Headline figures: the first of each probe, and one more.
SAME = 0.1


def contrasts(dice: random.Random, a: int, b: int, change: float = 0.0, kept: int = 0) -> list[Contrast]:
    """Of each probe its own spread between runs, of each figure some more or less; the first ones changed."""
    found = []
    for probe in range(PROBES):
        spread = (0.005, 0.02, 0.05, 0.15)[probe % 4]
        points = []
        for _ in range(EACH):
            own = spread * dice.lognormvariate(0.0, 0.4)
            points.append([[dice.lognormvariate(0.0, own) for _ in range(count)] for count in (a, b, kept)])
        points[0][1] = [value * math.exp(change) for value in points[0][1]]
        for known in _core.contrast_groups(points):
            assert known is not None
            ratio, error, between, degrees = known
            found.append(Contrast(ratio, error, between, degrees, min(a, b)))
    return found


@pytest.mark.parametrize(("a", "b", "kept"), [(5, 5, 0), (3, 3, 0), (2, 4, 3), (1, 1, 6)])
def test_runs_of_one_machine_are_called_changed_in_one_check_of_a_hundred_at_most(
    a: int, b: int, kept: int
) -> None:
    dice = random.Random(a * 100 + b)
    times, alarms, any_headline = 250, 0, 0
    for _ in range(times):
        all_of_them = contrasts(dice, a, b, kept=kept)
        headline, others = (
            all_of_them[::EACH],
            [each for place, each in enumerate(all_of_them) if place % EACH],
        )
        reported = [each.kind for each in verdicts(headline, SAME, together=True)]
        any_headline += "changed" in reported
        alarms += reported.count("changed")
        alarms += [each.kind for each in verdicts(others, SAME, together=False)].count("changed")
    assert alarms <= 0.01 * times * PROBES * EACH
    # Five in a hundred comparisons are allowed; of 250, chance alone makes 20 of them in one series of forty.
    assert any_headline <= 20


def test_a_change_as_large_as_is_said_to_be_visible_is_found_in_nine_of_ten() -> None:
    dice = random.Random(7)
    found = asked = precise = 0
    for _ in range(150):
        # What is visible does not depend on whether there was a change.
        quiet = verdicts(contrasts(random.Random(dice.random()), 5, 5)[::EACH], SAME, together=True)
        change = math.log1p(max(each.smallest_visible for each in quiet))
        reported = verdicts(contrasts(dice, 5, 5, change)[::EACH], SAME, together=True)
        for verdict in reported:
            if verdict.smallest_visible <= math.expm1(change):
                asked += 1
                found += verdict.kind == "changed"
    assert asked > 500
    assert found >= 0.9 * asked
    # Of precise figures, too, whose change is hardly larger than what counts as the same.
    (alike,) = verdicts([contrast(1.0, 0.01)], SAME, together=True)
    assert alike.smallest_visible > SAME
    for _ in range(500):
        changed = contrast((1 + alike.smallest_visible) * math.exp(dice.gauss(0, 0.01)), 0.01)
        precise += verdicts([changed], SAME, together=True)[0].kind == "changed"
    assert 0.87 * 500 <= precise <= 0.95 * 500


def test_what_did_not_change_is_called_the_same_in_half_of_the_figures_with_five_runs_a_side() -> None:
    dice = random.Random(3)
    reported = [
        each.kind for _ in range(50) for each in verdicts(contrasts(dice, 5, 5)[::EACH], SAME, together=True)
    ]
    assert reported.count("same") >= len(reported) / 2
    assert reported.count("changed") <= 0.01 * len(reported)


def contrast(ratio: float, error: float, degrees: float = 20.0, runs: int = 5) -> Contrast:
    return Contrast(math.log(ratio), error, error * math.sqrt(runs / 2), degrees, runs)


def test_one_figure_is_changed_the_same_or_neither() -> None:
    def kind(ratio: float, error: float) -> str:
        return verdicts([contrast(ratio, error)], SAME, together=True)[0].kind

    assert kind(1.5, 0.01) == "changed"
    assert kind(1 / 1.5, 0.01) == "changed"
    assert kind(1.0, 0.01) == "same"
    assert kind(1.08, 0.001) == "same", "it differs, but by less than matters"
    assert kind(1.5, 0.5) == "cannot-tell"
    assert kind(1.0, 0.1) == "cannot-tell", "not seen is not the same"


def test_what_would_have_been_visible_falls_with_more_runs_to_little_more_than_what_matters() -> None:
    (verdict,) = verdicts([contrast(1.05, 0.05)], SAME, together=True)
    assert verdict.kind == "cannot-tell"
    assert verdict.more_runs is not None
    more = 5 + verdict.more_runs
    error = contrast(1.0, 0.05).between * math.sqrt(2 * math.pi / 3 / more)
    (later,) = verdicts([Contrast(0.0, error, error, 20 + 2 * verdict.more_runs, more)], SAME, together=True)
    assert SAME < later.smallest_visible <= 1.5 * SAME
    assert verdicts([contrast(1.0, 2.0)], SAME, together=True)[0].more_runs is None


def test_headline_figures_pay_for_their_number_and_others_for_what_is_found_among_them() -> None:
    # Two-sided 0.9 %: seen alone, and beside nine that say nothing not.
    weak = contrast(math.exp(2.9 * 0.05), 0.05)
    quiet = [contrast(1.0, 0.05)] * 9
    assert verdicts([weak], SAME, together=True)[0].kind == "changed"
    assert verdicts([weak, *quiet], SAME, together=True)[0].kind == "cannot-tell"
    assert verdicts([weak, *quiet], SAME, together=False)[0].kind == "cannot-tell"
    # Beside five that surely changed one false one among six is what is allowed.
    strong = [contrast(2.0, 0.05)] * 5
    assert verdicts([weak, *strong, *quiet[:4]], SAME, together=False)[0].kind == "changed"
    assert verdicts([weak, *strong, *quiet[:4]], SAME, together=True)[0].kind == "cannot-tell"
