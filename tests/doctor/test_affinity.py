"""Some of the CPUs."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.affinity import finding

Maker = Callable[..., Host]


def test_two_of_four_are_named(host: Maker) -> None:
    found = finding(host({"cpu": {"logical_cpus": 4}, "limits": {"allowed_cpus": [0, 1]}}))
    assert found is not None
    assert found.severity == "note"
    assert "2 of 4 CPUs" in f"{found.title} {found.effect} {found.remedy}"
    assert "taskset -c 0-3" in f"{found.title} {found.effect} {found.remedy}"


def test_all_are_no_finding(host: Maker) -> None:
    assert finding(host({"cpu": {"logical_cpus": 2}, "limits": {"allowed_cpus": [0, 1]}})) is None


def test_one_cpu_has_its_own_rule(host: Maker) -> None:
    assert finding(host({"cpu": {"logical_cpus": 4}, "limits": {"allowed_cpus": [0]}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
