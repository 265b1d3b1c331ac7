"""The frequency governor."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.governor import finding

Maker = Callable[..., Host]


def test_its_name_and_the_command_are_given(host: Maker) -> None:
    found = finding(host({"cpu": {"governor": "powersave"}}))
    assert found is not None
    assert found.severity == "caution"
    assert "powersave" in f"{found.title} {found.effect} {found.remedy}"
    assert "cpupower" in f"{found.title} {found.effect} {found.remedy}"


def test_performance_is_no_finding(host: Maker) -> None:
    assert finding(host({"cpu": {"governor": "performance"}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
