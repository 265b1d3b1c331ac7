"""Servers that stall, reset, truncate, lie or are not there: a record with the reason, nothing is left."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.robust.conftest import PATIENCE_S, Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the probe is measured on Linux only"),
]

#: Most of the 32 connections of a run: it has opened them, and begins.
CONNECTIONS = 30
#: Requests that are answered before a connection is asked: on the first one while latlab warms up.
WARM = 3
#: Seconds of a run that starts alone: a server that answers is asked until they are over.
ONE = "8"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers the first requests on the first connection rightly, and then does something else on all."""

    def __init__(self, then: Callable[[socket.socket], None], right: int = WARM + 5) -> None:
        self.then, self.left = then, right
        self.lock = threading.Lock()
        self.open = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self.lock:
            self.open += 1
        with client, contextlib.suppress(OSError):
            while client.recv(4096):
                with self.lock:
                    self.left -= 1
                    rightly = self.left >= 0
                if not rightly:
                    self.then(client)
                    break
                client.sendall(OK)
        with self.lock:
            self.open -= 1

    def is_left_alone(self) -> bool:
        """Whether no connection is open any more, soon."""
        end = time.monotonic() + PATIENCE_S
        while self.open:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True


def until_the_client_goes(client: socket.socket) -> None:
    while client.recv(4096):
        pass


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def truncate(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel")


def garbage(client: socket.socket) -> None:
    client.sendall(b"220 ftp.example.org ready\r\n\r\n")
    until_the_client_goes(client)


def drip(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    for _ in range(1000):
        client.sendall(b"x")
        time.sleep(0.1)


def refuse(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n")


#: What a server does wrong, and what its record says.
WRONG: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "stalls": (until_the_client_goes, "did not answer within 5 s: nothing came"),
    "sends a byte now and then": (drip, "did not answer within 5 s: the answer did not end"),
    "resets": (reset, "the connection was reset"),
    "truncates": (truncate, "ended after 3 bytes, before the answer did"),
    "sends garbage": (garbage, "the response is invalid"),
    "refuses": (refuse, "status 429"),
}


def options(url: str, budget: str = "15") -> tuple[str, ...]:
    """A short run against a URL, or against latlab's own server."""
    return (
        *("measure", "--only", "network.http", "--profile", "quick", "--no-report", "--json"),
        *(("--url", url) if url else ()),
        # 50 requests take three seconds; the rest is for starting on a machine busy with other tests.
        *("--requests", "50", "--budget", budget),
    )


class Asked:
    """A run against a server, and what came of it."""

    def __init__(self, place: Place, url: str, inside: tuple[str, ...] = (), budget: str = "15") -> None:
        # Its own group: whoever stays behind is in it.
        self.process = place.start(*options(url, budget), inside=inside, start_new_session=True)

    def end(self) -> None:
        """Ends what still runs, and closes what its output came through."""
        self.process.kill()
        self.process.communicate()

    def record(self) -> dict[str, Any]:
        """The one record; everything else about the end of the run is asserted here."""
        try:
            # The time-out is a small part of it; the rest is for starting on a machine busy with other tests.
            out, result = self.process.communicate(timeout=PATIENCE_S)
        finally:
            self.process.kill()
        assert "Traceback" not in result
        with pytest.raises(ProcessLookupError):
            os.killpg(self.process.pid, 0)
        (record,) = (own for own in json.loads(out)["records"] if own["kind"] != "derived")
        return dict(record)

    def reason(self) -> str:
        """Why there is no figure."""
        record = self.record()
        assert record.get("summary") is None
        assert record["stopped_by"] == "failed"
        return str(record["error"]["text"])


@pytest.fixture(scope="module")
def reasons(tmp_path_factory: pytest.TempPathFactory, latlab: str) -> Iterator[dict[str, str]]:
    """What the record of a run against each of them says; all at once, because most of it is waiting."""
    servers = {name: Server(then) for name, (then, _) in WRONG.items()}
    urls = {name: server.url for name, server in servers.items()}
    urls["has no name"] = "http://no-such-name.invalid/"
    # It may answer or not: whether packets to it are dropped is the machine's affair.
    urls["never accepts"], silent = never_accepting()
    urls["is not there"] = nobody()
    runs = {
        name: Asked(Place(tmp_path_factory.mktemp("faults") / "place", latlab), url)
        for name, url in urls.items()
    }
    try:
        result = {name: run.reason() for name, run in runs.items()}
    finally:
        for run in runs.values():
            run.end()
    assert all(server.is_left_alone() for server in servers.values()), "a connection is left"
    yield result
    silent.close()
    for server in servers.values():
        server.listener.close()


def never_accepting() -> tuple[str, socket.socket]:
    """The URL of somebody who listens and never accepts: the kernel does, and nobody answers."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    return f"http://127.0.0.1:{listener.getsockname()[1]}/", listener


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"


@pytest.mark.parametrize("name", WRONG)
def test_a_server_that_does_wrong_is_a_record_with_the_reason(reasons: dict[str, str], name: str) -> None:
    assert WRONG[name][1] in reasons[name]


def test_a_server_that_never_accepts_costs_its_time_out(reasons: dict[str, str]) -> None:
    assert "did not answer within 5 s: nothing came" in reasons["never accepts"]


def test_a_server_that_is_not_there_or_has_no_name_is_said_so(reasons: dict[str, str]) -> None:
    assert reasons["is not there"] == "the connection was refused"
    assert "the host of the URL has no address" in reasons["has no name"]
    assert "no-such-name" not in reasons["has no name"], "whom one asks is the user's affair"


@contextlib.contextmanager
def serving(place: Place, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`latlab serve` and where it listens."""
    process = place.start("serve", "--json", *arguments)
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())["address"]
    finally:
        process.send_signal(signal.SIGINT)
        place.ended(process)


def test_a_certificate_that_nobody_trusts_is_a_record_with_the_reason(place: Place) -> None:
    with serving(place) as (_, address):
        assert "the certificate is not trusted" in Asked(place, f"https://{address}/").reason()


def in_a_namespace(script: str) -> tuple[str, ...]:
    """What runs a command where the network is what the script makes of nothing; as an ordinary user too."""
    inside = ("unshare", "--map-root-user", "--net", "sh", "-ec", f'{script}; exec "$@"', "sh")
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], check=False).returncode:
        pytest.skip("no network namespace of the test's own can be had here")
    return inside


