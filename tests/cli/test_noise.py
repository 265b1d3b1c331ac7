"""Listening to a CPU: the verdict first, every cause, what is unexplained, and what evidence there was."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from latlab.cli.terminal.noise_table import noise_lines, self_test_lines
from latlab.cli.terminal.screen import Screen
from latlab.errors import WorkerError
from latlab.run import noise

Command = Callable[..., CompletedProcess[str]]

LEVELS = (
    noise.Rung("time stamps", available=True),
    noise.Rung("interrupt flag", available=True),
    noise.Rung("rseq", available=True),
    noise.Rung("perf records", available=True),
    noise.Rung("tracepoints", available=False, reason="needs root"),
)


def row(cause: str, share: float, **changes: object) -> noise.CauseRow:
    plain: dict[str, object] = {
        "cause": cause,
        "count": 100,
        "per_s": 10.0,
        "total_ns": 1e6,
        "ns_per_s": 1e5,
        "median_ns": 9e3,
        "largest_ns": 8e4,
        "share_time": share,
    }
    return noise.CauseRow(**(plain | changes))  # type: ignore[arg-type]


def heard(**changes: object) -> noise.Noise:
    plain: dict[str, object] = {
        "cpu": 3,
        "pinned": True,
        "stopped_by": "completed",
        "seconds": 10.0,
        "threshold_ns": 1000.0,
        "level": "perf records",
        "levels": LEVELS,
        "gaps": 4000,
        "gaps_ns": 1e8,
        "causes": (
            row("timer-tick", 0.61, evidence={"comb": 2500}),
            row("unexplained", 0.13),
            row("context-switch", 0.01, evidence={"switch-record": 40}, who=(("rsync", 38),)),
        ),
        "periodic": (
            noise.PeriodicInterference(
                cause="timer-tick",
                reason="counted",
                hz=250.0,
                period_ns=4e6,
                phase_ns=1.5e6,
                ticks=2500,
                hit=2498,
                by_chance=12.0,
                typical_ns=2e4,
                gaps=2490,
                ns=5e7,
                share_time=0.61,
            ),
        ),
        "explained": (noise.Explained(1e4, 3000, 2910, 2500, 9e7),),
        "lost_records": 0,
        "dropped_gaps": 0,
    }
    return noise.Noise(**(plain | changes))  # type: ignore[arg-type]


def shown(said: noise.Noise, width: int = 100) -> list[str]:
    return [line.text for line in noise_lines(said, Screen(width=width))]


def test_the_first_sentence_says_what_the_noise_is_made_of() -> None:
    reported = " ".join(shown(heard())[:2])
    assert reported.startswith("CPU 3 was interrupted 400 times a second for 1 µs or more, 1 % of its time:")
    assert "61 % timer tick, 13 % unexplained, 1 % context switch." in reported


def test_the_unexplained_has_a_row_also_when_there_is_none() -> None:
    for said in (heard(), heard(causes=(row("timer-tick", 1.0),))):
        rows = [line.split()[0] for line in shown(said) if line]
        assert rows.count("unexplained") == 1


def test_periodic_interference_is_shown_with_its_period_and_phase() -> None:
    reported = " ".join(" ".join(shown(heard())).split())
    assert (
        "timer tick, 250.000 Hz: every 4.00000 ms from 1.500 ms on, 2,498 of 2,500 expected ticks" in reported
    )
    assert "of 3,000 gaps of 10 µs or more, 97 % have a cause, 83 % by their period alone" in reported


def test_what_the_flag_shows_is_distinguished_and_counts_are_charged_to_no_gap() -> None:
    row_of_10_us = noise.Explained(
        1e4, 1000, 970, 600, 9e7, by_period_interrupted=400, by_interrupt=350, outside=20
    )
    counted = noise.Counted((noise.Count("RES", "Rescheduling interrupts", 3200),))
    said = heard(
        explained=(row_of_10_us,),
        causes=(row("timer-tick", 0.6), row("interrupt", 0.3, evidence={"interrupt-flag": 350})),
        counted=counted,
    )
    reported = " ".join(" ".join(shown(said)).split())
    assert (
        "97 % have a cause, 60 % by their period (an interrupt of this kernel in 40 %),"
        " 35 % some interrupt by the interrupt flag alone, 2 % outside this kernel by the same flag"
        in reported
    )
    assert "counted on this CPU, per second: Rescheduling interrupts 320; it is unknown which" in reported
    assert "Rescheduling" not in " ".join(shown(heard(counted=counted))), "no gap is only an interrupt"


def test_what_is_missing_has_its_reason() -> None:
    assert "without tracepoints: needs root" in shown(heard())
    reported = " ".join(shown(heard(pinned=False, lost_records=7, dropped_gaps=9)))
    assert "could not be pinned to one CPU" in reported
    assert "7 kernel records were lost" in reported
    assert "9 gaps did not fit into memory" in reported


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_table_fits_the_screen(width: int) -> None:
    assert max(map(len, shown(heard(), width))) <= width


def test_a_program_that_ran_is_shown_without_what_a_terminal_would_obey() -> None:
    said = heard(causes=(row("context-switch", 1.0, who=(("\x1b[31mred", 3),)),))
    assert "\x1b" not in "".join(shown(said))


def test_a_quiet_cpu_is_said_to_be_quiet() -> None:
    assert shown(heard(gaps=0, gaps_ns=0.0, causes=(), periodic=(), explained=()))[0].startswith(
        "CPU 3 had no gap of 1 µs or more in"
    )


def test_the_confusion_matrix_is_a_table_and_the_unseen_is_named() -> None:
    found = noise.Confusion(
        cpu=2,
        seconds=2.0,
        level="perf records",
        levels=LEVELS,
        causes={"page-fault": noise.Score(1000, 996, 1001, 0.9999, 0.998)},
        unseen=("ipi",),
        unseen_because={"ipi": "needs root"},
        stalls=noise.Stalls(300, 299, 299 / 300),
        matrix={"page-fault": {"page-fault": 995, "timer-tick": 5}, "busy-stall": {"unexplained": 299}},
        lost_records=0,
    )
    reported = [line.text for line in self_test_lines(found, Screen(width=100))]
    assert reported[0].startswith("At least 99.9 % of the disturbances made on CPU 2 were found")
    assert any(
        line.split() == ["page", "fault", "1,000", "996", "99.9", "%", "99.8", "%"] for line in reported
    )
    assert "  page fault: page fault 995, timer tick 5" in reported
    assert "not seen here: interrupt from another CPU: needs root" in reported


def test_what_was_tried_in_vain_is_reported_with_its_reasons() -> None:
    score = noise.Score(
        90, 90, 300, 1.0, 1.0, not_injected={"nobody-listened": 2, "still-away": 108, "new-reason": 1}
    )
    found = noise.Confusion(
        cpu=2,
        seconds=2.0,
        level="perf records",
        levels=LEVELS,
        causes={"context-switch": score},
        unseen=(),
        unseen_because={},
        stalls=noise.Stalls(0, 0, 0.0, not_injected={"off-cpu": 9}),
        matrix={"context-switch": {"context-switch": 90}},
        lost_records=0,
    )
    reported = [line.text for line in self_test_lines(found, Screen(width=200))]
    assert reported[0] == (
        "All of the disturbances made on CPU 2 were found with evidence of their cause (context switch)."
    )
    assert (
        "not made: context switch: 111 of 201 that were tried (108 while the loop was still interrupted by"
        " the one before, 2 while latlab was not recording, 1 new-reason)" in reported
    )
    assert "not made: busy stall: 9 of 9 that were tried (9 due while the loop was interrupted)" in reported
    assert any(line.split() == ["busy", "stall", "0", "0*", "–", "–"] for line in reported)


@pytest.mark.slow
def test_the_command_listens_and_prints_all_it_heard_as_json(command: Command) -> None:
    reported = command("noise", "0.3", "--json")
    assert reported.returncode == 0, reported.stderr
    said = json.loads(reported.stdout)
    assert said["seconds"] >= 0.29
    assert sum(each["count"] for each in said["causes"]) == said["gaps"]
    assert [rung["level"] for rung in said["levels"]] == list(noise.LEVELS)
    assert all(rung["available"] or rung["reason"] for rung in said["levels"])


@pytest.mark.slow
def test_no_more_evidence_is_used_than_was_allowed(called: Command) -> None:
    reported = called("noise", "200ms", "--level", "time-stamps", "--json")
    assert json.loads(reported.stdout)["level"] == "time stamps"


@pytest.mark.slow
def test_the_self_test_prints_the_confusion_matrix_as_json(called: Command) -> None:
    reported = called("noise", "0.1", "--self-test", "--json")
    assert reported.returncode == 0, reported.stderr
    said = json.loads(reported.stdout)
    assert {"causes", "level", "unseen", "stalls"} <= set(said)
    # Who may not see which interrupt it was may see that there was one.
    named = set(said["causes"]) | set(said["unseen"])
    assert named - {"interrupt"} == {"context-switch", "page-fault", "ipi"}
    for score in said["causes"].values():
        assert {"injected", "not_injected", "found", "recall", "precision"} <= set(score)
        assert 0 <= score["found"] <= score["injected"]
        assert all(count > 0 for count in score["not_injected"].values())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the measuring process in /proc")
def test_ctrl_c_shows_what_was_heard_until_then(latlab: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [latlab, "noise", "60", "--cpu", str(min(os.sched_getaffinity(0)))],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # Once it has used as much of its CPU, it listens.
        while cpu_of_children_s(process.pid) < 0.2:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted; partial results" in err
    assert "Traceback" not in err
    assert out.startswith("CPU ")


def cpu_of_children_s(pid: int) -> float:
    """What a process's children have used of a CPU."""
    ticks = 0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):  # it has ended
            stat = Path(f"/proc/{child}/stat").read_text(encoding="utf-8")
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


MISTAKES = {
    "seconds that are no time": (["noise", "soon"], "SECONDS: 'soon'"),
    "hours": (["noise", "2h"], "more than an hour"),
    "a CPU that is not there": (["noise", "--cpu", "9999"], "CPU 9999 cannot be used"),
    "two CPUs": (["noise", "--cpu", "0,1"], "more than one CPU"),
    "a threshold below the clock": (["noise", "--threshold", "10ns"], "--threshold: '10ns'"),
    "a level that is not there": (["noise", "--level", "magic"], "tracepoints"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_costs_one_line(called: Command, name: str) -> None:
    arguments, expected = MISTAKES[name]
    reported = called(*arguments)
    assert reported.returncode == 2
    assert expected in reported.stderr
    assert len(reported.stderr.splitlines()) == 1


def test_a_listening_process_that_dies_is_said_to_have_died() -> None:
    dying = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    with pytest.raises(WorkerError, match="the measuring process failed"):
        noise.listen(1.0, command=dying)


def test_a_listening_process_that_talks_nonsense_is_not_believed() -> None:
    with pytest.raises(WorkerError, match="unreadable message"):
        noise.listen(1.0, command=[sys.executable, "-c", "print('{}')"])
