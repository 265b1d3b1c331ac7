"""kill -9 of the command or of its measuring process: what stays is a run, and what was there."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from latlab.run.conduct import MOST_DEATHS

if TYPE_CHECKING:
    import subprocess

    from tests.robust.conftest import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

#: The first records come in the first of some seconds; most of the others are waiting.
SHORT = (
    *("measure", "--profile", "quick", "--no-report", "--budget", "6"),
    *("--only", "clock.read,kernel.syscall,kernel.timer"),
)
#: Goes on for long after its first records.
LONG = ("measure", "--profile", "quick", "--only", "clock.read,memory.*", "--no-report")


@pytest.mark.parametrize("lines", [0, 1, 2, 9, 16])
def test_killing_the_command_leaves_what_was_measured_and_no_process(place: Place, lines: int) -> None:
    place.plant()
    process = place.start(*LONG)
    place.until_lines(process, lines)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert place.no_worker_is_left(process)
    assert place.left() == []
    if lines:
        assert len(place.lines()) >= lines
        assert "cut short" in place.shown()


def test_each_death_of_the_measuring_process_leaves_a_record_and_the_run_goes_on(place: Place) -> None:
    place.plant()
    process = place.start(*SHORT)
    killed: set[int] = set()
    place.until_lines(process, 1)
    kill_the_next_worker(place, process, killed)
    for _ in range(2):
        kill_a_worker_that_has_measured(place, process, killed)
    result = place.ended(process)
    # Where two of them fall into one probe, a record says that the rest of it is left out. That of a worker
    # which has said all is none.
    deaths = sum("SIGKILL" in death for death in place.deaths())
    assert 1 <= deaths <= 3
    assert result.returncode == 0
    footer = place.lines()[-1]
    assert footer["stopped_by"] == "completed"
    assert footer["totals"]["worker_restarts"] == deaths
    assert "SIGKILL" in " ".join(result.stderr.split()), "it is said when it happens"
    assert result.stderr.count("(latlab doctor)") == 1, "the header is not printed again"
    assert "SIGKILL" in place.shown()
    assert place.no_worker_is_left(process)
    assert place.left() == []


def next_workers(place: Place, process: subprocess.Popen[str], killed: set[int]) -> set[int]:
    # Between two rounds there is none.
    while not (found := set(place.workers(process)) - killed):
        assert process.poll() is None
        time.sleep(0.01)
    return found


def kill_the_next_worker(place: Place, process: subprocess.Popen[str], killed: set[int]) -> None:
    found = next_workers(place, process, killed)
    with contextlib.suppress(ProcessLookupError):
        os.kill(min(found), signal.SIGKILL)
    killed |= found


def kill_a_worker_that_has_measured(place: Place, process: subprocess.Popen[str], killed: set[int]) -> None:
    """A second one that dies while it is set up would end the run."""
    while True:
        found = next_workers(place, process, killed)
        lines = len(place.lines())
        while min(found) in place.workers(process):
            if len(place.lines()) > lines:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(min(found), signal.SIGKILL)
                    killed |= found
                    return
            time.sleep(0.01)


def test_a_measuring_process_that_is_killed_again_and_again_ends_the_run_with_what_there_is(
    place: Place,
) -> None:
    place.plant()
    process = place.start(*LONG)
    place.until_lines(process, 2)
    killed: set[int] = set()
    while process.poll() is None:
        for worker in set(place.workers(process)) - killed:
            # Between two rounds one ends by itself.
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
            killed.add(worker)
        time.sleep(0.01)
    result = place.ended(process)
    assert result.returncode == 1
    assert "SIGKILL" in " ".join(result.stderr.split())
    assert "fault" not in result.stderr
    deaths = sum("SIGKILL" in death for death in place.deaths())
    assert 2 <= deaths <= MOST_DEATHS
    assert place.lines()[-1]["stopped_by"] == f"failed: the measuring process died {deaths} times"
    assert "SIGKILL" in place.shown()
    assert place.no_worker_is_left(process)
    assert place.left() == []


def test_a_measuring_process_that_is_killed_before_it_says_anything_is_started_once_more(
    place: Place,
) -> None:
    place.plant()
    process = place.start(*SHORT)
    killed: set[int] = set()
    for _ in range(2):
        kill_the_next_worker(place, process, killed)
    result = place.ended(process)
    assert result.returncode == 1
    assert "SIGKILL" in " ".join(result.stderr.split())
    assert "before it measured anything" in " ".join(result.stderr.split())
    assert place.run_files == []
    assert place.left() == []


def test_a_run_that_is_done_leaves_its_file_and_its_report(place: Place) -> None:
    place.plant()
    result = place.called("measure", "--only", "clock.read", "--budget", "0.1")
    assert result.returncode == 0, result.stderr
    assert place.left() == []
    assert len(place.run_files) == len(list((place.root / "data").rglob("*.html"))) == 1
