"""A measuring process that the kernel really ends at a memory limit: the run goes on and says so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests import calling
from tests.some import some

if TYPE_CHECKING:
    from tests.robust.conftest import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs control groups"),
]

LIMIT_BYTES = 256 << 20
GREEDY = """
import contextlib, os, sys, time
# There has to be room again before the next measuring process begins, however busy the machine is.
with contextlib.suppress(PermissionError):
    os.nice(-20)
held, counts = [], open(sys.argv[2])
while True:
    held.append(b"x" * (1 << 20))
    time.sleep(0.001)
    counts.seek(0)
    if int(counts.read().split("oom_kill ")[1].split()[0]) > 0:
        # Giving all of it back takes longer than a new measuring process does to begin.
        open(sys.argv[3], "w").write(str(1 << 30))
        break
    if len(held) == int(sys.argv[1]):
        time.sleep(600)
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with a memory limit, of either version."""
    name = f"latlab-test-{os.getpid()}"
    for parent, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        made = parent / name
        try:
            made.mkdir()
        except OSError:
            continue
        try:
            (made / limit).write_text(str(LIMIT_BYTES))
        except OSError:
            made.rmdir()
            continue
        yield made
        for _ in range(1000):
            try:
                made.rmdir()
            except OSError:
                # Until its last process is gone.
                time.sleep(0.01)
            else:
                return
    pytest.skip("no control group with a memory limit can be made here")


def test_a_measuring_process_ended_by_the_limit_is_a_record_and_the_run_goes_on(
    place: Place, group: Path
) -> None:
    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    # One that holds memory, and one that waits most of the time.
    only = "kernel.timer,memory.load.dependent"
    process = place.start("measure", "--only", only, "--budget", "4", "--no-report", preexec_fn=enter)
    place.until_lines(process, 2)
    # The measuring process has asked to go first. Whoever takes the rest of the memory makes it go.
    version = ("memory.oom_control", "memory.limit_in_bytes"), ("memory.events", "memory.max")
    files = next(names for names in version if (group / names[0]).exists())
    own = (str(group / name) for name in files)
    words = [sys.executable, "-c", GREEDY, str(2 * LIMIT_BYTES >> 20), *own]
    with subprocess.Popen(words, preexec_fn=enter) as greedy:  # noqa: PLW1509 - there are no threads here
        place.until(process, place.deaths)
        greedy.kill()
    result = place.ended(process)
    assert result.returncode == 0, result.stderr
    title = calling.warning(result, place.lines()[0]["doctor"], "memory-limit")
    assert "may be used (the control group's limit)" in title
    assert place.lines()[-1]["stopped_by"] == "completed"
    # Its successor may be ended too.
    assert "memory limit" in some(place.deaths())[0]
    assert "memory limit" in " ".join(place.shown().split())
    assert place.left() == []


def test_within_the_limit_nothing_dies_and_the_limit_is_named(place: Place, group: Path) -> None:
    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    arguments = ("--only", "memory.load.dependent,memory.poke", "--budget", "3", "--no-report")
    result = place.run("measure", *arguments, preexec_fn=enter)
    assert result.returncode == 0, result.stderr
    title = calling.warning(result, place.lines()[0]["doctor"], "memory-limit")
    assert "of memory may be used (the control group's limit)" in title
    assert not place.deaths()
    peak = next(
        path for path in (group / "memory.max_usage_in_bytes", group / "memory.peak") if path.exists()
    )
    assert int(peak.read_text()) < LIMIT_BYTES // 4 + (128 << 20)


def test_the_disk_is_measured_within_the_limit_and_nothing_dies(
    place: Place, group: Path, tmp_path: Path
) -> None:
    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    # What the page cache holds counts against the limit: the kernel takes it back as it is needed.
    words = (
        "--profile",
        "quick",
        "--only",
        "storage.*",
        "--dir",
        str(tmp_path),
        "--no-report",
        "--budget",
        "4",
    )
    result = place.run("measure", *words, preexec_fn=enter)
    assert result.returncode == 0, result.stderr
    assert place.lines()[-1]["stopped_by"] == "completed"
    assert not place.deaths()
    if "tmpfs" not in place.shown():
        assert any(line.get("kind") == "per_op" for line in place.lines())
    assert place.left() == []
