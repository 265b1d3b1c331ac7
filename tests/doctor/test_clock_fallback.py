"""The system's clock in place of the CPU's counter."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.clock_fallback import finding

Maker = Callable[..., Host]


def test_the_reason_and_the_cost_are_named(host: Maker) -> None:
    found = finding(host(clock={"kind": "os", "why_not_hardware": "the kernel keeps time with hpet"}))
    assert found is not None
    assert found.severity == "caution"
    assert "hpet" in f"{found.title} {found.effect} {found.remedy}"
    assert "9.00 ns" in f"{found.title} {found.effect} {found.remedy}"
    assert "tsc=reliable" in f"{found.title} {found.effect} {found.remedy}"


def test_the_cpus_counter_is_no_finding(host: Maker) -> None:
    assert finding(host(clock={})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
