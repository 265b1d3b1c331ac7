"""Peers for the disk: fio with the same engine on the same file or its like, and pg_test_fsync."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from peers.lines import DIRECTORY, FILE, Kind, Line, Record, mean, median

KIB = 1 << 10
MIB = 1 << 20
FILE_BYTES = 1 << 30
"""Of the file that both read, and that fio writes: as many as latlab's own in the standard profile."""
WRITTEN_MIB = 96
"""What a point of storage.write.sequential writes at most in the standard profile."""
PART_MIB = 200
"""Of the file for each size of block that fio writes: none overwrites what another one wrote."""
WRITTEN = f"{FILE}.written"
"""What fio overwrites: not the file that both read, which latlab would read after fio had written into it."""
PG_TEST_FSYNC = "pg_test_fsync"


def fio(cpu: int, verb: str, *more: str, seconds: float = 0.6, part: int | None = None) -> list[str]:
    """The words that all commands of fio have in common; its `lat` is the time from submission to end.

    With `part`, only that part of the file is used, which no other part's command touches.
    """
    span = "--size=1g" if part is None else f"--offset={part * PART_MIB}m --size={PART_MIB}m"
    name = FILE if "read" in verb else WRITTEN
    same = f"--name=latlab --filename={name} {span} --rw={verb} --cpus_allowed={cpu} --randrepeat=0"
    # As many bytes as latlab writes at a point: the more is written, the slower a virtual disk becomes.
    most = "--time_based" if "read" in verb else f"--io_size={WRITTEN_MIB}m"
    timed = f"{most} --runtime={round(seconds * 1000)}ms"
    reported = "--lat_percentiles=1 --clat_percentiles=0 --output-format=json --disk_util=0"
    # What is there is overwritten: no room is found, no reserved range is filled.
    laid_out = ["--readonly"] if "read" in verb else ["--overwrite=1", "--refill_buffers"]
    return ["fio", *same.split(), *laid_out, *more, *timed.split(), *reported.split()]


def writes(command: list[str]) -> bool:
    """Whether a command of fio's overwrites its file."""
    return any(word.startswith("--rw=") and word.endswith("write") for word in command)


def job(text: str) -> dict[str, Any]:
    """The one job of fio's JSON, which may follow a line of notes."""
    (only,) = json.loads(text[text.index("{") :])["jobs"]
    if only["error"]:
        raise ValueError(f"fio met error {only['error']}")
    found: dict[str, Any] = only
    return found


def fio_latency(side: str, percentile: float) -> Callable[[str], float]:
    """A quantile of fio's `lat`, ns; `side` is read, write or sync."""

    def read(text: str) -> float:
        return float(job(text)[side]["lat_ns"]["percentile"][f"{percentile:.6f}"])

    return read


def fio_rate(side: str) -> Callable[[str], float]:
    """Operations a second."""

    def read(text: str) -> float:
        own = job(text)[side]
        return float(own["total_ios"]) * 1e3 / float(own["runtime"])

    return read


def pg_ns(method: str) -> Callable[[str], float]:
    """pg_test_fsync's ns an operation of one way, in the first of its tables: one write of 8 KiB."""
    reported = re.compile(rf"^\s+{method}\s+(\d+\.\d+) ops/sec", re.MULTILINE)

    def read(text: str) -> float:
        found = reported.search(text)
        if found is None:
            raise ValueError(f"pg_test_fsync printed nothing of {method}")
        # The rate has seven digits, the time beside it three.
        return 1e9 / float(found[1])

    return read


def quantile(name: str) -> Callable[[Record], float]:
    """A quantile of latlab's operations, ns."""

    def read(record: Record) -> float:
        summary = record["summary"]
        value = summary.get(name)
        if value is None:
            raise ValueError(f"too few operations for {name}: {summary.get('refused', {}).get(name)}")
        return float(value)

    return read


def rate(record: Record) -> float:
    """Latlab's operations a second, while the depth was kept."""
    return float(record["findings"]["rate_per_s"])


