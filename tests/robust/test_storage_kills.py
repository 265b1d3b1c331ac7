"""kill -9 under all probes of the disk: no file, no directory, no used block and no process stays.

Three die in a few seconds of a short run. `LATLAB_KILLS=100` kills so many whole ones, at any moment of them.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess

    from tests.robust.conftest import Disk, Place

MANY = int(os.environ.get("LATLAB_KILLS", "0"))
KILLS = MANY or 3
RUN = ("measure", "--profile", "quick", "--only", "storage.*", "--no-report")
SHORT = (*RUN, "--budget", "3")
NEXT_START = ("measure", "--only", "clock.read", "--budget", "1", "--no-report")
WHOM = ("all of it", "the measuring process", "the command")
PATIENCE_S = 60.0

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
    # Each is a run, and what is looked at after it.
    pytest.mark.timeout(60 * max(KILLS, 5)),
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
        time.sleep(0.01)
    return True


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def kill(place: Place, process: subprocess.Popen[str], whom: str) -> bool:
    """Kills; says whether it was there to be killed."""
    try:
        if whom == "all of it":
            os.killpg(process.pid, signal.SIGKILL)
        elif whom == "the command":
            process.kill()
        else:
            workers = place.workers(process)
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            return bool(workers)
    except ProcessLookupError:
        return False
    return True


def wait_for_a_folder(process: subprocess.Popen[str], directory: Path) -> None:
    """Until files with names are measured: at most a tenth of a run, and what is most likely left."""
    while process.poll() is None and not any(directory.glob(".latlab-*")):
        time.sleep(0.001)


def at_random_moments(place: Place, directory: Path, check: Callable[[], bool]) -> dict[str, int]:
    """Kills again and again; `check` says whether all is as it was. Returns what was met."""
    dice = random.Random(os.environ.get("LATLAB_KILLS_SEED", "a"))
    met = dict.fromkeys((*WHOM, "a folder was there", "it was done before"), 0)
    words = RUN if MANY else SHORT
    for number in range(KILLS):
        whom = WHOM[number % len(WHOM)]
        process = place.start(*words, "--dir", str(directory), start_new_session=True)
        if dice.random() < (0.25 if MANY else 0.5):
            wait_for_a_folder(process, directory)
            time.sleep(dice.uniform(0.0, 0.3))
        else:
            time.sleep(dice.uniform(0.0, 8.5) if MANY else dice.uniform(0.4, 2.4))
        met["a folder was there"] += any(directory.glob(".latlab-*"))
        met[whom if kill(place, process, whom) else "it was done before"] += 1
        told = place.ended(process)
        assert no_process_is_left(process.pid), f"kill {number} ({whom})"
        left = names_in(directory)
        assert [name for name in left if not name.startswith(".latlab-") and name != "lost+found"] == []
        if whom == "the measuring process":
            # Whoever watched it is alive: it has swept, and the run went on.
            assert told.returncode in {0, 1}, told.stderr
            assert "fault" not in told.stderr
        elif any(name.startswith(".latlab-") for name in left):
            told = place.run(*NEXT_START, "--dir", str(directory))
            assert told.returncode == 0, told.stderr
        assert check(), f"kill {number} ({whom}): {names_in(directory)}"
        if not place.run_files:
            continue
        assert place.left() == []
        for file in place.run_files:
            shown = place.run("show", str(file))
            cut_short_in_its_header = shown.returncode == 1 and "header" in shown.stderr
            assert shown.returncode == 0 or cut_short_in_its_header, shown.stderr
            file.unlink()
    return met


def test_kill_9_leaves_no_file_no_block_and_no_inode_on_a_file_system(
    place: Place, disks: Callable[..., Disk]
) -> None:
    disk = disks()
    met = at_random_moments(place, disk.path, disk.nothing_is_left)
    print(met)
    assert sum(met[whom] for whom in WHOM) > 0


def test_kill_9_leaves_nothing_in_a_directory_of_the_users(place: Place) -> None:
    directory = place.root / "here"
    words = ("measure", "--only", "storage.poke", "--budget", "1", "--no-report")
    told = place.run(*words, "--dir", str(directory))
    if told.returncode != 0 or "tmpfs" in place.shown():
        pytest.skip("no disk can be measured where temporary files are")
    place.forget_runs()
    at_random_moments(place, directory, lambda: names_in(directory) == [])
