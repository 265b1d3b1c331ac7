"""Programs of every kind are explained without a change to them, to the watcher or to the machine."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from tests.explain.one_process import Reported, explained
from tests.some import some

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.slow,
]

THREADS = """
import threading, time
together = threading.Barrier(501)
def wait():
    together.wait()
    time.sleep(0.6)
threads = [threading.Thread(target=wait) for _ in range(500)]
for thread in threads: thread.start()
together.wait()
for thread in threads: thread.join()
"""
PYTHON = [sys.executable, "-I", "-S", "-c"]
PROGRAMS = {
    "forks": ["sh", "-c", "(exit 3) & wait $!"],
    "execs": ["sh", "-c", "exec sh -c 'exec sh -c \"exit 5\"'"],
    "ignores signals": ["sh", "-c", "trap '' INT TERM HUP; kill -TERM $$; kill -INT $$; sleep 0.05; exit 6"],
    "is killed": ["sh", "-c", "kill -KILL $$"],
    "crashes": ["sh", "-c", "kill -SEGV $$"],
    "exits at once": ["true"],
    "takes two milliseconds": ["sleep", "0.002"],
    "starts 500 threads": [*PYTHON, THREADS],
    "closes all descriptors": [
        *PYTHON,
        "import os, time; os.closerange(0, 512); time.sleep(0.05); os._exit(9)",
    ],
    "leaves a child running": ["sh", "-c", "sleep 30 >/dev/null 2>&1 & sleep 0.1; exit 4"],
    "does not exist": ["/nowhere/no-such-program"],
    "cannot be executed": ["/etc/passwd"],
}
CODES = {
    "forks": 3,
    "execs": 5,
    "ignores signals": 6,
    "is killed": 128 + signal.SIGKILL,
    "crashes": 128 + signal.SIGSEGV,
    "exits at once": 0,
    "takes two milliseconds": 0,
    "starts 500 threads": 0,
    "closes all descriptors": 9,
    "leaves a child running": 4,
    "does not exist": 127,
    "cannot be executed": 126,
}
if os.geteuid() == 0:
    drops = "import os, time; os.setgid(65534); os.setuid(65534); time.sleep(0.05); os._exit(7)"
    PROGRAMS["drops its privileges"], CODES["drops its privileges"] = [*PYTHON, drops], 7


@pytest.fixture(scope="module", params=[1, 3], ids=["as much as is allowed", "from /proc alone"])
def reported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """What became of each program."""
    return explained(tmp_path_factory.mktemp("robust"), request.param, PROGRAMS)


def test_the_exit_code_is_the_programs(reported: Reported) -> None:
    assert {name: each["exit_code"] for name, each in reported.items()} == CODES


def test_the_signal_that_ended_a_program_is_reported(reported: Reported) -> None:
    assert reported["is killed"]["ledger"]["program"]["signal"] == signal.SIGKILL
    assert reported["crashes"]["ledger"]["program"]["signal"] == signal.SIGSEGV
    assert "It was ended by signal 11 (SIGSEGV)." in reported["crashes"]["said"].replace("\n", " ")
    assert "It was ended by signal 11 (SIGSEGV)." in reported["crashes"]["ledger"]["verdict"]["says"]


def test_a_program_that_cannot_be_started_is_reported_in_one_line(reported: Reported) -> None:
    for name, says in (
        ("does not exist", "no such program"),
        ("cannot be executed", "may not be executed"),
    ):
        assert says in reported[name]["said"]
        assert reported[name]["said"].startswith("latlab: ")
        assert len(reported[name]["said"].splitlines()) == 1
        assert reported[name]["ledger"] is None


def test_the_accounting_closes_whatever_the_program_does(reported: Reported) -> None:
    ledgers = [each["ledger"] for each in reported.values() if each["ledger"] is not None]
    for ledger in some(ledgers, least=len(PROGRAMS) - 2):
        assert sum(row["share"] for row in ledger["categories"]) == pytest.approx(1.0, abs=1e-9), ledger
        assert ledger["closure"]["holds"], ledger


def test_nothing_is_left_behind_and_nothing_changed(reported: Reported) -> None:
    for each in some(reported.values(), least=len(PROGRAMS)):
        assert each["changed"] == {}, each


def test_all_threads_are_followed(reported: Reported) -> None:
    assert reported["starts 500 threads"]["ledger"]["threads"]["most"] >= 500


def test_a_process_that_goes_on_is_counted_and_left_alone(reported: Reported) -> None:
    ledger = reported["leaves a child running"]["ledger"]
    assert ledger["program"]["left_running"] == 1
    assert ledger["wall_s"] < 25