def channel_median(name: str) -> Callable[[Record], float]:
    """Median of a part of latlab's operation, ns."""

    def read(record: Record) -> float:
        (own,) = [channel for channel in record["channels"] if channel["name"] == name]
        return float(own["summary"]["p50"])

    return read


SIZES = {"4 KiB": 4 * KIB, "64 KiB": 64 * KIB, "1 MiB": MIB, "16 MiB": 16 * MIB}


def block_lines(cpu: int) -> list[Line]:
    """Direct transfers from front to back, one at a time: median with median."""
    return [
        Line(
            f"{verb} {name}",
            fio(
                cpu,
                verb,
                *("--direct=1", "--ioengine=psync", f"--bs={size}"),
                part=None if verb == "read" else number,
            ),
            fio_latency(verb, 50),
            {"block_bytes": size, "path": "direct"},
            median,
            0.10,
            probe=f"storage.{verb}.sequential",
        )
        for verb in ("read", "write")
        for number, (name, size) in enumerate(SIZES.items())
    ]


def random_lines(cpu: int) -> list[Line]:
    """Random 4 KiB: one at a time by system calls, 32 at a time by io_uring."""
    lines = []
    for verb in ("read", "write"):
        block = ["--direct=1", "--bs=4k"]
        one = fio(cpu, f"rand{verb}", *block, "--ioengine=psync", seconds=0.6)
        many = fio(cpu, f"rand{verb}", *block, "--ioengine=io_uring", "--iodepth=32", seconds=0.6)
        alone = {"block_bytes": 4 * KIB, "queue_depth": 1, "engine": "psync"}
        deep = {"block_bytes": 4 * KIB, "queue_depth": 32, "engine": "io_uring"}
        probe = f"storage.{verb}.random"
        lines += [
            Line(f"{verb}, depth 1, p50", one, fio_latency(verb, 50), alone, median, 0.05, probe),
            Line(f"{verb}, depth 1, p99", one, fio_latency(verb, 99), alone, quantile("p99"), 0.15, probe),
            Line(f"{verb}, depth 32", many, fio_rate(verb), deep, rate, 0.10, probe, "/s"),
        ]
    return lines


def sync_lines(cpu: int) -> list[Line]:
    """Overwrite and sync: fio's sync alone, medians; pg_test_fsync's write and sync, means."""
    over = ["--direct=0", "--ioengine=psync", "--bs=4k", "--size=4m"]
    # Its first tests are those that are compared; it takes one second for each at least.
    postgres = ["timeout", "-s", "INT", "3.6", "taskset", "-c", str(cpu), PG_TEST_FSYNC]
    postgres += ["-s", "1", "-f", f"{FILE}.pg"]
    lines = [
        Line(
            f"{sync}, the sync alone, median",
            fio(cpu, "write", *over, f"--{sync}=1", seconds=0.6),
            fio_latency("sync", 50),
            {"operation": "overwrite", "sync": sync},
            channel_median("sync"),
            0.10,
        )
        for sync in ("fdatasync", "fsync")
    ]
    lines += [
        Line(
            f"write and {sync}, mean",
            postgres,
            pg_ns(sync),
            {"operation": "overwrite", "sync": sync},
            mean,
            0.10,
        )
        for sync in ("fdatasync", "fsync")
    ]
    return lines


KINDS: dict[str, Kind] = {
    "blocks": Kind(
        "fio",
        "storage.read.sequential,storage.write.sequential",
        block_lines,
        "µs",
        runs=(
            ("--only", "storage.read.sequential", "--file", FILE),
            ("--only", "storage.write.sequential", "--dir", DIRECTORY),
        ),
    ),
    "random": Kind(
        "fio",
        "storage.read.random,storage.write.random",
        random_lines,
        "µs",
        runs=(
            ("--only", "storage.read.random", "--file", FILE),
            ("--only", "storage.write.random", "--dir", DIRECTORY),
        ),
    ),
    "sync": Kind(
        "peer",
        "storage.sync",
        sync_lines,
        "µs",
        runs=(("--only", "storage.sync", "--dir", DIRECTORY),),
        needs=("fio", PG_TEST_FSYNC),
    ),
}
