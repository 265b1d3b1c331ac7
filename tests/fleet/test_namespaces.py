"""Six hosts that are network namespaces, on one switch, one of them behind latlab's delay line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from latlab.lessons.bench import Cannot
from latlab.lessons.distance import _core

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("openssl"),
        reason="needs Linux, root, ip and openssl",
    ),
]

HOSTS = 6
#: 5 ms each way, more than other load of the machine hides, and 200 Mbit/s: the host that is to be named.
SLOW = {"rtt_us": 10_000, "rate_bit_per_s": 200_000_000, "queue_bytes": None}
FAR = "192.0.2.2"


class Network:
    """A switch, and hosts at it. One of them may be `FAR`, at the end of a path of the core's."""

    def __init__(self, stack: contextlib.ExitStack, folder: Path, *, far: bool = True) -> None:
        self._stack = stack
        self.folder = folder
        self.hosts: dict[str, str] = {}
        if far:
            self._lay_path()
        else:
            self.switch = self._namespace()
            self.run(self.switch, "ip link set lo up")
            self.run(self.switch, "ip link add switch type bridge")
        self.run(self.switch, "ip address add 192.0.2.1/24 dev switch")
        self.run(self.switch, "ip link set switch up")
        for number in range(10, 10 + HOSTS - len(self.hosts)):
            self.hosts[f"192.0.2.{number}"] = self._host(number)

    def _lay_path(self) -> None:
        try:
            found = _core(self._stack, "network.path").ask({"spec": SLOW, "cpus": []})
        except Cannot as error:
            pytest.skip(f"no path can be had here: {error}")
        files = [f"/proc/{found[end]['process']}/fd/{found[end]['network']}" for end in ("client", "server")]
        self.switch, self.hosts[FAR] = files
        self.run(self.switch, "ip link add switch type bridge")
        self.run(self.switch, "ip address flush dev path")
        self.run(self.switch, "ip link set path master switch")

    def _namespace(self) -> str:
        holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        self._stack.callback(holder.wait)
        self._stack.callback(holder.kill)
        own = Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{holder.pid}/ns/net").readlink() == own:
            time.sleep(0.01)
        return f"/proc/{holder.pid}/ns/net"

    def _host(self, number: int) -> str:
        file = self._namespace()
        process = Path(file).parts[2]
        self.run(self.switch, f"ip link add port{number} type veth peer name port netns {process}")
        self.run(self.switch, f"ip link set port{number} master switch up")
        for command in ("link set lo up", f"address add 192.0.2.{number}/24 dev port", "link set port up"):
            self.run(file, f"ip {command}")
        return file

    def run(self, namespace: str, command: str) -> None:
        subprocess.run(["nsenter", f"--net={namespace}", *command.split()], check=True, timeout=60)

    def start(self, namespace: str, module: str, *arguments: str) -> None:
        command = ["nsenter", f"--net={namespace}", sys.executable, "-m", module, *arguments, *self.tls()]
        log = self._stack.enter_context((self.folder / "log").open("ab"))
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)

    def tls(self) -> Sequence[str]:
        certificate, key = self.folder / "cert.pem", self.folder / "key.pem"
        if not certificate.exists():
            names = ("-newkey", "rsa:2048", "-nodes", "-subj", "/CN=latlab", "-days", "2")
            files = ("-x509", "-keyout", str(key), "-out", str(certificate))
            subprocess.run(["openssl", "req", *names, *files], check=True, capture_output=True)
        return [
            *("--tls-ca-file", str(certificate)),
            *("--tls-cert", str(certificate)),
            *("--tls-key", str(key)),
        ]

    def listening(self, host: str) -> list[str]:
        """The ports on which somebody listens there."""
        command = ["nsenter", f"--net={self.hosts[host]}", "cat", "/proc/net/tcp"]
        rows = [line.split() for line in subprocess.check_output(command, text=True).splitlines()[1:]]
        return sorted(row[1] for row in rows if row[3] == "0A")

    def survey(self, *options: str) -> subprocess.CompletedProcess[str]:
        words = ["-m", "latlab", "fleet", "survey", "--scheduler", "tls://192.0.2.1:8786", *self.tls()]
        command = ["nsenter", f"--net={self.switch}", sys.executable, *words, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def cluster(stack: contextlib.ExitStack, folder: Path, *, far: bool = True) -> Network:
    """A scheduler at the switch, and a worker on each host."""
    network = Network(stack, folder, far=far)
    network.start(
        network.switch,
        "distributed.cli.dask_scheduler",
        *("--host", "tls://192.0.2.1", "--port", "8786", "--no-dashboard"),
    )
    for address, namespace in network.hosts.items():
        network.start(
            namespace,
            "distributed.cli.dask_worker",
            "tls://192.0.2.1:8786",
            *("--host", f"tls://{address}", "--no-nanny", "--nthreads", "1", "--no-dashboard"),
            *("--local-directory", str(network.folder)),
        )
    end = time.monotonic() + 120
    # All of them are there when the scheduler has said so six times.
    log = network.folder / "log"
    while log.read_text().count("Register worker") < HOSTS and time.monotonic() < end:
        time.sleep(0.1)
    return network


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with contextlib.ExitStack() as stack:
        yield cluster(stack, tmp_path_factory.mktemp("network"))


def test_the_host_behind_the_delay_is_named_and_nobody_else(network: Network) -> None:
    before = network.listening(FAR)
    done = network.survey("--links", "--json")
    assert done.returncode == 1, done.stderr + (network.folder / "log").read_text()
    found = json.loads(done.stdout)
    assert found["pairs"]["tested"] == 15
    (named,) = found["named"]
    assert named.endswith(f" ({FAR})")
    because = {own["point"]: own["ratio"] for own in found["hosts"][0]["because"]}
    assert because["round trip"] > 5
    assert network.listening(FAR) == before
    assert not list(network.folder.rglob("latlab-*"))


def test_one_slow_link_is_named_and_no_host_at_it(network: Network) -> None:
    ends = ("192.0.2.10", "192.0.2.11")
    for own, other in (ends, ends[::-1]):
        for command in (
            "qdisc add dev port root handle 1: htb default 1",
            "class add dev port parent 1: classid 1:1 htb rate 10gbit quantum 60000",
            "class add dev port parent 1: classid 1:2 htb rate 2mbit quantum 60000",
            f"filter add dev port parent 1: protocol ip u32 match ip dst {other} flowid 1:2",
        ):
            words = ["nsenter", f"--net={network.hosts[own]}", "tc", *command.split()]
            if subprocess.run(words, check=False).returncode:
                pytest.skip(f"this kernel has not what makes one link slow: tc {command}")
    done = network.survey("--links", "--json")
    for own in ends:
        network.run(network.hosts[own], "tc qdisc del dev port root")
    found = json.loads(done.stdout)
    slow = [{own["from"], own["to"]} for own in found["links"] if own["verdict"] == "slow"]
    assert [sorted(name.partition("(")[2].rstrip(")") for name in pair) for pair in slow] == [list(ends)]
    # Beside a slow link among so few, load decides whether the host behind the delay is named, too.
    assert all(own["name"].endswith(f" ({FAR})") for own in found["hosts"] if own["verdict"] == "slow")


def test_namespaces_of_one_machine_are_hosts_that_take_turns(network: Network) -> None:
    done = network.survey("--only", "kernel.syscall", "--budget", "2", "--json")
    found = json.loads(done.stdout)
    assert len(found["hosts"]) == HOSTS, done.stderr
    assert {own["verdict"] for own in found["hosts"]} <= {"ok", "suspect", "slow"}
    assert len({own["name"] for own in found["hosts"]}) == HOSTS
    assert not list(network.folder.rglob("latlab-*"))
