"""Where files would be measured."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.directory import finding

Maker = Callable[..., Host]


def test_a_directory_in_memory_measures_no_disk(host: Maker) -> None:
    found = finding(host({"dir": {"file_system": {"kind": "tmpfs", "in_memory": True}}}))
    assert found is not None
    assert found.severity == "note"
    assert "tmpfs" in f"{found.title} {found.effect} {found.remedy}"
    assert "no disk" in f"{found.title} {found.effect} {found.remedy}"
    assert "--dir" in f"{found.title} {found.effect} {found.remedy}"


def test_a_network_is_named(host: Maker) -> None:
    found = finding(host({"dir": {"file_system": {"kind": "nfs4", "network": True}}}))
    assert found is not None
    assert "nfs4" in f"{found.title} {found.effect} {found.remedy}"
    assert "network" in f"{found.title} {found.effect} {found.remedy}"


def test_a_layer_of_a_container_is_named(host: Maker) -> None:
    found = finding(host({"dir": {"file_system": {"kind": "overlay", "overlay": True}}}))
    assert found is not None
    assert "overlay" in f"{found.title} {found.effect} {found.remedy}"


def test_a_disk_is_no_finding(host: Maker) -> None:
    assert finding(host({"dir": {"file_system": {"kind": "ext4", "disk": "vda"}}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
