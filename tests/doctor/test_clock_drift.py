"""A clock that is loose or runs backwards."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.clock_drift import finding

Maker = Callable[..., Host]


def test_backwards_is_a_warning(host: Maker) -> None:
    found = finding(host(clock={"backwards": 3}))
    assert found is not None
    assert found.severity == "warning"
    assert "3 times" in f"{found.title} {found.effect} {found.remedy}"


def test_a_loose_rate_is_a_note_with_its_size(host: Maker) -> None:
    found = finding(host(clock={"rate_error_ppm": 73.0}))
    assert found is not None
    assert found.severity == "note"
    assert "73 ppm" in f"{found.title} {found.effect} {found.remedy}"
    assert "0.0073 %" in f"{found.title} {found.effect} {found.remedy}"


def test_a_tight_clock_is_no_finding(host: Maker) -> None:
    assert finding(host(clock={})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
