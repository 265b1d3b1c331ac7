"""Two threads on a core."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.smt import finding

Maker = Callable[..., Host]


def test_the_number_of_threads_is_named(host: Maker) -> None:
    found = finding(host({"cpu": {"threads_per_core": 2}}))
    assert found is not None
    assert found.severity == "note"
    assert "2 hardware threads" in f"{found.title} {found.effect} {found.remedy}"


def test_one_thread_is_no_finding(host: Maker) -> None:
    assert finding(host({"cpu": {"threads_per_core": 1}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
