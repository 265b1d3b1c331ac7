"""A Dask cluster of six hosts that measure nothing, in this process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest
import zstandard
from tests.fleet import loops
from tests.fleet.files import run_of

from latlab.fleet import agent

HOSTS = 6
#: Instead of measuring: the file that the test laid out for the worker whose folder this is.
FAKE = """
import os, sys
folder = os.path.dirname(sys.argv[1])
with open(os.path.join(folder, "answer"), "rb") as file:
    sys.stdout.buffer.write(file.read())
with open(os.path.join(folder, "asked"), "a") as file:
    file.write("x")
"""


class Fleet:
    """A scheduler and its workers in this process, each on an address of its own, as hosts of one machine."""

    def __init__(self, folder: Path, forbidden: dict[str, list[str]]) -> None:
        self.folder = folder
        blocked = {f"distributed.{where}.blocked-handlers": names for where, names in forbidden.items()}
        with distributed.dask.config.set(blocked | {"distributed.comm.timeouts.connect": "5s"}):
            self.cluster = distributed.SpecCluster(
                workers={number: self.spec(number) for number in range(HOSTS)},
                scheduler={
                    "cls": distributed.Scheduler,
                    "options": {"host": "127.0.0.1", "dashboard_address": ":0"},
                },
                silence_logs="CRITICAL",
            )
        self.client = distributed.Client(self.cluster, set_as_default=False)

    def spec(self, number: int) -> dict[str, Any]:
        options = {
            "host": f"127.0.0.{number + 2}",
            "name": f"node{number}",
            "nthreads": 1,
            "local_directory": str(self.folder / f"node{number}"),
            "dashboard": False,
        }
        return {"cls": distributed.Worker, "options": options}

    @property
    def workers(self) -> dict[str, Any]:
        return {own.name: own for own in self.cluster.workers.values()}

    def lay_out(self, slow: dict[str, float], seed: int = 0) -> None:
        """What each worker is to have measured."""
        for number, (name, worker) in enumerate(self.workers.items(), seed):
            text = run_of("one machine", number, slow.get(name, 1.0))
            packed = zstandard.ZstdCompressor().compress(text.encode())
            Path(worker.local_directory, "answer").write_bytes(packed)

    def asked(self, name: str) -> int:
        """How often a host was measured."""
        return len(Path(self.workers[name].local_directory, "asked").read_text())

    def close(self) -> None:
        self.client.close()
        self.cluster.close()


def listening() -> set[str]:
    """Sockets of this process that listen, by their inodes."""
    tables = [Path(f"/proc/self/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    found = {row.split()[9] for table in tables for row in table if row.split()[3] == "0A"}
    links = (str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())
    return {f"socket:[{inode}]" for inode in found} & set(links)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Six hosts of one machine that measure nothing."""
    real = loops.run(agent.where())

    async def where(dask_worker: Any = None) -> dict[str, str]:  # noqa: ANN401 - a Worker
        with contextlib.suppress(ValueError):
            dask_worker = dask_worker or distributed.get_worker()
        name = str(dask_worker.name) if dask_worker is not None else ""
        version = "0.0.1" if name == "older" else real["version"]
        return {"version": version, "name": name, "machine": "one", "host": name}

    monkeypatch.setattr(agent, "where", where)
    monkeypatch.setattr(agent, "command", lambda _: [sys.executable, "-I", "-S", "-c", FAKE])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = listening()
    fleet = Fleet(tmp_path, getattr(request, "param", {}))
    try:
        fleet.lay_out({})
        yield fleet
    finally:
        fleet.close()
    assert listening() <= before
    assert not list(tmp_path.rglob("latlab-survey-*"))


@contextlib.contextmanager
def worker_process(fleet: Fleet, number: int, *prefix: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own, without a nanny, started by `prefix`."""
    command = [
        *(*prefix, sys.executable, "-m", "distributed.cli.dask_worker", fleet.cluster.scheduler_address),
        *("--host", f"127.0.0.{number + 2}", "--no-nanny", "--nthreads", "1", "--no-dashboard"),
        *("--name", "alone", "--local-directory", str(fleet.folder / "alone")),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        fleet.client.wait_for_workers(HOSTS + 1, timeout=60)
        yield process
    finally:
        process.kill()
        process.wait()


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    texts = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for text in texts for child in text.read_text().split()]
