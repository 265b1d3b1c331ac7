"""Connections to and transfers from the user's server: asked politely, and every failure is a record."""

from __future__ import annotations

import contextlib
import itertools
import socket
import statistics
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.robust.conftest import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    #: What is done with a request of a connection after so many earlier ones; whether it stays open.
    Answer = Callable[[socket.socket, int], bool]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the probes are measured on Linux only"),
]

BODY = b"x" * 5000
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
#: Ten a second are allowed; a machine that is busy may deliver some in one moment.
LEAST_PAUSE_S = 0.05


class Server:
    """Keeps when it was connected to and asked, and answers as it is told."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[float] = []
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/file"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            for earlier in itertools.count():
                if not client.recv(4096):
                    return
                self.asked.append(time.monotonic())
                if not self.answer(client, earlier):
                    return


def rightly(client: socket.socket, _: int) -> bool:
    client.sendall(OK)
    return True


def once(client: socket.socket, _: int) -> bool:
    client.sendall(OK)
    return False


def later_cut_off(client: socket.socket, earlier: int) -> bool:
    client.sendall(OK[: -len(BODY)] if earlier else OK)
    return not earlier


def truncated(client: socket.socket, _: int) -> bool:
    client.sendall(OK[:-1])
    return False


def endless(client: socket.socket, _: int) -> bool:
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(40):
        client.sendall(b"x" * (1 << 20))
    return False


ANSWERS: dict[str, Answer] = {
    "right": rightly,
    "once": once,
    "later cut off": later_cut_off,
    "truncated": truncated,
    "endless": endless,
}


def run_against(server: Server, place: Place, *probes: str) -> list[dict[str, Any]]:
    """The records of a run that is interrupted when it has both points of the URL of each probe."""

    def enough(lines: list[dict[str, Any]]) -> bool:
        records = [line for line in lines if line["line"] == "record"]
        return all(len(of_the_url(records, probe)) == 2 for probe in probes)

    options = ("--only", ",".join(probes), "--profile", "quick", "--no-report", "--budget", "60")
    place.run_until(enough, "measure", *options, "--url", server.url)
    return [line for line in place.lines() if line["line"] == "record"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, latlab: str) -> dict[str, Any]:
    reported = {}
    for name, answer in ANSWERS.items():
        server, place = Server(answer), Place(tmp_path_factory.mktemp("url") / "place", latlab)
        probes = ("network.connect", "network.transfer") if name == "right" else ("network.transfer",)
        place.wanted = [{"path": "url"}, {"path": "loopback", "concurrency": 1, "connections": "new"}]
        with server.listener:
            reported[name] = server, run_against(server, place, *probes), place.figures()
    return reported


def of_the_url(records: list[dict[str, Any]], probe: str) -> list[dict[str, Any]]:
    return [r for r in records if r["probe"] == probe and r["point"].get("path") == "url"]


def test_a_url_is_connected_to_and_fetched_by_its_phases(runs: dict[str, Any]) -> None:
    server, records, figures = runs["right"]
    connects, transfers = (of_the_url(records, f"network.{probe}") for probe in ("connect", "transfer"))
    # An address needs no resolving, but the step is there; without https there is no TLS.
    assert {record["point"]["operation"] for record in connects} == {"tcp", "resolve"}
    assert {record["point"]["connections"] for record in transfers} == {"new", "kept"}
    for record in connects + transfers:
        assert record.get("summary"), record.get("error")
        assert all(check["ok"] for check in record["checks"])
    for record in transfers:
        assert record["findings"]["bodies_bytes"] == [len(BODY), len(BODY)]
        assert record["findings"]["phases_ns"]["first-byte"]["value"] > 0
        # Bytes over the time that they took; a histogram's step is what the ends may be off.
        least, most = (len(BODY) * 1e9 / record["summary"][end] for end in ("max", "min"))
        assert 0.98 * least <= record["findings"]["goodput_bytes_per_s"]["value"] <= 1.02 * most
    (concluded,) = (f for f in figures if f["probe"] == "network.transfer" and f["kind"] == "derived")
    assert {row["connections"] for row in concluded["findings"]["named"]} == {"new", "kept"}
    # The software's part beside it.
    assert any(r["point"].get("path") == "loopback" and r.get("summary") for r in records)
    # Politely: ten blocks of one, and one more for each connection that is kept.
    assert len(server.asked) <= 30
    assert server.connections <= 60
    pauses = [later - sooner for sooner, later in zip(server.asked, server.asked[1:], strict=False)]
    assert statistics.mean(pauses) > LEAST_PAUSE_S
    assert sum(pause <= LEAST_PAUSE_S for pause in pauses) <= len(pauses) / 4


def test_a_server_that_keeps_no_connection_is_said_to_close_it(runs: dict[str, Any]) -> None:
    _, records, _ = runs["once"]
    (kept,) = (r for r in of_the_url(records, "network.transfer") if r["point"]["connections"] == "kept")
    assert kept.get("summary"), kept.get("error")
    assert any("the server closed its connection before" in flag for flag in kept["flags"])


def test_an_answer_that_is_cut_off_is_no_connection_that_was_closed_before(runs: dict[str, Any]) -> None:
    _, records, _ = runs["later cut off"]
    reported = {r["point"]["connections"]: r for r in of_the_url(records, "network.transfer")}
    assert reported["new"].get("summary"), reported["new"].get("error")
    assert "before the answer did" in reported["kept"]["error"]["text"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("truncated", "before the answer did"),
        ("endless", "the answer is longer than 16 MiB: name a smaller one"),
    ],
)
def test_a_server_that_does_wrong_is_a_record_with_the_reason(
    runs: dict[str, Any], name: str, reason: str
) -> None:
    server, records, _ = runs[name]
    failed = of_the_url(records, "network.transfer")
    assert failed
    assert all(reason in record["error"]["text"] for record in failed)
    assert len(server.asked) <= len(failed), "who refuses is not asked again"
