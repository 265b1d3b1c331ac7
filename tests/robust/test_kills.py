"""kill -9 of the command or of its measuring process: what stays is a readable run, and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.robust.conftest import Place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

SHORT = ("measure", "--profile", "quick", "--only", "clock.read,memory.stride", "--no-report")


@pytest.mark.parametrize("lines", [0, 1, 2, 9, 16])
def test_killing_the_command_leaves_what_was_measured_and_no_process(place: Place, lines: int) -> None:
    process = place.start(*SHORT)
    if not place.has_lines(process, lines) and lines:
        pytest.skip("it was done before")
    process.kill()
    process.wait()
    assert place.no_worker_is_left(process)
    assert place.left() == []
    if lines:
        assert "cut short" in place.shown() or place.lines()[-1]["line"] == "footer"


def test_killing_the_measuring_process_leaves_a_record_and_the_run_goes_on(
    places: Callable[[], Place],
) -> None:
    for lines in (1, 9, 16):
        place = places()
        process = place.start(*SHORT)
        if not (place.has_lines(process, lines) and (workers := place.workers(process))):
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(workers[0], signal.SIGKILL)
        told = place.ended(process)
        if not place.deaths():
            assert place.lines()[-1]["stopped_by"] == "completed", "killed after its last word"
            continue
        (death,) = place.deaths()
        assert "SIGKILL" in death
        assert told.returncode == 0
        footer = place.lines()[-1]
        assert footer["stopped_by"] == "completed"
        assert footer["totals"]["worker_restarts"] <= 1
        assert "SIGKILL" in " ".join(told.stderr.split()), "it is said when it happens"
        assert told.stderr.count("before you trust this") == 1, "the header is not printed again"
        assert "SIGKILL" in place.shown()
        assert place.no_worker_is_left(process)
        assert place.left() == []


def test_a_measuring_process_that_is_killed_again_and_again_ends_the_run_with_what_there_is(
    place: Place,
) -> None:
    process = place.start(*SHORT)
    while process.poll() is None:
        for worker in place.workers(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
    told = place.ended(process)
    assert told.returncode in {0, 1}
    assert "SIGKILL" in " ".join(told.stderr.split())
    assert "fault" not in told.stderr
    assert place.left() == []
    if place.run_files:
        assert "SIGKILL" in place.shown()


def test_a_run_that_is_done_leaves_its_file_and_its_report(place: Place) -> None:
    told = place.run("measure", "--only", "clock.read", "--budget", "3")
    assert told.returncode == 0, told.stderr
    assert place.left() == []
    assert len(place.run_files) == len(list((place.root / "data").rglob("*.html"))) == 1
