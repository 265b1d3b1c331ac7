"""Two `latlab measure` of one user: the second waits for the first, at most its own time."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.robust.test_interrupts import terminal

from latlab.run.turn import lock_name, try_lock

if TYPE_CHECKING:
    import subprocess

    from tests.conftest import Calibrated
    from tests.robust.conftest import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="abstract Unix sockets are Linux's"),
]

FIRST = ("measure", "--only", "clock.read", "--budget", "60", "--no-report", "--out", "first.latlab.jsonl")
SECOND = ("measure", "--only", "clock.read", "--no-report", "--out", "second.latlab.jsonl")


@pytest.fixture
def first(place: Place) -> Iterator[subprocess.Popen[str]]:
    """A run that is stopped in the middle of it: it holds the lock and does nothing more."""
    process = place.start(*FIRST)
    file = place.root / "here/first.latlab.jsonl"
    place.until(process, file.exists)
    os.kill(process.pid, signal.SIGSTOP)
    yield process
    process.kill()


@contextlib.contextmanager
def held_by_this_process(place: Place) -> Iterator[None]:
    user = os.geteuid()
    lock = try_lock(lock_name(user, place.environment["LATLAB_LOCK_NAME"]), user)
    assert isinstance(lock, socket.socket)
    with lock:
        yield


def marks(place: Place) -> list[str]:
    (header, *_) = place.lines(place.root / "here/second.latlab.jsonl")
    return [finding["id"] for finding in header["doctor"] if finding["id"] == "another-run"]


@pytest.mark.parametrize("end", ["ends", "is killed"])
def test_the_second_waits_until_the_first_ends(place: Place, first: subprocess.Popen[str], end: str) -> None:
    second = place.start(*SECOND, "--budget", "60")
    assert second.stderr is not None
    said = second.stderr.readline()
    assert f"latlab: waiting for another latlab measure (process {first.pid}, latlab measure --only" in said
    assert not (place.root / "here/second.latlab.jsonl").exists()
    os.kill(first.pid, signal.SIGINT if end == "ends" else signal.SIGKILL)
    os.kill(first.pid, signal.SIGCONT)
    assert place.ended(first).returncode == (130 if end == "ends" else -signal.SIGKILL)
    place.until(second, (place.root / "here/second.latlab.jsonl").exists)
    second.send_signal(signal.SIGINT)
    assert place.ended(second).returncode == 130
    assert marks(place) == []


@pytest.mark.parametrize("how", ["--beside", "--budget"])
def test_beside_the_first_the_second_is_marked(place: Place, first: subprocess.Popen[str], how: str) -> None:
    result = place.called(*SECOND, "--budget", "0.3", *(["--beside"] if how == "--beside" else []))
    assert result.returncode == 0
    words = " ".join(result.stderr.split())
    assert ("waiting for another latlab measure" in words) == (how == "--budget")
    assert f"measuring beside another latlab measure (process {first.pid}, latlab measure" in words
    assert marks(place) == ["another-run"]
    shown = place.called("show", "-v", "second.latlab.jsonl")
    assert "another latlab measure of this user was running" in " ".join(shown.stdout.split())


def test_ctrl_c_ends_one_that_waits(place: Place) -> None:
    with held_by_this_process(place), terminal(place, "measure", "--only", "clock.read") as session:
        assert session.wait_for("waiting for another latlab measure")
        session.press_ctrl_c()
        assert session.end() == 130
    assert "latlab: interrupted" in session.seen
    assert place.run_files == []
    assert place.left() == []


@pytest.mark.parametrize(
    "words",
    [("doctor", "--no-listen"), ("explain", "--no-limits", "--", "true"), ("list",), ("noise", "0.1")],
)
def test_nothing_else_waits(place: Place, words: tuple[str, ...], calibrated: Calibrated) -> None:
    calibrated(place.root / "data")
    with held_by_this_process(place):
        result = place.called(*words)
    assert result.returncode == 0, result.stderr
    assert "another latlab" not in result.stderr
