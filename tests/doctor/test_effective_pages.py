"""Huge pages that are small in hardware."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.effective_pages import finding

Maker = Callable[..., Host]


def test_what_the_last_run_found_is_named(host: Maker) -> None:
    found = finding(host(effective_page_bytes=4096.0))
    assert found is not None
    assert found.severity == "caution"
    assert "4 KiB in hardware" in f"{found.title} {found.effect} {found.remedy}"
    assert "last run" in f"{found.title} {found.effect} {found.remedy}"


def test_huge_pages_that_work_are_no_finding(host: Maker) -> None:
    assert finding(host(effective_page_bytes=2097152.0)) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
