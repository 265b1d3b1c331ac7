"""Neighbours that a guest cannot see."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.virtual_machine import finding

Maker = Callable[..., Host]


def test_the_hypervisor_and_the_size_of_the_effect_are_named(host: Maker) -> None:
    found = finding(host({"virtualisation": {"guest": True, "hypervisor": "KVM"}}))
    assert found is not None
    assert found.severity == "caution"
    assert "KVM" in f"{found.title} {found.effect} {found.remedy}"
    assert "6 to 134 ns" in f"{found.title} {found.effect} {found.remedy}"


def test_bare_metal_is_no_finding(host: Maker) -> None:
    assert finding(host({"virtualisation": {"guest": False}})) is None


def test_wsl_has_its_own_rule(host: Maker) -> None:
    assert finding(host({"virtualisation": {"guest": True, "wsl": 2}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
