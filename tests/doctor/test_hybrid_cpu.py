"""Cores of different kinds."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.hybrid_cpu import finding

Maker = Callable[..., Host]


def test_it_is_a_caution(host: Maker) -> None:
    found = finding(host({"cpu": {"hybrid": True}}))
    assert found is not None
    assert found.severity == "caution"
    assert "different kinds" in f"{found.title} {found.effect} {found.remedy}"


def test_equal_cores_are_no_finding(host: Maker) -> None:
    assert finding(host({"cpu": {"hybrid": False}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
