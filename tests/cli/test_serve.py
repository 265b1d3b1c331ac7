"""`latlab serve`, as a person starts it and another program meets it."""

from __future__ import annotations

import hmac
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

BOUND_S = 60


@contextmanager
def serving(*command: str, arguments: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*command, "serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str]) -> tuple[str, int]:
    assert process.stdout is not None
    host, _, port = json.loads(process.stdout.readline())["address"].rpartition(":")
    return host, int(port)


def test_it_prints_where_it_listens_serves_and_ends_with_ctrl_c(latlab: str) -> None:
    with serving(latlab) as process:
        assert process.stdout is not None
        plain, secured = process.stdout.readline().strip(), process.stdout.readline().strip()
        assert plain.startswith(("http://127.0.0.1:", "http://[::1]:"))
        host, _, port = plain.removeprefix("http://").rpartition(":")
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=BOUND_S)
        connection.request("GET", "/bytes/1000000")
        assert len(connection.getresponse().read()) == 1_000_000
        certificate = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host.strip("[]"), int(port))))
        assert sha256(certificate).hexdigest() in secured
        connection.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=BOUND_S)
        assert process.returncode == 0
        assert out == ""
        assert "served 1 requests (0 refused) on 2 connections" in err


def test_with_a_secret_nobody_is_served_who_does_not_prove_to_know_it(latlab: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret of this test\n")
    secret.chmod(0o600)
    with serving(latlab, arguments=("--bind", "0.0.0.0", "--secret-file", str(secret), "--json")) as process:
        _, port = address_of(process)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND_S)
        connection.request("GET", "/bytes/1000000")
        answer = connection.getresponse()
        assert answer.status == http.client.UNAUTHORIZED
        assert "/challenge" in answer.read().decode()
        connection.close()


def test_silent_connections_lock_out_nobody_who_knows_the_secret(latlab: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret of this test\n")
    secret.chmod(0o600)
    limited = ("sh", "-c", 'ulimit -n 64; exec "$@"', "sh", latlab)
    with (
        serving(*limited, arguments=("--secret-file", str(secret), "--json")) as process,
        ExitStack() as silent,
    ):
        host, port = address_of(process)
        # Several times as many as it can have open.
        for _ in range(300):
            silent.enter_context(socket.create_connection((host, port), timeout=BOUND_S))
        connection = http.client.HTTPConnection(host, port, timeout=BOUND_S)
        connection.request("GET", "/challenge")
        challenge = connection.getresponse().read().decode()
        reported = f"latlab serve 1\n{challenge}\n0\nGET\n/bytes/1000"
        signature = hmac.digest(b"a secret of this test", reported.encode(), "sha256").hex()
        connection.request(
            "GET", "/bytes/1000", headers={"Authorization": f"latlab {challenge} 0 {signature}"}
        )
        answer = connection.getresponse()
        assert (answer.status, len(answer.read())) == (http.client.OK, 1000)
        connection.close()


def test_a_server_that_was_killed_leaves_its_port_free(latlab: str) -> None:
    with serving(latlab, arguments=("--json",)) as process:
        host, port = address_of(process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(BOUND_S)
    with serving(latlab, arguments=("--json", "--bind", f"{host}:{port}")) as process:
        assert address_of(process) == (host, port)
