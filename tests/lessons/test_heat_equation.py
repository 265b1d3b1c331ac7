"""The heat equation: arms that agree, shares that sum, published figures as printed, too little memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.some import some

from latlab import lessons
from latlab.lessons import memory
from latlab.lessons.bench import Times
from latlab.lessons.experiments import heat_equation as lesson
from latlab.lessons.model import Result
from latlab.lessons.programs import heat_equation, heat_lines


def test_the_saving_is_reported_round_by_round() -> None:
    arms = {
        "fresh": lesson.Arm(Times((2.0, 4.0, 10.0))),
        "swapped": lesson.Arm(Times((1.0, 3.0, 9.0, 99.0))),
        "published": lesson.Arm(Times(why="too large")),
    }
    cell = lesson.saving(arms, "fresh")
    assert (cell.value, cell.low, cell.high, cell.repeats) == pytest.approx((0.25, 0.1, 0.5, 3))
    assert lesson.saving(arms, "published").why == "too large"


def test_one_round_that_something_disturbed_does_not_decide() -> None:
    saved = [0.08, 0.07, 0.09, 0.08, 0.075, 0.085, 0.08, 0.07, 0.09, 0.08, 0.08]
    assert Times((*saved, -0.4)).cell("share").above(0)
    assert not Times((*saved[:5], -0.4)).cell("share").above(0), "six rounds cannot tell"
    assert not Times((*saved[:8], -0.4, -0.3, -0.4, -0.3)).cell("share").above(0)


def test_the_share_of_making_grids_is_that_of_the_times_shown() -> None:
    arm = lesson.Arm(Times((2.0, 3.0, 9.0)), Times((1.0, 2.0, 8.0)))
    cell = lesson.making_share(arm)
    assert cell.value == pytest.approx(2 / 3)
    assert (cell.low, cell.high) == pytest.approx((1 / 2, 8 / 9))


@pytest.mark.parametrize(
    ("swapped", "said"),
    [
        ((1.9, 1.8), "save 7.5 % (5.0 % – 10 %) of its time."),
        (
            (1.9, 2.3),
            "save that, but run-to-run variation is larger (-5.0 % (-15 % – 5.0 %)).",
        ),
    ],
)
def test_the_share_of_making_grids_comes_first_and_a_saving_within_the_spread_is_none(
    swapped: tuple[float, ...], said: str
) -> None:
    arms = {
        "published": lesson.Arm(Times()),
        "fresh": lesson.Arm(Times((2.0, 2.0)), Times((0.2, 0.2))),
        "swapped": lesson.Arm(Times(swapped)),
    }
    first, _ = lesson.say(lesson.PLANS["default"], arms).answer
    assert "spends 10 % of its time on making and freeing grids" in first
    assert first.endswith(said)


@pytest.mark.parametrize("table", ["profile_fresh", "profile_swapped"])
def test_the_shares_of_the_lines_sum_to_all_of_the_time(result: Result, table: str) -> None:
    shares = [row.cells["share"].number for row in result.table(table).rows]
    assert sum(share for share in shares if share is not None) == pytest.approx(1)


@pytest.mark.parametrize(
    ("table", "printed"), [("profile_fresh", lesson.FRESH), ("profile_swapped", lesson.SWAPPED)]
)
def test_a_published_line_is_whole_and_its_figures_agree_with_each_other(
    result: Result, table: str, printed: dict[str, tuple[str, str, str, str]]
) -> None:
    total = {"profile_fresh": 55.4675, "profile_swapped": 34.0597}[table]
    for row in some(result.table(table).rows):
        hits, time, each, share = printed[row.name]
        quoted = [row.cells[name].published for name in ("hits", "time", "per_hit", "share")]
        assert [each and each.text for each in quoted] == [hits, f"{time} us", f"{each} us", f"{share} %"]
        assert float(time) / float(hits) == pytest.approx(float(each), abs=0.051)
        assert float(time) / 1e4 / total == pytest.approx(float(share), abs=0.051)


def test_the_hits_at_512_are_those_of_the_document() -> None:
    plan = lesson.PLANS["default"]
    for hits, *_ in some(lesson.profile(lesson.SWAPPED, plan, {}).values()):
        assert hits.published is not None
        assert hits.number == hits.published.value


def test_all_arms_come_to_the_same_grid() -> None:
    n, steps = 16, 4
    published = heat_equation.fresh(n, steps, heat_equation.new_as_published)[2]
    fresh = heat_equation.fresh(n, steps, heat_equation.new)[2]
    swapped = heat_equation.swapped(n, steps)[1]
    assert fresh == swapped == [row[:n] for row in published]
    assert {len(row) for row in published} == {n * n}


def test_the_lines_together_are_the_step() -> None:
    n = 16
    grid, out, expected = heat_equation.start(n), heat_equation.new(n), heat_equation.new(n)
    heat_lines.whole(grid, out, n, 0.1)
    heat_equation.update(grid, expected, n, 0.1)
    assert out == expected


def test_a_step_that_was_not_done_is_noticed() -> None:
    with pytest.raises(AssertionError):
        heat_equation.check(heat_equation.start(16), 16, 2)
    lost = heat_equation.swapped(16, 2)[1]
    lost[8][8] = 0.0
    with pytest.raises(AssertionError):
        heat_equation.check(lost, 16, 2)


def test_the_arms_take_turns_so_that_a_busy_minute_meets_each_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    order: list[str] = []

    def round_of(name: str, plan: lesson.Plan) -> lesson.Arm:
        order.append(name[0])
        return lesson.Arm(Times((float(len(order)),)), faults=float(plan.steps))

    monkeypatch.setattr(lesson, "stepped", round_of)
    result = lessons.run("heat-equation", "small", plain=True, directory=tmp_path)
    assert "".join(order) == "pfssfppfs" + 3 * "fssf"
    assert result["grids.swapped.faults"].value == 4
    assert result["original.total_swapped.python"].repeats == 9
    assert result["original.total_published.python"].repeats == 3


def test_with_the_documents_sizes_a_hundred_steps_count() -> None:
    plan = lesson.PLANS["original"]
    assert plan.rounds * (plan.steps - lesson._LEFT_OUT) == lesson.STEPS


def test_too_little_memory_is_named_and_the_other_arms_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 20)
    result = lessons.run("heat-equation", "small", plain=True)
    assert result["original.total_published"].value is None
    assert "of memory" in result["original.total_published"].why
    assert result["original.saving_fresh"].number is not None
    assert result["profile_fresh.allocate.time"].value is None
