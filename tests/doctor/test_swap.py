"""Memory on the disk."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.swap import finding

Maker = Callable[..., Host]


def test_what_is_swapped_out_is_named(host: Maker) -> None:
    found = finding(host({"memory": {"swap_used_bytes": 1 << 30}}))
    assert found is not None
    assert found.severity == "caution"
    assert "1 GiB" in f"{found.title} {found.effect} {found.remedy}"


def test_a_little_is_no_finding(host: Maker) -> None:
    assert finding(host({"memory": {"swap_used_bytes": 1 << 20}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
