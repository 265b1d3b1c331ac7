"""Explaining where much is refused or hidden: exit code and accounting check are right, gaps are named."""

from __future__ import annotations

import errno
import json
import os
import platform
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.robust import attaching
from tests.robust.test_noise_degraded import PERF_EVENT_OPEN, refuse

if TYPE_CHECKING:
    from tests.conftest import Calibrated
    from tests.robust.conftest import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
]

KCMP = {"x86_64": 312, "aarch64": 272}.get(platform.machine(), -1)
SLEEPS = ("sh", "-c", "sleep 0.3; exit 5")
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
"""Root's files and nobody's permissions: what an ordinary user may do with programs of the own."""
HIDDEN = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
WITHOUT_DEVICES = 'mount -t tmpfs none /dev && exec "$@"'


@pytest.fixture(autouse=True)
def has_the_calibration(place: Place, calibrated: Calibrated) -> None:
    """Where a test is of another permission, its own is measured all the same."""
    calibrated(place.root / "data")


def explained(
    place: Place,
    *program: str,
    inside: tuple[str, ...] = (),
    level: str = "1",
    code: int = 5,
    **more: Any,  # noqa: ANN401 - as Popen's own
) -> dict[str, Any]:
    file = place.root / "here/ledger.json"
    words = place.started_as("explain", "--level", level, "--runs", "1", "--json", str(file), "--", *program)
    result = subprocess.run(
        [*inside, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=place.environment,
        cwd=place.root / "here",
        timeout=60,
        check=False,
        **more,
    )
    assert result.returncode == code, result.stderr
    assert " spends " in result.stderr
    ledger: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert sum(row["share"] for row in ledger["categories"]) == pytest.approx(1.0, abs=1e-9)
    assert ledger["closure"]["holds"]
    return ledger


def is_what_it_waited_for(ledger: dict[str, Any], name: str) -> bool:
    """Whether the 0.3 s of sleep or more are found there; on a busy machine they are longer."""
    waits = ("sleep", "storage-wait", "network", "pipe", "locks", "unexplained")
    seconds = {row["name"]: row["seconds"] for row in ledger["categories"]}
    others = sum(seconds.get(other, 0.0) for other in waits if other != name)
    return bool(seconds[name] >= 0.2 and others <= 0.25 * seconds[name])


def allowed(*inside: str) -> tuple[str, ...]:
    """The words before a command, or a skip where they cannot be had."""
    if shutil.which(inside[0]) is None:
        pytest.skip(f"{inside[0]} is not installed")
    result = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"{' '.join(inside)}: {result.stderr.strip()}")
    return inside


@pytest.fixture
def unreadable(tmp_path: Path) -> str:
    """A program that may be executed but not read: nobody is shown what it does, as with ptrace_scope 2."""
    if os.geteuid() != 0:
        pytest.skip("needs a way to be without capabilities, and root has it")
    program = tmp_path / "sleeps"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    program.chmod(0o111)
    return str(program)


@pytest.mark.skipif(PERF_EVENT_OPEN < 0, reason="no number for the call on this machine")
@pytest.mark.parametrize("answer", [errno.EPERM, errno.EACCES], ids=["a sandbox", "paranoid 4"])
def test_without_perf_a_program_is_looked_at(place: Place, answer: int) -> None:
    ledger = explained(place, *SLEEPS, preexec_fn=lambda: refuse(PERF_EVENT_OPEN, answer))
    assert ledger["level"] == 3
    assert [bool(rung["available"]) for rung in ledger["levels"]] == [False, False, True]
    assert all(os.strerror(answer) in rung["reason"] for rung in ledger["levels"][:2])
    assert is_what_it_waited_for(ledger, "sleep"), ledger["categories"]


def test_in_a_user_namespace_the_kernel_is_not_seen(place: Place) -> None:
    inside = allowed("unshare", "--user", "--map-root-user")
    ledger = explained(place, *SLEEPS, inside=inside)
    paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii"))
    assert ledger["level"] >= (2 if paranoid > 1 else 1)
    assert is_what_it_waited_for(ledger, "sleep"), ledger["categories"]


@pytest.mark.parametrize("level", ["1", "3"])
def test_what_a_program_waits_for_that_nobody_may_look_into_is_not_guessed(
    place: Place, unreadable: str, level: str
) -> None:
    inside = allowed(*WITHOUT_CAPABILITIES)
    # Long beside what starting a program that was just written waits for the disk.
    ledger = explained(place, unreadable, "1.2", inside=inside, level=level, code=0)
    assert is_what_it_waited_for(ledger, "unexplained"), ledger["categories"]
    assert any("could not be read" in note for note in ledger["notes"])


def test_with_hidepid_the_own_programs_are_seen_as_ever(place: Place) -> None:
    inside = allowed("unshare", "--mount", "sh", "-c", HIDDEN, "sh", *WITHOUT_CAPABILITIES)
    ledger = explained(place, *SLEEPS, inside=inside, level="3")
    assert is_what_it_waited_for(ledger, "sleep"), ledger["categories"]


