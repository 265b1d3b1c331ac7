"""Kernel events."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.perf_events import finding

Maker = Callable[..., Host]


def test_a_closed_door_names_the_key(host: Maker) -> None:
    found = finding(host({"limits": {"perf_event_paranoid": 2, "root": False, "capabilities": []}}))
    assert found is not None
    assert found.severity == "note"
    assert "perf_event_paranoid=1" in f"{found.title} {found.effect} {found.remedy}"


def test_the_superuser_sees_them(host: Maker) -> None:
    assert finding(host({"limits": {"perf_event_paranoid": 2, "root": True}})) is None


def test_the_capability_is_enough(host: Maker) -> None:
    assert (
        finding(host({"limits": {"perf_event_paranoid": 2, "root": False, "capabilities": ["CAP_PERFMON"]}}))
        is None
    )


def test_an_open_door_is_no_finding(host: Maker) -> None:
    assert finding(host({"limits": {"perf_event_paranoid": 1, "root": False}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
