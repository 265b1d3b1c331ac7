"""Whole surveys of six network namespaces, one with a fault: its run has the cause, in words."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fleet import faults
from tests.fleet.test_namespaces import Network, cluster

from latlab.fleet.host import hosts
from latlab.fleet.why import differences

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("openssl"),
        reason="needs Linux, root, ip and openssl",
    ),
]

SLOW = "192.0.2.12"
PROBES = {"cpu.time", "storage.read.random"}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with contextlib.ExitStack() as stack:
        yield cluster(stack, tmp_path_factory.mktemp("causes"), far=False)


def causes(network: Network, runs: Path, *options: str) -> list[str]:
    """What distinguishes one of the surveyed hosts from the others; none of these has anything.

    Load decides whether a host is named among so few (benches/fleet_causes.py), not what its run recorded.
    """
    runs.mkdir()
    done = network.survey("--json", "--budget", "2", "--out", str(runs), *options)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == bool(found["named"])
    assert not [own for own in found["hosts"] if own["verdict"] == "failed"], done.stderr
    assert not list(network.folder.rglob("latlab-*"))
    # Later ones are of hosts that stood out.
    files = {file: file.name for file in sorted(runs.iterdir())[: len(network.hosts)]}
    fleet, _ = hosts(files, files)
    said = [list(differences(own, [peer for peer in fleet if peer is not own], PROBES)) for own in fleet]
    ours = [[line for line in lines if "quota" in line or "limit" in line] for lines in said]
    (with_cause,) = filter(None, ours)
    return with_cause


def test_a_cpu_quota_is_the_cause(network: Network, tmp_path: Path) -> None:
    limits = {"cpu.cfs_quota_us": "15000", "cpu.max": "15000 100000"}
    with faults.limited("cpu", limits, faults.workers_in(network.hosts[SLOW])):
        (cause,) = causes(network, tmp_path / "runs", "--only", "kernel.syscall")
    # Before it, by how much it was stopped: nothing where load left it less than the quota.
    assert cause.endswith("CPU quota: 0.15, peers none: raise or remove the CPU quota of its cgroup")


@pytest.mark.skipif(not shutil.which("mkfs.ext4"), reason="needs mkfs.ext4")
def test_a_limit_of_the_disk_is_the_cause(network: Network, tmp_path: Path) -> None:
    with faults.disk(tmp_path) as (mount, device):
        limits = {"blkio.throttle.read_iops_device": f"{device} 10", "io.max": f"{device} riops=10"}
        with faults.limited("blkio", limits, faults.workers_in(network.hosts[SLOW])):
            options = ("--only", "storage.read.random", "--dir", str(mount))
            said = causes(network, tmp_path / "runs", *options)
    assert said == [
        "limit of reads a second: 10, peers none: raise or remove the limits of its cgroup for this disk"
    ]
