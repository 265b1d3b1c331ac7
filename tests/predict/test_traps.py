"""Ten traps: no figure, or the right case; set on this machine where that can be done."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.golden.cases import FILES

from latlab.predict import Prediction, Step, asked, memory_of, parsed, planned, refuse
from latlab.predict.job import Options
from latlab.run.core import describe
from latlab.run.machine import Machine
from latlab.run.run import Run, load

COLD = Options(cache="cold")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A kept run, as if it had measured this machine, on the disk of this test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    own = load(FILES["standard"])
    machine = describe(str(tmp_path)).machine
    if machine.flag("dir.file_system.in_memory"):
        pytest.skip("the temporary folder is in memory")
    return Run(msgspec.structs.replace(own.header, machine=machine), own.records, own.footer)


def answer(run: Run, *words: str, options: Options = COLD, directory: Path | None = None) -> Prediction:
    job, place = parsed(words, options)
    return asked(job, run, str(directory) if directory else None, place)


def why(found: Prediction) -> str:
    assert not found.branches
    assert found.refused is not None
    assert found.refused.lifted_by
    return found.refused.why


def another(run: Run, change: Callable[[dict[str, Any]], object]) -> Run:
    """The run of a machine that was otherwise than this one is."""
    fields = copy.deepcopy(dict(run.machine._fields))
    change(fields)
    return Run(msgspec.structs.replace(run.header, machine=Machine(fields)), run.records, run.footer)


def test_without_a_trap_there_is_an_answer(run: Run, tmp_path: Path) -> None:
    assert answer(run, "read", "3GB", directory=tmp_path).branches


@pytest.fixture
def group() -> Iterator[Path]:
    """A cgroup of 64 MiB, which this user may make, or none."""
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")):
        own = root / f"latlab-test-{os.getpid()}"
        try:
            own.mkdir()
        except OSError:
            continue
        try:
            limit = next(
                (own / name for name in ("memory.max", "memory.limit_in_bytes") if (own / name).exists()),
                None,
            )
            if limit is not None:
                limit.write_text(str(64 << 20))
                yield own
                return
        finally:
            own.rmdir()
    pytest.skip("no memory cgroup can be made here")


def test_a_cgroup_smaller_than_the_file(run: Run, group: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.latlab.jsonl"
    run.save(file)
    script = (
        "import os, sys; open(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid())); "
        "sys.argv[0:2] = ['latlab']; from latlab.cli.main import main; main()"
    )
    words = ["predict", "read", "1GB", "--run", str(file)]
    done = subprocess.run(
        [sys.executable, "-c", script, str(group), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "cgroup's memory limit: none then, 64 MiB now" in " ".join(done.stdout.split())


def test_memory_that_looks_like_a_disk(run: Run) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no file system in memory here")
    assert "which is memory, not a disk" in why(
        answer(run, "write", "1GB", options=Options(), directory=Path("/dev/shm"))
    )


def test_a_sparse_file(run: Run, tmp_path: Path) -> None:
    with (tmp_path / "holes").open("wb") as opened:
        opened.truncate(1 << 30)
    assert "holes" in why(answer(run, "read", str(tmp_path / "holes")))


def test_a_file_larger_than_memory_is_not_taken_for_cached(run: Run) -> None:
    total = run.machine.integer("dir.file_system.total_bytes") or 0
    size = 2 * memory_of(run.machine)
    if size > total:
        pytest.skip("memory is larger than the disk")
    assert "cannot be in the page cache" in why(
        answer(run, "read", str(size), options=Options(cache="cached"))
    )
    (only,) = answer(run, "read", str(size), options=Options()).branches
    assert only.parts[0].name == "reading from the disk"


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "cifs"])
def test_a_file_system_behind_a_network(run: Run, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    here = another(run, lambda machine: machine["dir"]["file_system"].update(kind=kind)).header
    monkeypatch.setattr("latlab.predict.describe", lambda _: here)
    assert "a server or a program answers there" in why(answer(run, "read", "3GB"))


def test_a_disk_that_was_throttled_after_two_gigabytes(run: Run) -> None:
    record = next(own for own in run.records if own.probe == "storage.read.sequential" and own.summary)
    slow = msgspec.structs.replace(
        record,
        probe="storage.steady",
        point=msgspec.structs.replace(record.point, operation="read", path="direct"),
        work=msgspec.structs.replace(record.work, bytes=2 << 30),
        findings={"slices": [2e9] * 4 + [1e8] * 12, "slice_s": 0.25},
    )
    probed = Run(run.header, (*run.records, slow), run.footer)
    assert "the disk slowed down" in why(answer(probed, "read", "9GB"))


def test_two_jobs_at_once(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job, _ = parsed(["read", "3GB"], COLD)
    (alone,) = asked(job, run).branches
    (both,) = planned([Step((job, job), at_once=True)], run).branches
    assert both.range.middle > alone.range.middle
    # Of another program's job nobody told.
    (tmp_path / "io").write_text("some avg10=80.00 avg60=10.00 avg300=1.00 total=1\n")
    monkeypatch.setattr(refuse, "_PRESSURE", tmp_path / "io")
    assert "other programs wait for a disk" in why(answer(run, "read", "3GB"))


def test_a_machine_on_its_battery(run: Run) -> None:
    before = another(run, lambda machine: machine["cpu"].update(power_source="mains (then)"))
    assert "power source: mains (then) then" in why(answer(before, "read", "3GB"))


def test_a_run_of_another_machine(run: Run) -> None:
    theirs = another(run, lambda machine: machine["cpu"].update(model_name="Another CPU"))
    assert "the run is of another machine (CPU: Another CPU then" in why(answer(theirs, "read", "3GB"))


def test_an_older_kernel(run: Run) -> None:
    before = another(run, lambda machine: machine["os"].update(kernel_release="4.19.0"))
    assert "kernel: 4.19.0 then" in why(answer(before, "syscalls", "1000", options=Options()))
