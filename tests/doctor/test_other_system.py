"""Systems on which latlab is not proven."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.other_system import finding

Maker = Callable[..., Host]


def test_the_system_is_named(host: Maker) -> None:
    found = finding(host({"os": {"name": "macOS"}}))
    assert found is not None
    assert found.severity == "caution"
    assert "macOS" in f"{found.title} {found.effect} {found.remedy}"


def test_linux_is_no_finding(host: Maker) -> None:
    assert finding(host({"os": {"name": "Linux"}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
