"""An ordinary user."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.unprivileged import finding

Maker = Callable[..., Host]


def test_the_figures_are_the_same(host: Maker) -> None:
    found = finding(host({"limits": {"root": False}}))
    assert found is not None
    assert found.severity == "note"
    assert "memory figures are not affected" in f"{found.title} {found.effect} {found.remedy}"


def test_the_superuser_is_no_finding(host: Maker) -> None:
    assert finding(host({"limits": {"root": True}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
