"""`latlab explain`: the program untouched, the accounting check holds, bad input one line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.explain.in_process import explain
from tests.explain.ledgers import ledger as made
from tests.some import some

from latlab.explain.model import USER_CODE, Explained
from latlab.explain.run import explain_process
from latlab.explain.table import facts, table
from latlab.explain.verdict import verdict

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.slow,
]

NAMES = {
    "compute",
    "memory-copy",
    "allocator",
    "garbage-collection",
    "user-cpu",
    "page-faults",
    "file-io-cpu",
    "kernel-cpu",
    "storage-wait",
    "network",
    "pipe",
    "locks",
    "run-queue-wait",
    "sleep",
    "waiting-for-children",
    "start-and-exit",
    "interrupts-for-others",
    "unexplained",
}

SLEEPS = """
import sys, time
print("to standard output")
print("to standard error", file=sys.stderr)
begin = time.monotonic()
time.sleep(0.4)
print(time.monotonic() - begin, file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture(scope="module")
def sleeper(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """A program that sleeps, explained at the level that everybody may have."""
    file = tmp_path_factory.mktemp("sleeper") / "ledger.json"
    command = [sys.executable, "-m", "latlab", "explain", "--level", "3", "--json", str(file)]
    result = subprocess.run(
        [*command, "--", sys.executable, "-I", "-S", "-c", SLEEPS],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return result, json.loads(file.read_text(encoding="utf-8"))


def test_the_programs_output_and_exit_code_are_its_own(
    sleeper: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    result, ledger = sleeper
    assert result.returncode == 7
    assert result.stdout == "to standard output\n"
    own, _, rest = result.stderr.partition("\n\n")
    assert own.splitlines()[0] == "to standard error"
    assert " spends " in rest
    assert ledger["program"]["exit_code"] == 7


def test_shares_of_wall_time_sum_to_one_and_each_lies_in_its_interval(
    sleeper: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    _, ledger = sleeper
    rows = ledger["categories"]
    assert sum(row["share"] for row in rows) == pytest.approx(1.0, abs=1e-9)
    assert sum(row["seconds"] for row in rows) == pytest.approx(ledger["wall_s"], rel=1e-6)
    assert ledger["closure"]["holds"]
    for row in some(rows):
        assert row["name"] in NAMES
        assert 0 <= row["low"] <= row["share"] <= row["high"] <= 1


def test_a_sleep_is_a_sleep_and_user_code_is_not_guessed_at(
    sleeper: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    result, ledger = sleeper
    shares = {row["name"]: row for row in ledger["categories"]}
    # A busy machine wakes a sleeper late, which its own clock has too.
    slept = float(result.stderr.splitlines()[1])
    wall_s, sleep = ledger["wall_s"], shares["sleep"]
    # By scans, of which there are few then: the truth is in the interval that is stated.
    assert sleep["high"] * wall_s >= 0.4 - 0.05, sleep
    assert sleep["low"] * wall_s <= slept + 0.05 * wall_s, sleep
    assert not {"compute", "allocator", "memory-copy", "garbage-collection"} & set(shares)
    user = next(row for row in ledger["categories"] if row["name"] == "user-cpu")
    assert {within["name"] for within in user["within"]} >= {"compute", "allocator"}


def test_the_ledger_decodes_as_its_model_and_says_something(
    sleeper: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    _, ledger = sleeper
    decoded = msgspec.json.decode(json.dumps(ledger), type=Explained)
    of_json_alone = {"raise", "bounds", "judged", "verdict", "version", "wall_range_s"}
    assert set(ledger) <= set(msgspec.structs.asdict(decoded)) | of_json_alone
    assert "sleeping" in verdict(made({"sleep": 0.9}))[0]
    # On a busy machine the sleeper waits longer for a CPU than it slept.
    largest = max(ledger["categories"], key=lambda row: float(row["share"]))
    lines = table(decoded)
    assert lines[1].startswith(f"{largest['name']} ")
    assert any("sum" in line and "100.0 %" in line for line in lines)
    assert any("level 3 of 3" in fact for fact in facts(decoded))


def test_a_program_that_is_killed_ends_with_the_shells_code() -> None:
    result = explain("--level", "3", "--", "sh", "-c", "kill -9 $$")
    assert result.returncode == 128 + signal.SIGKILL


def test_a_program_that_has_read_its_pipe_is_not_run_again_and_that_is_said() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"once\n")
    os.close(writing)
    result = explain("--level", "3", "--runs", "5", "--", "cat", stdin=reading)
    os.close(reading)
    assert result.stdout == "once\n"
    assert "Only 1 of 5 runs were possible: the first run consumed its input" in result.stderr.replace(
        "\n  ", " "
    )


@pytest.mark.parametrize(
    ("asked", "times"),
    [((), 1), (("--runs", "1"), 1), (("--runs", "3"), 3), (("--best-of", "2"), 2)],
    ids=lambda value: " ".join(value) or "by default" if isinstance(value, tuple) else str(value),
)
@pytest.mark.parametrize("level", ["1", "3"])
def test_what_a_program_changes_it_changes_as_often_as_was_asked_for(
    tmp_path: Path, level: str, asked: tuple[str, ...], times: int
) -> None:
    count = tmp_path / "count"
    result = explain("--level", level, *asked, "--", "sh", "-c", f"echo x; echo x >> '{count}'; sleep 0.01")
    assert result.returncode == 0, result.stderr
    assert count.read_text(encoding="ascii") == "x\n" * times
    assert result.stdout == "x\n"


def test_a_program_may_leave_others_running_and_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    # It goes on until it is looked at: of a program that no look has met, nobody knows what it started.
    daemons = "for i in 1 2 3 4 5; do setsid sleep 9 < /dev/null > /dev/null 2> /dev/null & done; sleep 1"
    result = explain("--level", "3", "--json", str(file), "--", "sh", "-c", daemons)
    ledger = json.loads(file.read_text(encoding="utf-8"))
    assert (ledger["runs"], ledger["program"]["left_running"]) == (1, 5), result.stderr
    assert "5 of its processes outlived it" in result.stderr


def test_a_script_without_its_interpreter_says_which_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nowhere/bin/interpreter -x\n", encoding="ascii")
    script.chmod(0o755)
    result = explain("--", str(script))
    assert result.returncode == 127
    assert result.stderr == f"latlab: {script}: its interpreter /nowhere/bin/interpreter does not exist\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--", "/nowhere/no-such-program"], 127, "no such program"),
        (["--", "no-such-program-on-the-path"], 127, "no such program"),
        (["--", "/"], 126, "may not be executed"),
        ([], 2, "name a program"),
        (["--level", "4", "--", "true"], 2, "'4'"),
        (["--runs", "0", "--", "true"], 2, "--runs"),
        (["--overhead", "0%", "--", "true"], 2, "--overhead: '0%'"),
        (["--overhead", "much", "--", "true"], 2, "or `unlimited`"),
        (["--for", "1s", "--", "true"], 2, "--for"),
        (["--pid", "x"], 2, "--pid"),
        (["--pid", "1", "--", "true"], 2, "--pid"),
        (["--json", "/nowhere/x.json", "--", "true"], 2, "/nowhere"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], code: int, says: str) -> None:
    result = explain(*arguments)
    assert result.returncode == code
    assert result.stderr.startswith("latlab: ")
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("level", ["1", "2", "3"])
def test_no_more_runs_at_once_than_there_are_cpus_nor_longer_than_the_kernel_counted(
    tmp_path: Path, level: str
) -> None:
    file = tmp_path / "ledger.json"
    hashes = "import hashlib; [hashlib.sha256(bytes(2_000_000)).hexdigest() for _ in range(8)]"
    script = f"seq 6 | xargs -P 6 -I{{}} '{sys.executable}' -I -S -c '{hashes}'"
    result = explain("--no-limits", "--level", level, "--json", str(file), "--", "sh", "-c", script)
    assert result.returncode == 0, result.stderr
    ledger = json.loads(file.read_text())
    cpu_s = ledger["counters"]["user_s"] + ledger["counters"]["system_s"]
    assert 1 <= ledger["threads"]["parallelism"] <= len(os.sched_getaffinity(0)) + 1e-9
    user = [row for row in ledger["categories"] if row["name"] in (*USER_CODE, "user-cpu")]
    assert 0 < sum(row["seconds"] for row in user) <= min(cpu_s, ledger["wall_s"]) + 1e-9
    assert not any("The kernel counted" in note for note in ledger.get("notes", ()))


def test_ctrl_c_ends_the_watching_of_a_process_and_what_was_seen_is_reported() -> None:
    def links() -> Iterator[str]:
        for entry in Path("/proc/self/fd").iterdir():
            # The folder's own has gone by now.
            with contextlib.suppress(FileNotFoundError):
                yield os.readlink(entry)  # noqa: PTH115 - no path

    def interrupt() -> None:
        # What tells of the process's end is open from the first moment to the last.
        while not any("pidfd" in link for link in links()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with subprocess.Popen(["sleep", "1000"]) as process:
        other = threading.Thread(target=interrupt)
        other.start()
        explained, _ = explain_process(process.pid, 50, level=3)
        other.join()
        assert process.poll() is None
        process.kill()
    assert 0 < explained.wall_s < 49


def test_a_signal_to_the_watcher_goes_to_the_program_and_it_decides(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    program = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(9))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "latlab", "explain", "--level", "3", "--", sys.executable, "-c", program]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as watched:
        deadline = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        watched.send_signal(signal.SIGINT)
        _, said = watched.communicate(timeout=60)
    assert watched.returncode == 9
    assert " spends " in said