def test_a_program_that_proc_hides_altogether_still_ends_as_it_does(place: Place, unreadable: str) -> None:
    inside = allowed("unshare", "--mount", "sh", "-c", HIDDEN, "sh", *WITHOUT_CAPABILITIES)
    ledger = explained(place, unreadable, "0.3", inside=inside, level="3", code=0)
    assert is_what_it_waited_for(ledger, "unexplained"), ledger["categories"]
    assert any("could not be read" in note for note in ledger["notes"])


@pytest.mark.skipif(PERF_EVENT_OPEN < 0, reason="no number for the calls on this machine")
def test_where_nobody_may_attach_waits_are_reported_by_the_kernels_function_and_python_is_not_read(
    place: Place,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs a way to be without capabilities, and root has it")
    inside = allowed(*WITHOUT_CAPABILITIES)
    python = (sys.executable, "-I", "-S", "-c", "import sys, time; time.sleep(6); sys.exit(5)")
    # Each file that a scan opens is asked of this process: scans are slow, and the sleep is long.
    with attaching.refused() as before:
        ledger = explained(place, *python, inside=inside, level="3", preexec_fn=before)
    assert is_what_it_waited_for(ledger, "sleep"), ledger["categories"]
    assert any("kernel.yama.ptrace_scope" in note and "was used" in note for note in ledger["notes"])
    assert "kernel.yama.ptrace_scope" in ledger["python"]["refused"]


@pytest.mark.parametrize(
    ("asked", "code", "output", "says"),
    [
        (("--runs", "3"), 5, "shown\n", "Only 1 of 3 runs were possible: /dev/null cannot be opened"),
        (("--best-of", "3"), 2, "", "latlab: --best-of: the output of further runs goes to /dev/null"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_where_nothing_takes_the_output_of_a_further_run_there_is_none(
    place: Place, asked: tuple[str, ...], code: int, output: str, says: str
) -> None:
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    inside = allowed("unshare", *user, "--mount", "sh", "-c", WITHOUT_DEVICES, "sh")
    words = place.started_as("explain", "--level", "3", *asked, "--", "sh", "-c", "echo shown; exit 5")
    result = subprocess.run(
        [*inside, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=place.environment,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (code, output), result.stderr
    assert says in " ".join(result.stderr.split())


SHARED = """
import os, sys, time
shared = os.open(sys.argv[1], os.O_RDONLY)
child = os.fork()
# Both read as much, and the parent holds what the child reads: its own counters would allow for it.
source = os.open("/dev/zero", os.O_RDONLY) if child else shared
for _ in range(50):
    os.read(source, 1 << 16)
    time.sleep(0.008)
if child:
    os.waitpid(child, 0)
    sys.exit(5)
"""


@pytest.mark.skipif(KCMP < 0, reason="no number for the call on this machine")
def test_where_the_kernel_does_not_say_who_shares_a_position_its_bytes_count_once(
    place: Place, tmp_path: Path
) -> None:
    file = tmp_path / "shared"
    file.write_bytes(bytes(50 << 16))
    program = (sys.executable, "-I", "-S", "-c", SHARED, str(file))
    ledger = explained(place, *program, level="3", preexec_fn=lambda: refuse(KCMP, errno.EPERM))
    rows = [row for row in ledger["files"]["rows"] if row["name"] == str(file) and row.get("read")]
    # Nobody knows which of the two read them.
    assert 0 < sum(row["read"]["bytes"] for row in rows) <= 50 << 16
    assert ledger["files"]["by_position"]


TRAPS = """
import os, signal, sys, time
def stop(*_):
    # The signal may come while "ready" is still being printed, which cannot be interrupted by printing.
    os.write(1, b"stopped by hand")
    sys.exit(9)
signal.signal(signal.SIGINT, stop)
print("ready", flush=True)
time.sleep(30)
"""


@pytest.mark.parametrize(
    ("program", "code"),
    [(TRAPS, 9), ("print('ready', flush=True)\nimport time\ntime.sleep(30)", 128 + signal.SIGINT)],
    ids=["that ends in its own way", "that is ended by it"],
)
def test_ctrl_c_at_a_terminal_goes_to_the_program_and_what_was_seen_is_reported(
    place: Place, program: str, code: int
) -> None:
    # The second program must die of the signal, not of Python's exception.
    plain = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n" if code > 128 else ""
    python = (sys.executable, "-I", "-S", "-c", plain + program)
    words = place.started_as("explain", "--level", "3", "--", *python)
    child, terminal = pty.fork()
    if child == 0:
        os.execve(words[0], words, place.environment)
    said = b""
    typed = False
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # Linux says so when nobody has the terminal any more.
            break
        if not piece:
            break
        said += piece
        if not typed and b"ready" in said:
            typed = True
            os.write(terminal, b"\x03")
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == code, said
    assert b" spends " in said
    assert (b"stopped by hand" in said) == (code == 9)
