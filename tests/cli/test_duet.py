"""`latlab duet`: real programs in turn, what is said of them, and how one that fails ends it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from latlab import duet as duets
from latlab.cli.terminal.duet_lines import duet_lines
from latlab.cli.terminal.screen import Screen
from latlab.duet.judge import Taken
from latlab.duet.runs import Side

Command = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are waited for by a pidfd")

#: A Python program without what takes time to import.
PYTHON = (sys.executable, "-I", "-S", "-c")


def figures(reported: CompletedProcess[str]) -> dict[str, Mapping[str, Any]]:
    assert reported.returncode == 0, reported.stderr
    return {each["name"]: each for each in json.loads(reported.stdout)["figures"]}


def test_a_program_that_sleeps_longer_is_found_by_its_wall_time(called: Command) -> None:
    reported = called("duet", "--json", "--pairs", "5", "--", "sleep", "0.05", "--vs", "sleep", "0.15")
    wall = figures(reported)["wall time"]
    # However busy the machine, the first takes at least 50 ms and the second 150 ms.
    assert wall["a"] >= 0.05
    assert wall["b"] >= 0.15
    assert json.loads(reported.stdout)["sides"] == [
        {"label": "sleep 0.05", "command": "sleep 0.05"},
        {"label": "sleep 0.15", "command": "sleep 0.15"},
    ]


def test_ten_percent_more_work_is_found_where_it_can_be_counted(called: Command) -> None:
    """Page faults, which no other program changes: 10 % more memory, and the same once more."""
    faults = "bytearray({} << 12).__setitem__(slice(None, None, 4096), bytes({}))"
    a, b = ([*PYTHON, faults.format(pages, pages)] for pages in (100_000, 110_000))
    for other, kind in ((b, "changed"), (a, "same")):
        reported = called("duet", "--json", "--pairs", "4", "--warmup", "0", "--", *a, "--vs", *other)
        found = figures(reported)["page faults"]
        assert found["verdict"] == kind
        assert found["ratio"] == pytest.approx(1.1 if kind == "changed" else 1.0, abs=0.01)


def test_pairs_follow_the_warm_up_and_what_prepares_them_comes_before(called: Command, place: Path) -> None:
    said = place / "said"
    programs = [[*PYTHON, f"open({str(said)!r}, 'a').write({mark!r})"] for mark in "AB"]
    prepare = ["--prepare", f"printf a >> {said}", "--prepare", f"printf b >> {said}"]
    reported = called("duet", "--pairs", "4", *prepare, "--", *programs[0], "--vs", *programs[1])
    assert reported.returncode == 0, reported.stderr
    text = said.read_text(encoding="ascii")
    assert text.startswith("aAbB")
    order = [text[place : place + 4] for place in range(4, 20, 4)]
    assert sorted(order) == ["aAbB", "aAbB", "bBaA", "bBaA"]


def test_programs_get_no_input_their_output_is_thrown_away_and_their_environment_is_latlabs(
    command: Command,
) -> None:
    program = "import os, sys; print('out'); print('error', file=sys.stderr)"
    program += (
        "; sys.exit(sys.stdin.read() != '' or os.environ.get('OWN') != 'x' or 'PYTHONPATH' in os.environ)"
    )
    both = [*PYTHON, program.replace(" or 'PYTHONPATH' in os.environ", ""), "--vs", *PYTHON]
    reported = command("duet", "--pairs", "3", "--", *both, "pass", OWN="x")
    assert reported.returncode == 0, reported.stderr
    assert reported.stderr == ""
    assert "\nout\n" not in reported.stdout
    shown = command("duet", "--pairs", "3", "--warmup", "0", "--show-output", "--", *both, "pass", OWN="x")
    assert shown.stderr.count("error") == 3
    assert shown.stderr.count("out") == 3


def test_both_run_on_the_cpus_that_are_named(called: Command) -> None:
    before = os.sched_getaffinity(0)
    cpu = max(before)
    program = [*PYTHON, f"import os, sys; sys.exit(os.sched_getaffinity(0) != {{{cpu}}})"]
    reported = called("duet", "--pairs", "3", "--cpus", str(cpu), "--json", "--", *program, "--vs", *program)
    assert reported.returncode == 0, reported.stderr
    assert json.loads(reported.stdout)["cpus"] == [cpu]
    assert os.sched_getaffinity(0) == before


@pytest.mark.slow
def test_with_explain_the_ledger_says_which_part_of_wall_time_differs(
    called: Command, own_home: Path, calibrated: Callable[[Path], None]
) -> None:
    calibrated(own_home / "data")
    a, b = ([*PYTHON, f"import time; time.sleep({seconds})"] for seconds in (0.05, 0.35))
    reported = called("duet", "--explain", "--json", "--pairs", "4", "--warmup", "0", "--", *a, "--vs", *b)
    found = figures(reported)
    assert found["sleep"]["category"]
    assert found["sleep"]["a"] < found["sleep"]["b"]
    assert found["sleep"]["b"] >= 0.2, "most of it, however much of the wall time is not"
    assert found["wall time"]["b"] >= 0.35
    for run in (pair[side] for pair in json.loads(reported.stdout)["runs"] for side in "ab"):
        assert sum(run["categories"].values()) == pytest.approx(run["wall_s"], rel=0.02)
    assert "memory, peak" not in found


# ---- mistakes, and programs that fail


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["true"], "duet: name two programs, with --vs between them: latlab duet -- ./old --vs ./new"),
        (["true", "--vs", "true", "--vs", "true"], "name two programs"),
        (["--vs", "true"], "duet: name a program before --vs"),
        (["true", "--vs"], "duet: name a program after --vs"),
        (["true", "--vs", "./none"], "'./none': there is no such program"),
        (["--pairs", "2", "--", "true", "--vs", "true"], "--pairs"),
        (["--same", "5", "--", "true", "--vs", "true"], "--same: '5' is not a percentage"),
        (["--cpus", "x", "--", "true", "--vs", "true"], "--cpus: 'x' is not a list of CPUs"),
        (["--cpus", "65000", "--", "true", "--vs", "true"], "--cpus: 65000 cannot be used here; allowed: "),
        (["--timeout", "x", "--", "true", "--vs", "true"], "--timeout: 'x' is not a time"),
        (["--prepare", "a", "--prepare", "b", "--prepare", "c", "true", "--vs", "true"], "--prepare: give"),
        (["--prepare", "exit 4", "--", "true", "--vs", "true"], "--prepare 'exit 4': ended with exit code 4"),
        (["--", "true", "--vs", "false"], "false: ended with exit code 1"),
        (["--", "sh", "-c", "echo no such table >&2; exit 3", "--vs", "true"], "exit code 3; it said: no"),
        (["--", "sh", "-c", "kill -SEGV $$", "--vs", "true"], "was ended by SIGSEGV"),
        (["--timeout", "0.2s", "--", "sleep", "600", "--vs", "true"], "took too long (--timeout 0.2 s)"),
        (["--explain", "--", "true", "--vs", "false"], "false: ended with exit code 1"),
        (["--explain", "--", "sh", "-c", "kill -SEGV $$", "--vs", "true"], "was ended by SIGSEGV"),
        (["--", "sh", "-c", "echo --password=hidden; exit 1", "--vs", "true"], "--password=***"),
    ],
)  # fmt: skip
def test_a_mistake_or_a_failure_is_one_line(called: Command, arguments: list[str], words: str) -> None:
    reported = called("duet", *arguments)
    assert reported.returncode == 2
    assert reported.stdout == ""
    assert reported.stderr.count("\n") == 1
    assert words in reported.stderr
    assert "hidden" not in reported.stderr


def test_an_interrupt_ends_the_programs_and_keeps_what_is_done(latlab: str, tmp_path: Path) -> None:
    said, last = tmp_path / "said", tmp_path / "last"
    program = f"""
