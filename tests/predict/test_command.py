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
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(latlab.predict, "describe", lambda _: SimpleNamespace(machine=run.machine))

    def call(*words: str) -> tuple[int, str]:
        done = called(["predict", "--run", str(FILES["standard"]), *words], tmp_path, os.environ)
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
    assert "To get an answer:" in said


def test_it_is_printed_for_programs(printed: Printed) -> None:
    code, said = printed("read", "3GB", "--cached", "--json")
    assert code == 0
    found = json.loads(said)
    assert found["answer"]["low"] < found["answer"]["seconds"] < found["answer"]["high"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fly", "3GB"], "is not a job"),
        (["read", "3GB", "--cold", "--cached"], "name one of them"),
        (["write", "1GB", "--block", "0"], "--block takes a size above zero"),
        (["transfers", "5", "1MB", "--rate", "0"], "--rate takes"),
        (["read", "./nowhere"], "neither a size"),
        ([], "name a job, as read 30GB"),
        (["--verify", "--", "./program"], "name a job, as read 30GB"),
        (["read", "1GB", "--", "./program"], "--verify and a program after -- go together"),
        (["read", "1GB", "--verify"], "--verify and a program after -- go together"),
        (["--record", "--calibrate"], "name one of them"),
        (["read", "1GB", "--record"], "--record takes no job"),
        (["--plan", "nowhere.toml"], "nowhere.toml: No such file"),
        (["read", "1GB", "--cold", "--verify", "--", "./no-such-program"], "cannot be run"),
        (["read", "1GB", "--verify", "--", "true"], "name --cold or --cached"),
        (["read", "1GB", "--cold", "--verify", "--", "false"], "ended with 1"),
    ],
)
def test_a_mistake_is_one_line(printed: Printed, words: list[str], said: str) -> None:
    code, text = printed(*words)
    assert code == 2
    assert said in text
    assert len(text.strip().splitlines()) == 1


def test_the_how_to_works_with_its_commands_as_they_stand(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (block,) = shell_blocks(PAGE)
    (plan,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("nightly.toml").write_text(plan)
    commands = [shlex.split(line) for line in block.splitlines()]
    assert len(commands) > 5
    for _, name, *words in commands:
        assert name == "predict"
        code, said = printed(*words)
        assert code in {0, 3}, said
        assert said.strip()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step = 5", "has no"),
        ("[[step]]\njobs = 3", "each"),
        ("[[step]]\njobs = ['fly 3GB']", "is not a job"),
        ("[[step]]\njobs = ['read 3GB --what']", "No such option"),
        ("[[", "is not a TOML file"),
    ],
)
def test_a_plan_that_is_none_is_one_line(printed: Printed, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "plan.toml").write_text(text)
    code, reported = printed("--plan", str(tmp_path / "plan.toml"))
    assert code == 2
    assert said in reported
    assert len(reported.strip().splitlines()) == 1


def test_a_program_is_run_and_kept_beside_its_prediction(printed: Printed) -> None:
    code, said = printed("read", "3GB", "--cold", "--verify", "--", "true")
    assert code == 0
    assert re.search(r"took \S+ s: outside of the range", said)
    code, said = printed("--record")
    assert code == 0
    assert said.startswith("0 of 1 within the range")
    assert "read 3 GB" in said


def test_nothing_is_written_by_an_answer(printed: Printed, tmp_path: Path) -> None:
    assert printed("read", "3GB")[0] == 0
    assert not list(tmp_path.rglob("*"))
