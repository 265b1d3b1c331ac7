"""Which CPU is the quietest."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.quietest_cpu import finding

Maker = Callable[..., Host]


def test_the_quietest_is_named_with_what_the_others_lose(host: Maker, survey: Maker) -> None:
    found = finding(host(heard=survey((0.3, 0.004, 0.02))))
    assert found is not None
    assert found.title.startswith("CPU 1 is the quietest of 3: CPU 1 loses 0.4 %, CPU 2 loses 2 %")
    assert "--cpu 1" in (found.remedy or "")


def test_cpus_that_lose_nearly_the_same_are_not_ranked(host: Maker, survey: Maker) -> None:
    found = finding(host(heard=survey((0.005, 0.004))))
    assert found is not None
    assert "no CPU is clearly quieter" in found.title


def test_of_many_cpus_the_quietest_and_the_loudest_are_shown(host: Maker, survey: Maker) -> None:
    found = finding(host(heard=survey(tuple(0.001 * (cpu + 1) for cpu in range(64)))))
    assert found is not None
    assert found.title.count("loses") == 5


def test_nothing_is_said_of_one_cpu_or_when_nobody_listened(host: Maker, survey: Maker) -> None:
    assert finding(host(heard=survey((0.1,)))) is None
    assert finding(host({})) is None
