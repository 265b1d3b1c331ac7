"""`latlab check` and `latlab gate`: exit codes, formats, and files of strangers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

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
    told = check(gates)
    assert (told.returncode, told.stderr) == (code, "")
    assert told.stdout.splitlines()[0] == first
    assert " RAM · " in told.stdout


def test_a_mistake_is_one_line_and_code_2(check: Command, called: Command, runs: list[str]) -> None:
    for told in (
        check("broken"),
        check(HELD, "--gate", "nowhere.toml"),
        check('[gate]\n"RAM\\u001b]0;x\\u0007" = { max = "1 s" }'),
        check(HELD, "--against", "new.latlab.jsonl"),
        called("check", runs[-1]),
    ):
        assert (told.returncode, told.stdout) == (2, "")
        assert told.stderr.count("\n") == 1
        assert told.stderr.startswith("latlab: ")
        assert "\x1b" not in told.stderr
