"""A container."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.container import finding

Maker = Callable[..., Host]


def test_its_kind_is_named(host: Maker) -> None:
    found = finding(host({"virtualisation": {"container": {"kind": "docker", "evidence": []}}}))
    assert found is not None
    assert found.severity == "note"
    assert "docker" in f"{found.title} {found.effect} {found.remedy}"


def test_an_unknown_kind_is_not_named(host: Maker) -> None:
    found = finding(host({"virtualisation": {"container": {"kind": "unknown", "evidence": []}}}))
    assert found is not None
    assert "this is a container" in f"{found.title} {found.effect} {found.remedy}"


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
