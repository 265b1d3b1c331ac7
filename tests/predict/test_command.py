"""`latlab predict` as people type it."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.calling import called
from tests.golden.cases import FILES
from tests.pages import ROOT, shell_blocks

import latlab.predict
from latlab.run.run import load

PAGE = ROOT / "docs/how-to/predict.md"

Printed = Callable[..., tuple[int, str]]


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Printed:
    """`printed("read", "30GB")` is the exit code and the words, on the machine of a kept run."""
    run = load(FILES["standard"])
    monkeypatch.setattr(latlab.predict, "describe", lambda _: SimpleNamespace(machine=run.machine))

    def call(*words: str) -> tuple[int, str]:
        done = called(["predict", *words, "--run", str(FILES["standard"])], tmp_path, os.environ)
        return done.returncode, done.stdout + done.stderr

    return call


def test_the_time_stands_first(printed: Printed) -> None:
    code, said = printed("syscalls", "1000000")
    assert code == 0
    assert re.match(r"syscalls 1 million: \d+–\d+ ms \(90 %, uncalibrated", said)
    assert "kernel.syscall (getppid)" in said


def test_no_answer_has_an_exit_code_of_its_own_and_says_what_lifts_it(printed: Printed) -> None:
    code, said = printed("requests", "100")
    assert code == 3
    assert "no answer" in said
    assert "To lift that:" in said


def test_it_is_printed_for_programs(printed: Printed) -> None:
    code, said = printed("read", "3GB", "--cached", "--json")
    assert code == 0
    found = json.loads(said)
    assert found["answer"]["low"] < found["answer"]["seconds"] < found["answer"]["high"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fly", "3GB"], "is no job"),
        (["read", "3GB", "--cold", "--cached"], "name one of them"),
        (["write", "1GB", "--block", "0"], "--block takes a size above zero"),
        (["transfers", "5", "1MB", "--rate", "0"], "--rate takes"),
        (["read", "./nowhere"], "neither a size"),
    ],
)
def test_a_mistake_is_one_line(printed: Printed, words: list[str], said: str) -> None:
    code, text = printed(*words)
    assert code == 2
    assert said in text
    assert len(text.strip().splitlines()) == 1


def test_the_how_to_works_with_its_commands_as_they_stand(printed: Printed) -> None:
    (block,) = shell_blocks(PAGE)
    commands = [shlex.split(line) for line in block.splitlines()]
    assert len(commands) > 5
    for _, name, *words in commands:
        assert name == "predict"
        code, said = printed(*words)
        assert code in {0, 3}, said
        assert said.strip()
