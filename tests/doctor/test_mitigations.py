"""Mitigations of CPU vulnerabilities."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.mitigations import finding

Maker = Callable[..., Host]


def test_those_that_slow_system_calls_are_named(host: Maker) -> None:
    found = finding(
        host(
            {
                "boot": {
                    "mitigations": [
                        {"name": "meltdown", "state": "Mitigation: PTI"},
                        {"name": "l1tf", "state": "Not affected"},
                    ]
                }
            }
        )
    )
    assert found is not None
    assert found.severity == "note"
    assert "(meltdown)" in f"{found.title} {found.effect} {found.remedy}"
    assert "µs" in f"{found.title} {found.effect} {found.remedy}"


def test_a_cpu_that_is_not_affected_is_no_finding(host: Maker) -> None:
    assert finding(host({"boot": {"mitigations": [{"name": "meltdown", "state": "Not affected"}]}})) is None


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None


def test_barriers_that_are_switched_on_once_slow_no_call(host: Maker) -> None:
    def of(state: str) -> object:
        return finding(host({"boot": {"mitigations": [{"name": "spectre_v2", "state": state}]}}))

    assert of("Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; PBRSB-eIBRS: SW sequence") is None
    assert of("Mitigation: IBRS; IBPB: conditional; RSB filling") is not None
