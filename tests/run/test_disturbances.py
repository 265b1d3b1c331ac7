"""What interrupted a CPU, in words: shares, periodic interference, and what damaged figures become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from latlab.run import disturbances
from latlab.run.disturbances import Standing
from latlab.run.noise import Noise
from latlab.run.run import Run, load


@pytest.fixture(scope="module")
def small(root: Path) -> Run:
    return load(root / "tests/data/run-small.latlab.jsonl")


@pytest.fixture
def noise(small: Run) -> Noise:
    heard = disturbances.heard_in(small)
    assert heard is not None
    return heard[1]


def test_the_verdict_says_how_often_for_what_share_and_by_what(noise: Noise) -> None:
    said = disturbances.verdict(noise)
    assert "CPU 3 was interrupted" in said
    assert "times a second for 1 µs or more" in said
    for cause in ("timer tick", "host's tick", "context switch", "unexplained"):
        assert cause in said


def test_what_the_comb_contributes_is_said_apart(noise: Noise) -> None:
    assert "by their period alone" in disturbances.with_causes(noise.explained)


def test_a_tick_of_250_hz_is_in_one_of_40_000_pokes_and_in_the_p999_from_4_us_on() -> None:
    tick = Standing("timer-tick", 250.0, 20_000.0)
    assert tick.one_in(100.0) == pytest.approx(40_000)
    assert tick.touches_from_ns(0.999) == pytest.approx(4_000)
    assert tick.share == pytest.approx(0.005)
    said = disturbances.effect(tick)
    assert "1 in 40,000 operations of 100 ns" in said
    assert "the p99.9 of operations of 4.0 µs or more" in said
    assert "0.5 % of every mean" in said


def test_an_operation_longer_than_the_period_always_meets_it() -> None:
    assert Standing("host-tick", 100.0, 3e4).one_in(1e9) == 1.0


def test_where_tracepoints_name_ticks_one_by_one_their_period_is_that_found_without_them(
    noise: Noise,
) -> None:
    plain = msgspec.to_builtins(noise)
    plain["unprivileged"] = {"explained": plain["explained"], "combs": plain["combs"]}
    plain["combs"] = []
    found = disturbances.standing_causes(msgspec.convert(plain, Noise))
    assert [one.cause for one in found] == ["timer-tick", "host-tick"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: None,
        lambda found: {**found, "seconds": 0.0},
        lambda found: {**found, "seconds": 1e300},
        lambda found: {**found, "gaps": -1},
        lambda found: {**found, "causes": "many"},
        lambda found: {**found, "combs": [{**found["combs"][0], "hz": -250.0}]},
    ],
)
def test_figures_that_cannot_be_are_not_read(small: Run, damage: Callable[[Any], Any]) -> None:
    records = tuple(
        msgspec.structs.replace(record, findings=damage(record.findings))
        if record.probe == disturbances.PROBE
        else record
        for record in small.records
    )
    assert disturbances.heard_in(Run(small.header, records, small.footer)) is None
