"""The commands for those who doubt: made of fixed words and numbers, and the same work as the point's."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.some import some

from latlab.run import fio
from latlab.run.model import Point
from latlab.run.run import Run

CASES = {
    "random read at depth 1": (
        "storage.read.random",
        Point(block_bytes=4096, queue_depth=1, path="direct", engine="psync"),
        "fio --name=latlab --filename=FILE --readonly --rw=randread --bs=4k --direct=1 --ioengine=psync"
        " --norandommap --randrepeat=0 --time_based --runtime=10",
    ),
    "cold read": (
        "storage.read.sequential",
        Point(block_bytes=1 << 20, path="buffered-cold", engine="psync"),
        "fio --name=latlab --filename=FILE --readonly --rw=read --bs=1m --direct=0 --invalidate=1"
        " --ioengine=psync",
    ),
    "write with a flush each": (
        "storage.write.sequential",
        Point(block_bytes=512, path="buffered-fsync-each", engine="psync"),
        "fio --name=latlab --filename=FILE --rw=write --bs=512 --direct=0 --fsync=1 --ioengine=psync"
        " --overwrite=1 --size=1g --refill_buffers --time_based --runtime=10",
    ),
    "steady": (
        "storage.steady",
        Point(block_bytes=1 << 20, operation="read", path="direct", engine="psync"),
        "fio --name=latlab --filename=FILE --readonly --rw=read --bs=1m --direct=1 --ioengine=psync"
        " --time_based --runtime=20 --write_bw_log=steady --log_avg_msec=250",
    ),
    "rate": (
        "storage.rate",
        Point(rate_per_s=100, block_bytes=4096, path="direct", engine="io_uring"),
        "fio --name=latlab --filename=FILE --readonly --rw=randread --bs=4k --direct=1 --ioengine=io_uring"
        " --iodepth=64 --rate_iops=100 --rate_process=poisson --norandommap --randrepeat=0 --time_based"
        " --runtime=10",
    ),
}


@pytest.mark.parametrize(("probe", "point", "command"), CASES.values(), ids=CASES.keys())
def test_a_point_has_the_command_that_does_the_same(probe: str, point: Point, command: str) -> None:
    assert fio.command(probe, point) == command


def test_threads_stand_in_for_io_uring_where_it_was_not_used() -> None:
    point = Point(block_bytes=4096, queue_depth=8, path="direct", engine="threads")
    command = fio.command("storage.read.random", point)
    assert command is not None
    assert "--ioengine=psync --thread --numjobs=8" in command


@pytest.mark.parametrize(
    ("probe", "point"),
    [
        ("storage.poke", Point(file_bytes=0, path="buffered-warm", operation="read-write")),
        ("storage.files", Point(files=1000, file_bytes=10_000, operation="write", engine="python")),
        ("storage.reread", Point(file_bytes=1000, operation="kept")),
        ("storage.sync", Point(operation="overwrite", sync="f_fullfsync")),
        ("memory.poke", Point(working_set_bytes=1000)),
    ],
)
def test_what_fio_cannot_do_has_no_command(probe: str, point: Point) -> None:
    assert fio.command(probe, point) is None


def test_no_word_of_a_run_file_becomes_part_of_a_command() -> None:
    bad = "direct; rm -rf ~"
    for probe in ("storage.read.sequential", "storage.sync", "storage.poke", "storage.read.random"):
        point = Point(block_bytes=4096, file_bytes=1, path=bad, sync=bad, operation=bad, engine=bad)
        assert "rm" not in (fio.command(probe, point) or "")


def test_only_commands_that_say_so_write_and_reads_cannot(run: Run) -> None:
    readers = {"storage.read.sequential", "storage.read.random", "storage.rate"}
    commands = [fio.command(record.probe, record.point) for record in run.records if record.probe in readers]
    for command in some(filter(None, commands)):
        assert "--readonly" in command


def test_fio_itself_understands_every_command(run: Run, tmp_path: Path) -> None:
    program = shutil.which("fio")
    if program is None:
        pytest.skip("needs fio")
    (tmp_path / "DIR").mkdir()
    (tmp_path / "FILE").write_bytes(bytes(4096))
    commands = {fio.command(r.probe, r.point) for r in run.records if r.probe.startswith("storage.")} - {None}
    assert len(commands) > 60
    jobs = [shlex.split(command or "") for command in commands]
    assert all(words[:2] == ["fio", "--name=latlab"] for words in jobs)
    # A name begins another job, so one process reads them all; --readonly is for all jobs of a process.
    for options in ([], ["--readonly"]):
        own = [words[1:] for words in jobs if ("--readonly" in words) == bool(options)]
        assert own
        words = [
            "fio",
            "--parse-only",
            *options,
            *(word for job in own for word in job if word != "--readonly"),
        ]
        result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (0, ""), result.stderr
