"""`latlab lesson`: the list, one lesson in every form, and mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from latlab import lessons

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_the_lessons_are_listed_by_their_opening_questions(called: Command) -> None:
    reported = called("lesson")
    assert reported.returncode == 0
    shown = " ".join(reported.stdout.split())
    for name in lessons.LESSONS:
        assert f"{name} {lessons.named(name).QUESTION}" in shown


#: The command with two rounds, each of which starts four programs for each pair.
PROGRAM = """
import dataclasses, sys
from latlab.__main__ import main
from latlab.lessons.experiments.small_files import PAIRS
PAIRS['small'] = tuple(dataclasses.replace(pair, rounds=2) for pair in PAIRS['small'])
main()
"""


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One lesson with a guess, written in every form."""
    place = tmp_path_factory.mktemp("lesson")
    line = "lesson small-files --small --plain --full --guess -o a.html -o a.json -o a.ipynb --dir ."
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *line.split()],
        cwd=place,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
        input="40\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done, place


@pytest.mark.slow
def test_a_lesson_shows_question_program_table_published_figure_picture_and_reasons(
    reported: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, _ = reported
    assert done.returncode == 0, done.stderr
    for part in (
        "Why is it faster to read/write",
        "def write_many",
        "0.14886 seconds",
        "█",
        "Why",
        "Where “Understanding Latency” misleads",
        "What to try next",
        "Less evidence",
    ):
        assert part in done.stdout, part


@pytest.mark.slow
def test_the_guess_stands_beside_the_figure_and_the_textbooks(
    reported: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, place = reported
    guessed = json.loads((place / "a.json").read_text(encoding="utf-8"))["asked"]
    assert (guessed["guess"], guessed["textbook"]) == ("40", "75.1 slower")
    assert "Your guess: 40. Here: " in done.stdout
    assert guessed["here"].endswith(("x", ")"))


@pytest.mark.slow
def test_every_form_that_was_asked_for_is_written_and_nothing_else(
    reported: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, place = reported
    assert sorted(path.name for path in place.iterdir()) == ["a.html", "a.ipynb", "a.json"]
    assert all(f"wrote {name}" in done.stderr for name in ("a.html", "a.ipynb", "a.json"))


@pytest.mark.slow
def test_the_first_picture_is_written_alone(called: Command, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="pictures need the extra latlab[export]")
    target = tmp_path / "picture.svg"
    reported = called("lesson", "heat-equation", "--small", "--plain", "--out", str(target))
    assert reported.returncode == 0, reported.stderr
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "?</text>" in text, "its question is its title"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("smal-files", "did you mean small-files?"),
        ("small-files --small --original", "not both"),
        ("--small", "which lesson?"),
        ("small-files --out a.txt", ".json"),
        ("small-files a.json", "after --compare"),
        ("small-files --compare a.json b.json", "a.json: No such file"),
        ("small-files --compare --small a.json b.json", "only --out, --full and --json"),
        ("small-files --dir nowhere", "no directory"),
        ("small-files --dir . --dir /", "only block-size takes a second directory"),
        ("block-size --dir . --dir .", "both are on one file system"),
        ("block-size --dir . --dir . --dir .", "3 directories are too many"),
        ("block-size --dir . --dir nowhere", "no directory"),
        ("list-cost --guess", "no question to guess"),
    ],
)
def test_a_mistake_is_one_line_before_anything_runs(called: Command, arguments: str, said: str) -> None:
    reported = called("lesson", *arguments.split())
    assert (reported.returncode, reported.stdout) == (2, "")
    assert said in reported.stderr
    assert len(reported.stderr.splitlines()) == 1
