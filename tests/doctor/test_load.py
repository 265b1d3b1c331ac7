"""Busy programs."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.load import finding

Maker = Callable[..., Host]


def test_a_busy_machine_is_a_warning(host: Maker) -> None:
    found = finding(host({"cpu": {"logical_cpus": 4}}, load=5.0))
    assert found is not None
    assert found.severity == "warning"
    assert "5.0 threads" in f"{found.title} {found.effect} {found.remedy}"
    assert "--gentle" in f"{found.title} {found.effect} {found.remedy}"


def test_as_many_busy_threads_as_cpus_are_a_warning(host: Maker) -> None:
    found = finding(host({"cpu": {"logical_cpus": 4}}, load=4.0))
    assert found is not None
    assert found.severity == "warning"


def test_one_busy_thread_is_a_caution(host: Maker) -> None:
    found = finding(host({"cpu": {"logical_cpus": 4}}, load=1.0))
    assert found is not None
    assert found.severity == "caution"
    assert "1.0 threads" in f"{found.title} {found.effect} {found.remedy}"


def test_a_quiet_machine_is_no_finding(host: Maker) -> None:
    assert finding(host({"cpu": {"logical_cpus": 4}}, load=0.1)) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
