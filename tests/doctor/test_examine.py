"""The rules together: complete, ordered, silent about what is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.some import some

from latlab.doctor import RULES, Host, examine, important
from latlab.doctor.host import Rule
from latlab.run.model import Machine
from latlab.run.run import load


def test_every_file_of_the_folder_is_a_rule_of_the_list(root: Path) -> None:
    files = {path.stem for path in (root / "python/latlab/doctor/rules").glob("*.py")} - {"__init__"}
    assert {rule.__module__.rpartition(".")[2] for rule in RULES} == files
    assert len(RULES) == len(files)


def test_every_rule_has_a_test_of_its_name(root: Path) -> None:
    files = {path.stem for path in (root / "python/latlab/doctor/rules").glob("*.py")} - {"__init__"}
    tests = {path.stem.removeprefix("test_") for path in (root / "tests/doctor").glob("test_*.py")}
    assert files <= tests


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__module__.rpartition(".")[2])
@pytest.mark.parametrize("machine", [{}, {"cpu": None, "limits": [], "virtualisation": "yes", "caches": 3}])
def test_a_rule_is_silent_about_an_unknown_or_misshapen_machine(rule: Rule, machine: object) -> None:
    assert rule(Host(Machine(machine))) is None  # type: ignore[arg-type]


def test_a_finding_has_the_name_of_its_rule(root: Path) -> None:
    run = load(root / "tests/data/run-small.latlab.jsonl")
    host = Host(run.header.machine, run.header.clock, load=9.0)
    findings = [(rule.__module__.rpartition(".")[2], found) for rule in RULES if (found := rule(host))]
    for module, found in some(findings):
        assert found.id == module.replace("_", "-")


def test_the_gravest_findings_come_first() -> None:
    machine = {
        "limits": {"root": False, "allowed_cpus": [0, 1], "cgroup": {"cpu_quota": 0.5}},
        "cpu": {"governor": "powersave"},
    }
    found = examine(machine)
    assert [finding.severity for finding in found] == ["warning", "caution", "note"]
    assert [finding.id for finding in important(found)] == ["cpu-quota", "governor"]


def test_what_only_a_measurement_can_tell_comes_from_the_last_run(root: Path) -> None:
    run = load(root / "tests/data/run-small.latlab.jsonl")
    found = {finding.id for finding in examine(run.header.machine, run.header.clock, last=run)}
    assert {"effective-pages", "clock-ticks"} <= found
    assert "effective-pages" not in {finding.id for finding in examine(run.header.machine, run.header.clock)}