def test_without_a_route_the_record_says_so(place: Place) -> None:
    # In a new one nothing is up, not even the loopback.
    inside = in_a_namespace("true")
    assert Asked(place, "http://192.0.2.1/", inside).reason() == "no route to the server"


@pytest.mark.parametrize(
    ("network", "ipv6"),
    [
        ("ip link set lo up; ip address delete 127.0.0.1/8 dev lo", True),
        ("ip link set lo up; ip address delete ::1/128 dev lo", False),
    ],
    ids=["IPv6 only", "IPv4 only"],
)
def test_our_own_server_is_reached_by_whichever_loopback_there_is(
    place: Place, network: str, *, ipv6: bool
) -> None:
    if shutil.which("ip") is None:
        pytest.skip("setting up a network needs ip")
    record = Asked(place, "", in_a_namespace(network), ONE).record()
    assert record["findings"]["ipv6"] is ipv6
    assert record["summary"]["p50"] > 0
    assert all(check["ok"] for check in record["checks"])


def test_every_network_probe_works_on_one_cpu_with_nothing_but_ipv6(place: Place) -> None:
    if shutil.which("ip") is None:
        pytest.skip("setting up a network needs ip")
    inside = in_a_namespace("ip link set lo up; ip address delete 127.0.0.1/8 dev lo")
    cpu = min(os.sched_getaffinity(0))
    options = ("--profile", "quick", "--no-report", "--cpu", str(cpu), "--budget", "4")
    result = place.run("measure", "--only", "network.*", *options, inside=inside)
    assert result.returncode == 0, result.stderr
    records = [line for line in place.lines() if line["line"] == "record"]
    failed = {"failed", "proof_failed", "worker_died"}
    wrong = [record for record in records if record["stopped_by"] in failed]
    if not any(family == socket.AF_INET6 for family, *_ in socket.getaddrinfo("localhost", None)):
        # The name leads to where nobody can go, and the record says so.
        wrong = [record for record in wrong if record["point"].get("operation") != "resolve"]
    assert not wrong, [record["error"] for record in wrong]
    measured = [record for record in records if record.get("summary")]
    # The last ones may find no time on a machine that is busy.
    late = {record["probe"] for record in records if record["stopped_by"] == "not_reached"}
    found = {record["probe"] for record in measured}
    assert "network.roundtrip" in found
    assert found | late >= {"network.throughput", "network.connect", "network.transfer"}
    addresses = {record["findings"].get("address") for record in measured if record.get("findings")}
    assert addresses <= {"::1", None}
    assert all(check["ok"] for record in measured for check in record["checks"])


