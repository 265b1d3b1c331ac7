"""On the battery."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.battery import finding

Maker = Callable[..., Host]


def test_it_says_what_to_do(host: Maker) -> None:
    found = finding(host({"cpu": {"power_source": "battery"}}))
    assert found is not None
    assert found.severity == "caution"
    assert "plug it in" in f"{found.title} {found.effect} {found.remedy}"


def test_the_mains_are_no_finding(host: Maker) -> None:
    assert finding(host({"cpu": {"power_source": "mains"}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
