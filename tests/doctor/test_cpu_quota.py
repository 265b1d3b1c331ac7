"""A quota of CPU time."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.cpu_quota import finding

Maker = Callable[..., Host]


def test_half_a_cpu_stands_still_half_of_the_time(host: Maker) -> None:
    found = finding(
        host({"limits": {"allowed_cpus": [0, 1], "cgroup": {"cpu_quota": 0.5, "cpu_period_us": 100000}}})
    )
    assert found is not None
    assert found.severity == "warning"
    assert "0.5 CPUs" in f"{found.title} {found.effect} {found.remedy}"
    assert "up to 50 ms of every 100" in f"{found.title} {found.effect} {found.remedy}"


def test_a_quarter_of_a_cpu_stands_still_three_quarters_of_the_time(host: Maker) -> None:
    found = finding(host({"limits": {"allowed_cpus": [0], "cgroup": {"cpu_quota": 0.25}}}))
    assert found is not None
    assert "up to 75 ms of every 100" in found.effect


def test_more_than_one_cpu_is_a_caution(host: Maker) -> None:
    found = finding(host({"limits": {"allowed_cpus": [0, 1], "cgroup": {"cpu_quota": 1.5}}}))
    assert found is not None
    assert found.severity == "caution"
    assert "1.5 CPUs" in f"{found.title} {found.effect} {found.remedy}"


def test_a_quota_of_all_cpus_does_not_bind(host: Maker) -> None:
    assert finding(host({"limits": {"allowed_cpus": [0, 1], "cgroup": {"cpu_quota": 2.0}}})) is None


def test_no_quota_is_no_finding(host: Maker) -> None:
    assert finding(host({"limits": {"cgroup": {"cpu_quota": None}}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
