"""How disturbed the CPU is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from latlab.doctor import Host
from latlab.doctor.rules.disturbed_cpu import finding

Maker = Callable[..., Host]


@pytest.mark.parametrize(("lost", "severity"), [(0.004, "note"), (0.05, "caution"), (0.4, "warning")])
def test_the_more_is_taken_away_the_graver_it_is(
    host: Maker, survey: Maker, lost: float, severity: str
) -> None:
    found = finding(host(heard=survey((lost, 0.9))))
    assert found is not None
    assert found.severity == severity
    assert (found.remedy is None) is (severity == "note")


def test_it_says_how_often_for_what_share_by_what_and_what_that_does(host: Maker, survey: Maker) -> None:
    found = finding(host(heard=survey()))
    assert found is not None
    assert "CPU 1 is interrupted 400 times a second, 0.4 % of its time" in found.title
    assert "timer tick" in found.effect
    assert "1 in 25,000 operations of 100 ns" in found.effect


def test_nothing_is_said_when_nobody_listened_or_there_was_nothing_to_hear(
    host: Maker, survey: Maker
) -> None:
    assert finding(host({})) is None
    assert finding(host(heard=survey(gaps=0, gaps_ns=0.0, causes=()))) is None
