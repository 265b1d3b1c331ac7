"""When figures agree: half of the widest interval among those that have to."""

from __future__ import annotations

import math
from typing import Literal

import pytest

from latlab.run import model
from latlab.run.agreement import half_interval, widest


def figure(
    rank: model.Rank = "headline",
    half: float | None = 0.02,
    *,
    kind: Literal["per_op", "derived"] = "per_op",
    check: bool = True,
) -> model.Record:
    """A figure of 50 ns with such a half interval, or without one."""
    intervals = {} if half is None else {"p50": (50 / (1 + half), 50 * (1 + half))}
    return model.Record(
        probe="fake.one",
        method=1,
        unit="ns",
        kind=kind,
        stopped_by="planned",
        rank=rank,
        summary=model.Summary(p50=50.0, intervals=intervals),
        checks=(model.Check(name="checksum", ok=check, detail="as written"),),
    )


def test_half_an_interval_is_a_share_of_its_figure() -> None:
    assert half_interval(figure(half=0.02).interval) == pytest.approx(0.02)
    assert half_interval(figure(half=None).interval) is None


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([figure(half=0.01), figure(half=0.02), figure("curve", 0.5), figure("detail", None)], 0.02),
        ([figure("curve", 0.05), figure("detail", 0.03), figure("detail", None)], 0.05),
        ([figure(half=0.01), figure(half=None)], math.inf),
        ([figure("detail", None), figure("once", None)], math.inf),
        ([figure(half=0.01), figure(half=0.5, kind="derived"), figure(half=0.5, check=False)], 0.01),
        ([], math.inf),
    ],
    ids=[
        "the widest headline figure decides",
        "where none is headline all with an interval do",
        "a headline figure without an interval agrees with nothing",
        "of what was measured once nobody knows",
        "what is derived or failed its proof says nothing",
        "nothing measured",
    ],
)
def test_figures_agree_as_far_as_the_widest_of_those_that_count(
    figures: list[model.Record], expected: float
) -> None:
    assert widest(figures) == pytest.approx(expected)
