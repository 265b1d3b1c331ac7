"""Ticks that are not cycles."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.clock_ticks import finding

Maker = Callable[..., Host]


def test_the_factor_between_ticks_and_cycles_is_named(host: Maker) -> None:
    found = finding(host(clock={}, core_ghz=3.9))
    assert found is not None
    assert found.severity == "note"
    assert "2.60 GHz" in f"{found.title} {found.effect} {found.remedy}"
    assert "3.90 GHz" in f"{found.title} {found.effect} {found.remedy}"
    assert "1.50" in f"{found.title} {found.effect} {found.remedy}"


def test_equal_rates_are_no_finding(host: Maker) -> None:
    assert finding(host(clock={}, core_ghz=2.61)) is None


def test_an_unknown_core_rate_is_no_finding(host: Maker) -> None:
    assert finding(host(clock={})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
