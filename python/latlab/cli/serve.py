"""`latlab serve`."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from latlab.cli.terminal.screen import talk
from latlab.errors import UserError, named
from latlab.text import clean

if TYPE_CHECKING:
    from latlab._core import Server

_HIGHEST_PORT = 65535


@click.command("serve")
@click.option(
    "--bind",
    metavar="ADDR[:PORT]",
    help="Address and port to listen on (default: loopback, a free port). 0.0.0.0 and [::] mean all "
    "addresses.",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    help="Serve only clients with the shared secret in FILE. Required except on loopback.",
)
@click.option("--json", "as_json", is_flag=True, help="Print where it listens as JSON.")
def command(bind: str | None, secret_file: str | None, *, as_json: bool) -> None:
    """Run a server for another latlab's network tests, until Ctrl-C.

    GET /bytes/N and POST /sink, by HTTP/1.1 and HTTP/2, with TLS and without, all on one port. The
    server reads no files of this computer. The secret never crosses the network: each request proves
    that it knows the secret (HMAC-SHA256 over a challenge).

    \b
    Examples:
      latlab serve
      (umask 077; head -c 32 /dev/urandom | base64 > secret)
      latlab serve --bind 0.0.0.0:8600 --secret-file secret
    """
    from latlab.run.away import read_secret  # noqa: PLC0415 - not needed for --help

    address = None if bind is None else _checked_address(bind)
    secret = None if secret_file is None else named("--secret-file", read_secret, secret_file)
    server = _started(address, secret)
    try:
        _print(server.listening, as_json=as_json)
        talk("serving until Ctrl-C")
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        pass
    finally:
        served = json.loads(server.close() or "{}")
    requests = f"{served['requests']} requests ({served['refused']} refused)"
    talk(f"served {requests} on {served['connections']} connections")


def _started(address: str | None, secret: bytes | None) -> Server:
    from latlab.run.core import core  # noqa: PLC0415 - loads the extension

    try:
        server: Server = core().Server(address, secret)
    except ValueError as error:
        hint = "; --secret-file names it" if "requires a shared secret" in str(error) else ""
        raise UserError(f"{error}{hint}") from None
    return server


def _print(listening: str, *, as_json: bool) -> None:
    if as_json:
        text = listening
    else:
        where = json.loads(listening)
        address = where["address"]
        text = f"http://{address}\nhttps://{address}  (certificate SHA-256 {where['certificate_sha256']})"
    sys.stdout.write(f"{text}\n")
    # Whoever started this waits for the line.
    sys.stdout.flush()


def _checked_address(text: str) -> str:
    """An address with a port, as the core reads it; port 0 is any that is free.

    Raises:
        UserError: It is no address, or the port is none.
    """
    import ipaddress  # noqa: PLC0415 - not needed for --help

    host, port = text, "0"
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or "0"
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise UserError(f"--bind: {clean(host, most=100)!r} is not an IP address") from None
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= _HIGHEST_PORT):
        raise UserError(f"--bind: {clean(port, most=100)!r} is not a port")
    return f"{address}:{int(port)}" if address.version == 4 else f"[{address}]:{int(port)}"  # noqa: PLR2004 - IPv4
