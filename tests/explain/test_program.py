"""One run of a program: what it took, why it failed, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from latlab.explain.program import ProgramError, Ran, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it waits by a pidfd")


def python(program: str, *, longest_s: float | None = None) -> Ran:
    return run([sys.executable, "-I", "-S", "-c", program], {"OWN": "1"}, longest_s=longest_s)


def ends(pid: int) -> bool:
    """Whether this process ends: it was killed, which takes a moment."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
        except OSError:
            return True
        # Nobody may wait for it.
        if stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.001)
    return False


def test_its_time_faults_and_memory_are_those_of_the_program() -> None:
    ran = python("import time; held = bytearray(200 << 20); held[::4096] = bytes(51_200); time.sleep(0.05)")
    assert ran.wall_s >= ran.start_s + 0.05
    assert ran.cpu_s > 0
    assert ran.page_faults >= 51_200
    assert ran.memory_bytes >= 200 << 20


def test_what_its_children_took_is_counted(tmp_path: Path) -> None:
    alone = python("pass").page_faults
    child = "import os; os.fork() or bytearray(50 << 20).__setitem__(slice(None, None, 4096), bytes(12_800))"
    waits = "; os.wait() if os.getpid() == os.getsid(0) else None"
    assert python(child + waits).page_faults >= alone + 12_800


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit(3)", "ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("import sys; sys.exit('first\\nno\\x1b file')", "ended with exit code 1; it said: no\\x1b file"),
        ("import sys; sys.exit(f'{1:01000000}\\nlast\\n')", "ended with exit code 1; it said: last"),
    ],
)
def test_a_program_that_fails_says_how_and_why(program: str, words: str) -> None:
    with pytest.raises(ProgramError) as failed:
        python(program)
    assert str(failed.value) == words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/nowhere/none"], "cannot be started: No such file or directory"),
        (["/"], "cannot be started: Permission denied"),
        (["a\0b"], "cannot be started: embedded null byte"),
    ],
)
def test_what_cannot_be_started_says_why(arguments: list[str], words: str) -> None:
    with pytest.raises(ProgramError, match=words):
        run(arguments, {})


def test_a_program_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = (
        f"import os, time; os.fork(); open({str(pids)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    )
    with pytest.raises(ProgramError, match="took more than its time"):
        python(program, longest_s=1.0)
    known = [int(pid) for pid in pids.read_text(encoding="ascii").split()]
    assert known
    assert all(map(ends, known))


def test_what_a_program_leaves_in_its_group_is_killed_and_does_not_delay_its_end(tmp_path: Path) -> None:
    left = tmp_path / "left"
    program = f"""
import os, time
if os.fork() == 0:
    open({str(left)!r}, 'w').write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists({str(left)!r}) or not os.path.getsize({str(left)!r}):
    time.sleep(0.001)
"""
    assert python(program).wall_s < 600
    assert ends(int(left.read_text(encoding="ascii")))


def test_an_interrupt_kills_the_program(tmp_path: Path) -> None:
    own = tmp_path / "own"
    program = f"import os, time; open({str(own)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    def interrupt() -> None:
        while not own.exists() or not own.stat().st_size:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        python(program)
    thread.join()
    assert ends(int(own.read_text(encoding="ascii")))


def test_its_environment_is_what_it_was_given_and_no_descriptor_is_left_open() -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    python("import os, sys; sys.exit(os.environ.get('OWN') != '1' or 'PATH' in os.environ)")
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_an_interrupt_at_its_start_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen.__init__

    def interrupted(running: subprocess.Popen[bytes], *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - its own
        start(running, *arguments, **options)
        started.append(running)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess.Popen, "__init__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        python("import time; time.sleep(600)")
    assert [running.returncode for running in started] == [-signal.SIGKILL]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
