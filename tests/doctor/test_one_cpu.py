"""One CPU."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.one_cpu import finding
from latlab.run.model import Settings

Maker = Callable[..., Host]


def test_one_allowed_cpu_of_four_can_be_lifted(host: Maker) -> None:
    found = finding(host({"cpu": {"logical_cpus": 4}, "limits": {"allowed_cpus": [1]}}))
    assert found is not None
    assert found.severity == "caution"
    assert "only one CPU may be used" in f"{found.title} {found.effect} {found.remedy}"
    assert "taskset" in f"{found.title} {found.effect} {found.remedy}"


def test_one_cpu_asked_for_counts_too(host: Maker) -> None:
    found = finding(host({"limits": {"allowed_cpus": [0, 1]}}, settings=Settings(cpus=(1,))))
    assert found is not None


def test_a_machine_with_one_cpu_has_no_remedy(host: Maker) -> None:
    found = finding(host({"cpu": {"logical_cpus": 1}, "limits": {"allowed_cpus": [0]}}))
    assert found is not None
    assert found.remedy is None


def test_two_cpus_are_no_finding(host: Maker) -> None:
    assert finding(host({"limits": {"allowed_cpus": [0, 1]}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
