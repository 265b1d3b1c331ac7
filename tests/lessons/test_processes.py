"""Programs of the lessons: ended with all that they started, and with this latlab to import."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.environments import UNUSUAL

import latlab
from latlab.lessons.processes import last_words, run_whole


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are Unix's")
def test_what_takes_too_long_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait, note = subprocess.Popen.wait, tmp_path / "note"

    def waited(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout is None:
            return wait(process)
        while not (note.exists() and note.read_text().endswith("\n")):
            time.sleep(0.005)
        raise subprocess.TimeoutExpired("sh", timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", waited)
    with note.open("wb") as out, pytest.raises(subprocess.TimeoutExpired):
        run_whole(
            ["sh", "-c", "sleep 600 & echo $!; wait"],
            1.0,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
    assert gone(int(note.read_text()))


def gone(process: int) -> bool:
    """Whether it has ended within ten seconds; one that nobody has asked for yet counts as that."""
    for _ in range(1000):
        result = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
        )
        if not result.stdout.strip() or result.stdout.startswith("Z"):
            return True
        time.sleep(0.01)
    return False


def test_it_imports_the_latlab_that_started_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    target = tmp_path / "said"
    with target.open("wb") as out:
        code = run_whole(
            [sys.executable, "-c", "import latlab; print(latlab.__file__); raise SystemExit(3)"],
            60.0,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    assert (code, target.read_text(encoding="utf-8").strip()) == (3, latlab.__file__)


def test_it_runs_in_the_usual_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in UNUSUAL.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("LATLAB_KEPT", "kept")
    target = tmp_path / "said"
    with target.open("wb") as out:
        run_whole(["env"], 60.0, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    seen = dict(line.split("=", 1) for line in target.read_text(encoding="utf-8").splitlines())
    assert seen["LATLAB_KEPT"] == "kept"
    assert seen["LC_ALL"] == "C.UTF-8"
    assert not {"PYTHONIOENCODING", *UNUSUAL} & seen.keys()


@pytest.mark.parametrize(
    ("output", "shown"),
    [(None, ""), ("", ""), (b"one\ntwo \xff\n\n", "two \ufffd"), ("a\x1b[31mb", "a\\x1b[31mb")],
)
def test_the_last_line_of_what_a_program_said_is_safe_to_show(output: bytes | str | None, shown: str) -> None:
    assert last_words(output) == shown
