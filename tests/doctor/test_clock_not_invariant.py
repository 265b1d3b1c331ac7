"""A counter whose rate nobody promises."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.clock_not_invariant import finding

Maker = Callable[..., Host]


def test_a_counter_without_the_promise_is_a_caution(host: Maker) -> None:
    found = finding(host(clock={"invariant": None}))
    assert found is not None
    assert found.severity == "caution"
    assert "constant rate" in f"{found.title} {found.effect} {found.remedy}"


def test_a_promised_rate_is_no_finding(host: Maker) -> None:
    assert finding(host(clock={})) is None


def test_the_systems_clock_has_no_such_rate(host: Maker) -> None:
    assert finding(host(clock={"kind": "os", "invariant": None})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