import os, time
runs = open({str(said)!r}, "a+")
runs.write("x")
runs.flush()
if os.path.getsize({str(said)!r}) == 7:
    open({str(last)!r}, "w").write(str(os.getpid()))
    time.sleep(600)
"""
    with subprocess.Popen(
        [latlab, "duet", "--warmup", "0", "--", *PYTHON, program, "--vs", *PYTHON, program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        deadline = time.monotonic() + 120
        while not (last.exists() and last.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "3 pairs in random order on CPU" in out
    assert ", interrupted; " in out
    assert not Path(f"/proc/{int(last.read_text(encoding='ascii'))}").exists()


# ---- what is said


def found(
    a: float, b: float, *, noise: float = 0.001, same: float = 0.05, labels: str = "AB", pairs: int = 10
) -> duets.Duet:
    runs = []
    for number in range(pairs):
        more = 1 + noise * (number % 3 - 1)
        runs.append((Taken(a, a, 100.0, 50e6), Taken(b * more, b, 100.0, 60e6)))
    one, other = (Side((f"./{mark}",), f"./{mark}", f"./{mark}") for mark in labels)
    return duets.judged(one, other, runs, [True] * pairs, same, cpus=(0, 1), warmup=1)


@pytest.mark.parametrize(
    ("duet", "says"),
    [
        (found(1.0, 0.865, noise=0.03), r"\./B is 1[12]–15 % faster than \./A\."),
        (found(1.0, 1.2, noise=0.01), r"\./B is 19–21 % slower than \./A\."),
        (found(1.0, 3.0, noise=0.05), r"\./B takes 2\.9–3\.1 times as long as \./A\."),
        (found(3.0, 1.0, noise=0.05), r"\./A takes 2\.9–3\.1 times as long as \./B\."),
        (found(1.0, 1.0), r"The same within 5\.0 %: \./B takes 0\.999–1\.00 times as long as \./A\."),
        (found(1.0, 1.0, noise=0.1), r"No difference demonstrated; changes above 11 % would have shown\."),
        (
            found(1.0, 1.045, noise=0.03),
            r"\./B is 2\.\d–6\.\d % slower than \./A; whether that is more than 5\.0 % is not known\.",
        ),
    ],
)
def test_the_first_line_is_the_verdict(duet: duets.Duet, says: str) -> None:
    assert re.fullmatch(says, duet.says)
    assert duet_lines(duet, Screen(width=200))[0].text == duet.says
    assert duet.as_json()["says"] == duet.says


def test_the_screen_has_each_figure_with_its_ratio_and_each_program_against_itself() -> None:
    lines = [line.text for line in duet_lines(found(1.0, 1.2, noise=0.01), Screen(width=100))]
    assert lines == [
        "./B is 19–21 % slower than ./A.",
        "A: ./A",
        "B: ./B",
        "",
        "                          A         B  ratio",
        " wall time           1.00 s    1.20 s  1.20 (1.19–1.21)   changed",
        " CPU time            1.00 s    1.20 s  1.20 (1.20–1.20)   changed",
        " memory, peak      47.7 MiB  57.2 MiB  1.20 (1.20–1.20)   changed",
        " page faults            100       100  1.00 (0.992–1.01)  the same",
        " A against itself                      1.00 (1.00–1.00)   the same",
        " B against itself                      1.00 (0.982–1.02)  the same",
        "",
        "10 pairs in random order on CPUs 0-1; each ratio with its 95 % interval.",
    ]


def test_what_to_do_next_is_said_where_nothing_can_be_determined() -> None:
    assert re.fullmatch(
        r"\d+ more pairs would show a change of 7\.5 %\.", found(1.0, 1.0, noise=0.1).notes[1]
    )
    assert (
        found(1.0, 1.0, noise=0.9, pairs=4).notes[1].startswith("50 pairs would not show a change of 7.5 %")
    )


def test_cpu_time_that_changed_is_said_where_wall_time_tells_nothing() -> None:
    side = Side(("./x",), "./x", "./x")
    walls = [(1.0, 1.9), (1.4, 1.0), (1.0, 1.6), (1.7, 1.0)]
    runs = [(Taken(a, 0.5, 100.0), Taken(b, 0.6 + b / 1e3, 100.0)) for a, b in walls]
    notes = duets.judged(side, side, runs, [True] * 4, 0.05).notes
    assert notes[1] == (
        "CPU time, which other programs disturb less, changed: ./x takes 1.20–1.20 times as much as ./x."
    )


def test_a_start_that_takes_long_and_waits_for_a_cpu_are_said() -> None:
    run = Taken(0.01, 0.01, 100.0, None, start_s=0.002, waited_s=0.001)
    side = Side(("./x",), "./x", "./x")
    notes = duets.judged(side, side, [(run, run)] * 3, [True] * 3, 0.05).notes
    assert "Starting a program takes 2.00 ms here, 20 % of ./x." in notes
    assert "./x waited for a CPU 10 % of its time: others ran." in notes