def test_without_any_loopback_there_is_a_reason(place: Place) -> None:
    assert "no route" in Asked(place, "", in_a_namespace("true")).reason()


def sockets(process: subprocess.Popen[str]) -> int:
    entries = Path(f"/proc/{process.pid}/fd").iterdir()
    return sum(str(entry.readlink()).startswith("socket:") for entry in entries)


def test_a_server_that_stood_still_for_a_second_is_in_the_open_view_and_not_in_the_closed_one(
    place: Place,
) -> None:
    with serving(place) as (process, address):
        asked = Asked(place, f"http://{address}/bytes/1024")
        # It has warmed up and opened its connections; what is asked for lasts for seconds.
        while sockets(process) < CONNECTIONS and asked.process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        process.send_signal(signal.SIGCONT)
        record = asked.record()
    (service,) = (channel for channel in record["channels"] if channel["name"] == "service")
    # Whoever was due in it: some fifty of one or two hundred. Of them 32 were under way.
    assert record["summary"]["max"] > 0.5e9
    assert record["summary"]["mean"] > service["summary"]["mean"]
    assert all(check["ok"] for check in record["checks"])


def test_a_guarded_server_is_measured_by_who_shares_its_secret(place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret of tests only\n")
    secret.chmod(0o600)
    with serving(place, "--secret-file", str(secret)) as (_, address):
        url = f"http://{address}/bytes/1024"
        assert "--secret-file" in Asked(place, url).reason()
        result = place.called(*options(url, ONE), "--secret-file", str(secret))
        (record, _) = json.loads(result.stdout)["records"]
        assert record["summary"]["p50"] > 0
    # Neither is in a run that is passed on.
    (*_, run) = place.run_files
    shared = place.called("export", str(run), "-o", str(tmp_path / "shared.json"), "--anonymous")
    assert shared.returncode == 0, shared.stderr
    text = (tmp_path / "shared.json").read_text()
    assert address not in text
    assert str(secret) not in text


def resident_bytes(process: subprocess.Popen[str]) -> int:
    (line,) = (
        line
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if line.startswith("VmRSS:")
    )
    return int(line.split()[1]) * 1024


def test_two_thousand_connections_and_slow_readers_hold_neither_the_server_nor_its_memory(
    place: Place,
) -> None:
    with serving(place) as (process, address):
        host, port = address.rsplit(":", 1)
        before = resident_bytes(process)
        clients: list[socket.socket] = []
        try:
            clients.extend(socket.create_connection((host, int(port)), PATIENCE_S) for _ in range(2000))
        except OSError:
            # This process's own limit of open files, where nobody may raise it.
            assert len(clients) > 200
        # A tenth of them ask for 100 MB each and read nothing of it.
        slow, quick = clients[: len(clients) // 10], clients[len(clients) // 10 :]
        for client in slow:
            client.sendall(b"GET /bytes/100000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        for client in quick:
            client.sendall(b"GET /bytes/10 HTTP/1.1\r\nHost: x\r\n\r\n")
        for client in quick:
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
        # 20 GB were asked for; a connection's own state and the kernel's view of its buffers are not counted.
        assert resident_bytes(process) - before < 200 << 20
        for client in clients:
            client.close()
