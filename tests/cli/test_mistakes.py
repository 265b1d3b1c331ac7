"""Every mistake that a person can type: one clear line on stderr, exit code 2, nothing left behind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from latlab.cli import main
from latlab.compare import gate
from latlab.run import run

Command = Callable[..., CompletedProcess[str]]

MISTAKES = {
    "an unknown command": (["mesure"], "did you mean measure?"),
    "an unknown option": (["--nope"], "No such option"),
    "an unknown profile": (["measure", "--profile", "fast"], "'quick', 'standard', 'thorough'"),
    "a probe written wrong": (["measure", "--only", "memory.pok"], "did you mean memory.poke?"),
    "a probe without its tier": (["measure", "--only", "stride"], "did you mean memory.stride?"),
    "a glob that matches nothing": (["measure", "--only", "archive.*"], "matches no probe"),
    "one wrong glob of two": (["measure", "--only", "clock.read,nope.*"], "'nope.*'"),
    "a wrong glob to skip": (["measure", "--skip", "nothing"], "--skip: 'nothing'"),
    "an empty glob": (["measure", "--only", ""], "empty glob"),
    "nothing left to run": (["measure", "--only", "clock.read", "--skip", "clock.*"], "nothing is left"),
    "a directory that is a file": (["measure", "--dir", "a-file"], "is a file, not a directory"),
    "a directory that is missing": (["measure", "--dir", "missing"], "there is no directory"),
    "a directory that no name can be": (["measure", "--dir", "x" * 300], "--dir"),
    "a file that is missing": (["measure", "--file", "missing"], "--file: there is no file"),
    "a file that is a folder": (["measure", "--file", "."], "is a directory"),
    "a file that is a device": (["measure", "--file", "/dev/null"], "is a device"),
    "a file that is a link": (["measure", "--file", "a-link"], "is a symbolic link"),
    "a file that holds nothing": (["measure", "--file", "a-file"], "is empty"),
    "a file without a name": (["measure", "--file", ""], "name is empty"),
    "first touches of a file": (["measure", "--first-touch", "a-file"], "is a file, not a directory"),
    "first touches of nothing": (["measure", "--first-touch", "missing"], "there is no directory"),
    "a negative budget": (["measure", "--budget", "-3"], "--budget: '-3' is negative"),
    "a budget of nothing": (["measure", "--budget", "0"], "--budget: '0' is out of range"),
    "a budget in parsecs": (["measure", "--budget", "3pc"], "not a unit of time"),
    "a CPU that is not there": (["measure", "--cpu", "9999"], "CPU 9999 cannot be used"),
    "CPUs that are no numbers": (["measure", "--cpu", "all"], "not a list of CPUs"),
    "a size with a wrong unit": (["measure", "--max-bytes", "4zb"], "not a unit of size"),
    "a negative size": (["measure", "--max-bytes", "-1"], "is negative"),
    "a seed that is no number": (["measure", "--seed", "lucky"], "--seed"),
    "an output file that exists": (["measure", "--out", "a-file"], "already exists"),
    "an output folder that is missing": (["measure", "--out", "missing/run"], "there is no directory"),
    "an output file that is a folder": (["measure", "--out", "."], "is a directory"),
    "a run that is not there": (["show", "nosuchrun"], "no run"),
    "no run at all": (["show", "last"], "latlab"),
    "a run file that is missing": (["show", "missing.latlab.jsonl"], "missing.latlab.jsonl"),
    "a run file that is empty": (["show", "a-file"], "empty"),
    "a run file that is a picture": (["show", "picture.jsonl"], "not a run"),
    "a run file that is a folder": (["report", ".", "-o", "x.html"], "folder"),
    "a report without a name": (["report", "{run}"], "--out"),
    "a report of another kind": (["report", "{run}", "-o", "x.doc"], ".html or .pdf or .md"),
    "a report in a missing folder": (["report", "{run}", "-o", "missing/x.html"], "there is no directory"),
    "a chart that is not there": (["chart", "{run}", "laddr", "-o", "x.svg"], "did you mean ladder?"),
    "a chart without a file": (["chart", "{run}", "ladder"], "-o ladder.svg"),
    "a file without a chart": (["chart", "{run}", "-o", "x.svg"], "which chart"),
    "a chart of another kind": (["chart", "{run}", "ladder", "-o", "x.gif"], ".svg or .png or .pdf"),
    "an export of another kind": (
        ["export", "{run}", "-o", "x.xls"],
        ".csv or .npz or .json or .jsonl or .parquet",
    ),
    "a server at a name": (["serve", "--bind", "localhost"], "'localhost' is not an IP address"),
    "a server at no port": (["serve", "--bind", "127.0.0.1:http"], "'http' is not a port"),
    "a server at a port too high": (["serve", "--bind", "[::1]:65536"], "'65536' is not a port"),
    "a server of another computer": (["serve", "--bind", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    "a server for everybody": (["serve", "--bind", "0.0.0.0"], "--secret-file"),
    "a secret that is missing": (["serve", "--secret-file", "missing"], "--secret-file: 'missing'"),
    "a secret that all can read": (["serve", "--secret-file", "picture.jsonl"], "chmod 600"),
    "a secret that is a folder": (["serve", "--secret-file", "."], "--secret-file: '.'"),
    "a secret of nothing": (["serve", "--secret-file", "a-secret"], "0 bytes long"),
    "a shell that nobody knows": (["completion", "tcsh"], "'bash', 'zsh', 'fish'"),
    "one word too many": (["measure", "everything"], "everything"),
}


@pytest.mark.parametrize(("arguments", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_costs_one_line(
    called: Command, place: Path, file: str, arguments: list[str], said: str
) -> None:
    (place / "a-file").touch()
    (place / "a-secret").touch(mode=0o600)
    (place / "a-link").symlink_to("picture.jsonl")
    (place / "picture.jsonl").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    before = sorted(place.rglob("*"))
    reported = called(*(argument.format(run=file) for argument in arguments))
    assert reported.returncode == 2, reported.stderr
    assert reported.stdout == ""
    assert reported.stderr.count("\n") == 1, reported.stderr
    assert reported.stderr.startswith("latlab: ")
    assert said in reported.stderr
    assert sorted(place.rglob("*")) == before


def test_a_terminal_does_not_obey_what_was_typed(called: Command) -> None:
    reported = called("show", "\x1b]0;owned\x07")
    assert reported.returncode == 2
    assert "\x1b" not in reported.stderr
    assert "\x07" not in reported.stderr


def test_a_fault_of_latlabs_own_is_one_line_with_the_place_of_its_details(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail(_name: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(run, "load", fail)
    assert main.run(["show", "last"]) == 1
    reported = capsys.readouterr()
    assert reported.out == ""
    assert reported.err.count("\n") == 1
    details = next(tmp_path.glob("latlab-fault-*.txt"))
    assert str(details) in reported.err
    assert "ZeroDivisionError: a fault" in details.read_text()


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_fault_of_check_is_no_broken_gate(monkeypatch: pytest.MonkeyPatch, file: str, debug: str) -> None:
    def fail(_path: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setenv("LATLAB_DEBUG", debug)
    monkeypatch.setattr(gate, "read", fail)
    assert main.run(["check", file, "--against", file]) == 2


def test_a_fault_is_a_traceback_for_who_asked_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_name: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setenv("LATLAB_DEBUG", "1")
    monkeypatch.setattr(run, "load", fail)
    assert main.run(["show", "last"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_full_disk_behind_stdout_is_said_in_one_line(latlab: str, file: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with Path("/dev/full").open("w") as full:
        reported = subprocess.run(
            [latlab, "show", file], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert reported.returncode == 1
    assert reported.stderr.count("\n") == 1
    assert "No space left" in reported.stderr
