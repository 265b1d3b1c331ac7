"""What comes as regularly as a clock, and what it does to figures."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.standing_causes import finding

Maker = Callable[..., Host]


def test_each_standing_cause_is_reported_with_what_it_does_to_figures(
    host: Maker, survey: Maker, ticking: Maker
) -> None:
    ticks = (ticking("timer-tick", 250.0, 3e3), ticking("host-tick", 100.0, 3e4))
    found = finding(host(heard=survey(periodic=ticks)))
    assert found is not None
    assert "host's tick (100 a second) and timer tick (250 a second)" in found.title
    assert "1 in 40,000 operations of 100 ns" in found.effect
    assert "the p99.9 of operations of 4.0 µs or more" in found.effect
    assert "1 in 200 windows of 20 µs" in found.effect
    assert "nohz_full" in (found.remedy or "")


def test_of_a_hosts_tick_nothing_rids_the_guest(host: Maker, survey: Maker, ticking: Maker) -> None:
    found = finding(host(heard=survey(periodic=(ticking("host-tick", 100.0, 3e4),))))
    assert found is not None
    assert found.remedy is None


def test_nothing_is_said_without_a_period_or_when_nobody_listened(host: Maker, survey: Maker) -> None:
    assert finding(host(heard=survey())) is None
    assert finding(host({})) is None
