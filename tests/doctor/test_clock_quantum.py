"""The clock's step."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.clock_quantum import finding

Maker = Callable[..., Host]


def test_a_step_of_ten_nanoseconds_makes_batches_necessary(host: Maker) -> None:
    found = finding(host(clock={"quantum_ns": 10.01}))
    assert found is not None
    assert found.severity == "caution"
    assert "10 ns" in f"{found.title} {found.effect} {found.remedy}"
    assert "batches" in f"{found.title} {found.effect} {found.remedy}"


def test_a_step_below_an_l2_hit_is_no_finding(host: Maker) -> None:
    assert finding(host(clock={"quantum_ns": 1.0})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
