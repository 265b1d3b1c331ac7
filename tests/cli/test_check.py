"""`latlab check` and `latlab gate`: exit codes, formats, and files of strangers."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from latlab.compare import again
from latlab.run.measure import measure
from latlab.run.run import Run, load

Command = Callable[..., CompletedProcess[str]]

HELD = '[gate]\n"RAM" = { max = "1 s", change = "900 %" }\n'


@pytest.fixture
def runs(place: Path, root: Path) -> list[str]:
    """Five copies of a run with an id of their own each, the first four in a folder."""
    text = (root / "tests/data/run-small.latlab.jsonl").read_text(encoding="utf-8")
    (place / "old").mkdir()
    files = [*(f"old/{number}.latlab.jsonl" for number in range(4)), "new.latlab.jsonl"]
    header, rest = text.split("\n", 1)
    for number, name in enumerate(files):
        whole = json.loads(header) | {"id": f"run-{number}"}
        (place / name).write_text(f"{json.dumps(whole)}\n{rest}", encoding="utf-8")
    return files


@pytest.fixture
def check(called: Command, place: Path, runs: list[str]) -> Command:
    """Checks the newest against the others by that gate file."""

    def call(gates: str, *more: str, **environment: str) -> CompletedProcess[str]:
        (place / "latlab-gate.toml").write_text(gates, encoding="utf-8")
        return called("check", runs[-1], "--against", "old/", *more, **environment)

    return call


@pytest.mark.parametrize(
    ("gates", "code", "first"),
    [
        (HELD, 0, "Passed: 1 held."),
        ('[gate]\n"RAM" = { max = "1 ns" }', 1, "Not passed: 1 broken."),
        ('[gate]\n"RAM" = { max = "1 ns", level = "warn" }', 0, "Passed: 1 broken."),
        ('undecided = "fail"\n[gate]\n"RAM" = { max = "113.86 ns" }', 3, "Not passed: 1 undecided."),
        ('[gate]\n"RAM" = { max = "113.86 ns" }', 0, "Passed: 1 undecided."),
    ],
)
def test_the_exit_code_says_what_became_of_the_gates(
    check: Command, gates: str, code: int, first: str
) -> None:
    done = check(gates)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines()[0] == first
    assert " RAM · " in done.stdout
    assert done.stdout.splitlines()[1].endswith(": 1 and 4 runs.")


def test_a_mistake_is_one_line_and_code_2(check: Command, called: Command, runs: list[str]) -> None:
    for done in (
        check("broken"),
        check(HELD, "--gate", "nowhere.toml"),
        check('[gate]\n"RAM\\u001b]0;x\\u0007" = { max = "1 s" }'),
        check(HELD, "--against", "new.latlab.jsonl"),
        called("check", runs[-1]),
    ):
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("latlab: ")
        assert "\x1b" not in done.stderr


THREE = """\
[gate]
"RAM" = { max = "1 ns" }
"L1*" = { max = "1 ns", level = "warn" }
"disk, durable 4 KiB write" = { max = "110.05 µs" }
"system call*" = { max = "1 s" }
"""


def test_json_has_every_gate_with_its_reason(check: Command) -> None:
    done = check(THREE, "--format", "json")
    whole = json.loads(done.stdout)
    assert done.returncode == 1
    assert whole["held"] is False
    assert [(each["gate"], each["verdict"], each["level"]) for each in whole["gates"]] == [
        ("RAM", "broken", "error"),
        ("L1*", "broken", "warn"),
        ("disk, durable 4 KiB write", "undecided", "error"),
        ("system call*", "held", "error"),
    ]
    for each in whole["gates"]:
        assert each["quantile"] == "p50"
        assert each["probe"]
        assert each["point"]
        assert each["why"]
    assert json.loads(check(HELD, "--format", "json").stdout)["held"] is True


def test_junit_has_a_case_for_each_gate(check: Command) -> None:
    done = check(THREE, "--format", "junit")
    suite = ElementTree.fromstring(done.stdout)
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "skipped": "1",
    }
    assert [case[0].tag for case in suite] == ["failure", "system-out", "skipped", "system-out"]
    assert suite[0].get("name") == "RAM"
    assert suite[1][0].text is not None
    assert suite[1][0].text.startswith("warning: ")


def test_github_gets_annotations_and_a_table(check: Command, place: Path) -> None:
    summary = place / "summary.md"
    summary.write_text("# before\n", encoding="utf-8")
    done = check(THREE, "--format", "github", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1
    first, second, third, last = done.stdout.splitlines()
    assert first.startswith("::error title=broken%3A RAM::114 ns (113–115 ns), max 1.00 ns")
    assert second.startswith("::warning title=broken%3A L1 48 KiB::")
    assert third.startswith("::warning title=undecided%3A disk%2C durable 4 KiB write::")
    assert last == "Not passed: 2 broken, 1 undecided and 1 held."
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("# before\n")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 6
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    undecided = check(f'undecided = "fail"\n{THREE}', "--format", "github")
    assert "::error title=undecided%3A disk" in undecided.stdout
    nowhere = check(THREE, "--format", "github", GITHUB_STEP_SUMMARY=str(place))
    assert nowhere.returncode == 2
    assert nowhere.stderr.startswith("latlab: $GITHUB_STEP_SUMMARY: ")


#: What a terminal, GitHub's runner, XML and Markdown would obey.
HOSTILE = "a%0A::error::x\r\n::error::y|<b>&\"']]>`[l](u)\x1b]0;t\x07\u202e\ufffe, b: c"


@pytest.mark.parametrize("form", ["text", "github", "junit", "json"])
def test_names_of_strangers_do_nothing(check: Command, place: Path, runs: list[str], form: str) -> None:
    for file in [place / name for name in runs]:
        text = file.read_text(encoding="utf-8")
        assert '"operation":"getppid"' in text
        hostile = json.dumps(HOSTILE)
        file.write_text(text.replace('"operation":"getppid"', f'"operation":{hostile}'), encoding="utf-8")
    summary = place / "summary.md"
    key = json.dumps("kernel.syscall:a%0A*")
    done = check(f'[gate]\n{key} = {{ max = "1 ns" }}\n', "--format", form, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1, done.stderr
    for character in "\x1b\x07\r\u202e\ufffe":
        assert form == "json" or character not in done.stdout
    assert sum(line.startswith("::") for line in done.stdout.splitlines()) == (form == "github")
    if form == "github":
        command, properties, message = re.fullmatch(
            r"::(\w+) title=([^:,\r\n]*)::(.*)", done.stdout.splitlines()[0]
        ).groups()  # type: ignore[union-attr]
        assert command == "error"
        assert "a%250A%3A%3Aerror" in properties
        assert "\n" not in message
        (row,) = [line for line in summary.read_text(encoding="utf-8").splitlines() if "error" in line]
        assert len(re.findall(r"(?<!\\)\|", row)) == 5
        assert not re.search(r"(?<!\\)[<`\[]", row)
    elif form == "junit":
        case = ElementTree.fromstring(done.stdout)[0]
        assert "::error::x" in case.get("name", "")
    elif form == "json":
        assert json.loads(done.stdout)["gates"][0]["point"].startswith("a%0A::error::x")


# ---------------------------------------------------------------------------------------- measured once more


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch, place: Path, runs: list[str]) -> list[dict[str, Any]]:
    """On the machine of the runs, what measuring was asked for; each gives a copy of the checked run."""
    asked: list[dict[str, Any]] = []

    def measured(**options: Any) -> Run:  # noqa: ANN401 - as it was called
        inspect.signature(measure).bind(**options)
        asked.append(options)
        run = load(place / runs[-1])
        header = msgspec.structs.replace(run.header, id=f"again-{len(asked)}")
        return Run(header, run.records, run.footer)

    monkeypatch.setattr(again, "measure", measured)
    monkeypatch.setattr(again, "describe", lambda _: SimpleNamespace(machine=load(place / runs[-1]).machine))
    return asked


def test_what_is_not_held_is_measured_twice_more_before_anything_is_said(
    check: Command, measuring: list[dict[str, Any]]
) -> None:
    done = check(f'undecided = "measure"\n{THREE}')
    assert done.returncode == 1
    assert [options["only"] for options in measuring] == [
        ["memory.load.dependent", "storage.sync"],
        ["memory.load.dependent"],
    ]
    assert done.stderr.splitlines() == [
        "not all gates hold: measuring memory.load.dependent, storage.sync again (1 of 2 at most)",
        "not all gates hold: measuring memory.load.dependent again (2 of 2 at most)",
    ]
    # Three runs that agree lie on one side of the limit.
    assert done.stdout.startswith("Not passed: 2 broken and 2 held.")
    assert all("/again/" in str(options["out"]) for options in measuring)


def test_what_is_held_is_not_measured_again(check: Command, measuring: list[dict[str, Any]]) -> None:
    done = check(f'undecided = "measure"\n{HELD}')
    assert (done.returncode, done.stderr, measuring) == (0, "", [])


def test_a_run_of_another_machine_is_not_measured_here(check: Command) -> None:
    done = check('undecided = "measure"\n[gate]\n"RAM" = { max = "113.86 ns" }')
    assert done.returncode == 0
    assert done.stderr.splitlines()[1] == "not measured again: the run was measured on another machine"


# ------------------------------------------------------------------------------------------- of kept runs


@pytest.fixture
def kept(own_home: Path, place: Path, runs: list[str]) -> None:
    """The runs are in the store; the last is the newest."""
    store = own_home / "data/latlab/runs"
    store.mkdir(parents=True)
    for number, name in enumerate(runs):
        text = (place / name).read_text(encoding="utf-8").replace("2026-11-21T", f"2026-11-2{number + 1}T")
        (store / f"run-{number}.latlab.jsonl").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("kept")
def test_a_gate_file_is_written_once_and_replaced_only_where_that_is_asked(
    called: Command, place: Path
) -> None:
    done = called("gate", "--init")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "wrote latlab-gate.toml, from run-4 and 4 kept runs; latlab check reads it\n"
    file = place / "latlab-gate.toml"
    assert tomllib.loads(file.read_text(encoding="utf-8"))["gate"]["RAM"]["change"].endswith(" %")
    assert called("check", "last", "--against", "run-0,run-1,run-2").returncode == 0
    file.write_text("mine", encoding="utf-8")
    again = called("gate", "--init")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "--force replaces it" in again.stderr
    assert file.read_text(encoding="utf-8") == "mine"
    assert called("gate", "--init", "--force").returncode == 0
    assert called("gate", "--init", "--out", "other.toml").returncode == 0
    assert called("gate", "--init", "--out", "nowhere/other.toml").returncode == 2
    assert called("gate").returncode == 2


@pytest.mark.usefixtures("kept")
def test_a_machine_is_held_against_itself(called: Command, own_home: Path) -> None:
    done = called("check", "--aa", "5")
    assert done.returncode == 0
    assert done.stdout.startswith("24 comparisons of 5 runs of this machine, assigned")
    assert "False alarms with 2 runs a side: 0 %" in done.stdout
    assert re.search(r"^ RAM +\d+ % +\d+ %$", done.stdout, re.MULTILINE)
    for number in (0, 1):
        (own_home / f"data/latlab/runs/run-{number}.latlab.jsonl").unlink()
    few = called("check", "--aa", "5")
    assert (few.returncode, few.stdout) == (2, "")
    assert few.stderr == (
        "latlab: --aa: 3 kept runs of this machine and profile, 4 are needed:"
        " latlab measure --profile standard --no-report adds one\n"
    )
