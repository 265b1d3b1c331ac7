"""Workers without disk space or memory: their hosts fail with a reason that says so, the survey goes on."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fleet import faults, loops
from tests.fleet.conftest import HOSTS, Fleet, children, worker_process

from latlab.fleet import agent, survey

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0, reason="mounts file systems and makes control groups"
    ),
    # Dask closes its sockets when they are collected.
    pytest.mark.filterwarnings("ignore"),
]


@contextlib.contextmanager
def small(folder: Path, options: str) -> Iterator[None]:
    """A file system that is soon full."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> None:
    """Takes all of its bytes, or all of its names."""
    with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    with contextlib.suppress(OSError):
        for number in range(10_000):
            (folder / f"filler-{number}").touch()


def reason_of_the_last(fleet: Fleet) -> str:
    """Why the host of the real worker failed; the others are as ever."""
    found = survey(fleet.client, only="kernel.syscall", budget=2).as_json()
    verdicts = {own["name"]: own["verdict"] for own in found["hosts"]}
    assert verdicts == {**{f"node{number}": "ok" for number in range(HOSTS)}, "alone": "failed"}
    reason: str = found["hosts"][-1]["reason"]
    return reason


@pytest.mark.parametrize("options", ["size=256k", "size=256k,nr_inodes=64"])
def test_a_full_disk_is_the_reason(fleet: Fleet, options: str) -> None:
    folder = fleet.folder / "alone"
    with small(folder, options), worker_process(fleet, HOSTS) as process:
        fill(folder)
        reason = reason_of_the_last(fleet)
        assert reason.startswith(f"the disk of {folder}")
        assert reason.endswith(": No space left on device")
        assert children(process.pid) == []
        assert not list(folder.rglob("latlab-*"))


def test_too_little_memory_is_the_reason_and_the_worker_lives_on(fleet: Fleet) -> None:
    with faults.limited("memory", {}, []) as group:
        enter = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"))
        with worker_process(fleet, HOSTS, *enter) as process:
            # What the worker itself needs for a survey it takes before.
            survey(fleet.client, only="kernel.syscall", budget=2)
            for used, limit in (
                ("memory.usage_in_bytes", "memory.limit_in_bytes"),
                ("memory.current", "memory.max"),
            ):
                if (group / used).exists():
                    (group / limit).write_text(str(int((group / used).read_text()) + (8 << 20)))
            assert "memory limit" in reason_of_the_last(fleet)
            assert process.poll() is None
            assert children(process.pid) == []


@pytest.mark.skipif(not shutil.which("prlimit"), reason="needs prlimit")
@pytest.mark.parametrize("mib", [24, 40])
def test_too_little_address_space_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mib: int
) -> None:
    whole = agent.command
    monkeypatch.setattr(agent, "command", lambda module: ["prlimit", f"--as={mib << 20}", *whole(module)])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    asked: dict[str, object] = {"only": "kernel.syscall", "budget": 2, "profile": "quick"}
    answer = loops.run(agent.measure(asked, 60.0, "name"))
    assert "memory" in answer["failed"]
    assert not list(tmp_path.glob("latlab-survey-*"))
