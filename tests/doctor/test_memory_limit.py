"""Too little memory."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.memory_limit import finding

Maker = Callable[..., Host]


def test_a_small_limit_names_the_largest_working_set(host: Maker) -> None:
    found = finding(host({"limits": {"usable_memory_bytes": 1 << 30, "usable_memory_bound": "cgroup"}}))
    assert found is not None
    assert found.severity == "caution"
    assert "1 GiB of memory" in f"{found.title} {found.effect} {found.remedy}"
    assert "256 MiB" in f"{found.title} {found.effect} {found.remedy}"
    assert "control group" in f"{found.title} {found.effect} {found.remedy}"


def test_too_little_to_leave_the_last_cache_is_a_warning(host: Maker) -> None:
    found = finding(
        host({"limits": {"usable_memory_bytes": 256 << 20}, "caches": [{"level": 3, "size_bytes": 32 << 20}]})
    )
    assert found is not None
    assert found.severity == "warning"
    assert "RAM may not be reached" in f"{found.title} {found.effect} {found.remedy}"


def test_four_gibibytes_are_enough(host: Maker) -> None:
    assert finding(host({"limits": {"usable_memory_bytes": 4 << 30}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
