"""Transparent huge pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from latlab.doctor import Host
from latlab.doctor.rules.huge_pages import finding

Maker = Callable[..., Host]


def test_off_is_a_caution_with_the_command_that_lifts_it(host: Maker) -> None:
    found = finding(host({"memory": {"thp": {"enabled": "never"}}}))
    assert found is not None
    assert found.severity == "caution"
    assert "transparent_hugepage/enabled" in f"{found.title} {found.effect} {found.remedy}"


def test_madvise_is_a_note_about_your_program(host: Maker) -> None:
    found = finding(host({"memory": {"thp": {"enabled": "madvise"}}}))
    assert found is not None
    assert found.severity == "note"
    assert "GLIBC_TUNABLES" in f"{found.title} {found.effect} {found.remedy}"


@pytest.mark.parametrize("mode", ["always", "madvise"])
def test_a_process_to_which_they_are_forbidden_is_a_caution_whatever_the_machine_allows(
    host: Maker, mode: str
) -> None:
    found = finding(host({"memory": {"thp": {"enabled": mode, "this_process": False}}}))
    assert found is not None
    assert found.severity == "caution"
    assert "PR_SET_THP_DISABLE" in found.effect


def test_always_is_no_finding(host: Maker) -> None:
    assert finding(host({"memory": {"thp": {"enabled": "always"}}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
