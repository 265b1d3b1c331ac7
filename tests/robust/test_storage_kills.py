"""kill -9 under all probes of the disk: no file, no directory, no used block and no process stays."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.robust.conftest import BRIEF, PAUSE_S

if TYPE_CHECKING:
    import subprocess

    from tests.robust.conftest import Disk, Place

SHORT = ("measure", "--profile", "quick", "--only", "storage.*", "--no-report", "--budget", "5")
WHOM = ("all of it", "the measuring process", "the command")
PATIENCE_S = 60.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
    # Each is three runs, and what is looked at after them.
    pytest.mark.timeout(300),
]


def of_session(session: int) -> list[int]:
    """The living processes of a session, whoever their parent is now."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            # Of proc(5): state, and the session.
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def no_process_is_left(session: int) -> bool:
    end = time.monotonic() + PATIENCE_S
    while of_session(session):
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE_S)
    return True


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def kill(place: Place, process: subprocess.Popen[str], whom: str) -> None:
    """Kills what is running; whoever has ended already is missed here."""
    if whom == "all of it":
        os.killpg(process.pid, signal.SIGKILL)
    elif whom == "the command":
        process.kill()
    else:
        (worker,) = place.workers(process)
        os.kill(worker, signal.SIGKILL)


def killed_at(place: Place, directory: Path, moment: str, check: Callable[[], bool]) -> None:
    """Kills each of them at that moment; `check` says whether all is as it was then."""
    for whom in WHOM:
        process = place.start(*SHORT, "--dir", str(directory), start_new_session=True)
        if moment == "a folder":
            place.until(process, lambda: any(directory.glob(".latlab-*-*/lock")))
        else:
            place.until_lines(process, 3)
        kill(place, process, whom)
        result = place.ended(process)
        assert result.returncode == (0 if whom == "the measuring process" else -signal.SIGKILL), result.stderr
        assert no_process_is_left(process.pid), whom
        if whom == "the measuring process":
            # Whoever watched it is alive: it has swept, and the run went on.
            assert len(place.deaths()) == 1
            assert "fault" not in result.stderr
        else:
            result = place.called(*BRIEF, "--dir", str(directory), "--out", "next.latlab.jsonl")
            assert result.returncode == 0, result.stderr
            (place.root / "here/next.latlab.jsonl").unlink()
        assert check(), f"{whom}: {names_in(directory)}"
        assert place.left() == []
        (file,) = place.run_files
        assert place.called("show", str(file)).returncode == 0
        file.unlink()


def test_kill_9_leaves_no_file_no_block_and_no_inode_on_a_file_system(
    place: Place, disks: Callable[..., Disk]
) -> None:
    place.plant()
    disk = disks()
    killed_at(place, disk.path, "a folder", disk.nothing_is_left)


def test_kill_9_leaves_what_was_there_in_a_directory_of_the_users(place: Place) -> None:
    directory = place.root / "here"
    words = ("measure", "--only", "storage.poke", "--budget", "1", "--no-report")
    result = place.called(*words, "--dir", str(directory))
    if result.returncode != 0 or "tmpfs" in place.shown():
        pytest.skip("no disk can be measured where temporary files are")
    place.forget_runs()
    place.plant()
    before = names_in(directory)
    killed_at(place, directory, "a record", lambda: names_in(directory) == before)
