"""Whether `latlab fleet survey` names the host with a fault, with the right cause, and nobody else.

    sudo .venv/bin/python benches/fleet_causes.py [--save WORDS] [--only WORDS]

Six network namespaces of this machine, each with a worker of Dask, a real scheduler and TLS, as in
tests/fleet/test_namespaces.py. A row for each survey: healthy ones, and one for each fault:

* one worker in a control group with a CPU quota;
* one in a control group that limits its reads of the disk (ext4 on a loop device);
* a program that fills the memory bus from the other CPU, while one host measures and at no other time;
* one link behind latlab's delay line, which no other link crosses.

Needs root, ip, openssl and mkfs.ext4, and for the third fault two CPUs. Nothing is left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fleet import faults
from tests.fleet.test_namespaces import Network, cluster
from tools import evidence

_HEALTHY: Final = 3
_SLOW: Final = "192.0.2.12"
#: The ends of the slow link, and their addresses at it.
_LINK: Final = ("192.0.2.12", "192.0.2.13")
_PROBES: Final = "memory.load.dependent,kernel.syscall,kernel.context_switch,vm.fault,storage.read.random"
_WHOLE: Final = ("--only", _PROBES, "--budget", "6")


@dataclass(frozen=True, slots=True)
class Case:
    """A survey.

    Attributes:
        fault: What is wrong, in words.
        options: What is surveyed.
        slow: The addresses that are to be named.
        cause: Words that are to be in what is said of the cause.
    """

    fault: str
    options: tuple[str, ...] = _WHOLE
    slow: tuple[str, ...] = (_SLOW,)
    cause: str = ""


QUOTA: Final = Case("a CPU quota of 15 %", cause="stopped by a CPU quota")
DISK: Final = Case(
    "10 reads of the disk a second",
    # Among other probes there is not enough time for reads of 100 ms.
    ("--only", "storage.read.random", "--budget", "6"),
    cause="limit of reads a second",
)
MEMORY: Final = Case(
    "a neighbour on the memory bus",
    # In a few seconds RAM has two rounds, and the neighbour slows some of them.
    ("--profile", "quick"),
    cause="CPUs that other programs kept busy",
)
LINK: Final = Case("one link with 20 ms and 50 Mbit/s", ("--links",), _LINK)


@contextlib.contextmanager
def made(case: Case, network: Network, device: str) -> Iterator[None]:
    """The fault, for as long as the block takes."""
    workers = faults.workers_in(network.hosts[_SLOW])
    with contextlib.ExitStack() as stack:
        if case is QUOTA:
            limits = {"cpu.cfs_quota_us": "15000", "cpu.max": "15000 100000"}
            stack.enter_context(faults.limited("cpu", limits, workers))
        elif case is DISK:
            limits = {"blkio.throttle.read_iops_device": f"{device} 10", "io.max": f"{device} riops=10"}
            stack.enter_context(faults.limited("blkio", limits, workers))
        elif case is MEMORY:
            for namespace in network.hosts.values():
                for worker in faults.workers_in(namespace):
                    os.sched_setaffinity(worker, {0})
                    for thread in Path(f"/proc/{worker}/task").iterdir():
                        os.sched_setaffinity(int(thread.name), {0})
            stack.enter_context(faults.neighbour(workers, cpu=1))
        elif case is LINK:
            faults.slow_link(stack, network, *_LINK)
        yield


def surveyed(case: Case, folder: Path) -> dict[str, Any]:
    """What a survey of six hosts with this fault finds, and how long it takes."""
    with contextlib.ExitStack() as stack:
        mount, device = stack.enter_context(faults.disk(folder))
        network = cluster(stack, folder, far=False)
        options = case.options if "--links" in case.options else (*case.options, "--dir", str(mount))
        with made(case, network, device):
            begun = time.monotonic()
            done = network.survey("--json", *options)
        if not done.stdout:
            sys.exit(done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found | {"seconds": time.monotonic() - begun}


def row(case: Case, found: dict[str, Any]) -> dict[str, object]:
    """What was found, in one row."""
    hosts = [host for host in found["hosts"] if host["name"] in found["named"]]
    links = [link for link in found["links"] if link["verdict"] == "slow"]
    named = [_address(host["name"]) for host in hosts]
    named += ["–".join((_address(link["from"]), _address(link["to"]))) for link in links]
    because = [own["because"][0] for own in (*hosts, *links)]
    wanted = ["–".join(case.slow)] if case is LINK else [*case.slow]
    others = [name for name in named if set(name.split("–")) != set("–".join(wanted).split("–"))]
    causes = [cause for host in hosts for cause in host["differs"]]
    is_named = len(named) > len(others)
    return {
        "fault": case.fault,
        "named": "nobody" if not named else "the right one" if is_named else "not the right one",
        "others_named": ", ".join(others) or "none",
        "by": because[0]["point"] if because else "",
        "times_slower": f"{because[0]['ratio']:.3g}" if because else "",
        "cause": "; ".join(causes),
        "right": "yes"
        if not others and is_named == bool(wanted) and (not case.cause or case.cause in "; ".join(causes))
        else "no",
        "seconds": f"{found['seconds']:.0f}",
    }


def _address(name: str) -> str:
    """`host (192.0.2.12)` without the name that all of them share."""
    return name.rpartition("(")[2].rstrip(")")


def cases() -> Iterator[Case]:
    """The healthy ones first."""
    for number in range(1, _HEALTHY + 1):
        yield Case(f"none ({number})", slow=())
    yield from (QUOTA, DISK, MEMORY, LINK)


def main() -> None:
    """Prints the table, and keeps it where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", metavar="WORDS", help="what the machine was like: 'under changing load'")
    parser.add_argument("--only", default="", metavar="WORDS", help="only faults with these words in them")
    asked = parser.parse_args()
    # What was made is taken away, also when somebody ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows: list[dict[str, object]] = []
    for case in cases():
        if asked.only in case.fault:
            with tempfile.TemporaryDirectory(prefix="latlab-causes-") as folder:
                rows.append(row(case, surveyed(case, Path(folder))))
            print("  ".join(f"{key}: {value}" for key, value in rows[-1].items()), flush=True)
    if asked.save:
        made_by = evidence.origin("benches/fleet_causes.py")
        made_by["machine"] += f", {asked.save}"
        evidence.write("fleet-causes.csv", [{**own, **made_by} for own in rows])


if __name__ == "__main__":
    main()
