"""Windows Subsystem for Linux."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.wsl import finding

Maker = Callable[..., Host]


def test_wsl2_is_a_caution_about_windows_disks(host: Maker) -> None:
    found = finding(host({"virtualisation": {"guest": True, "wsl": 2}}))
    assert found is not None
    assert found.severity == "caution"
    assert "/mnt/c" in f"{found.title} {found.effect} {found.remedy}"


def test_wsl1_is_a_warning_with_the_way_out(host: Maker) -> None:
    found = finding(host({"virtualisation": {"wsl": 1}}))
    assert found is not None
    assert found.severity == "warning"
    assert "--set-version" in f"{found.title} {found.effect} {found.remedy}"


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
