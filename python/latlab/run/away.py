"""What leaves this machine when the user names a server: its URL, its secret, and a sentence that says so."""

from __future__ import annotations

import ipaddress
import os
import stat
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from latlab.errors import UserError
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.run.model import Settings

#: Requests a second of one thread that spins between them; more are the work of many.
MOST_REQUESTS: Final = 50_000
#: Longer than what any server takes (RFC 9110, 4.1, asks for 8,000).
_LONGEST_URL: Final = 8_000
#: Nobody's secret is longer; a file that is was named by mistake.
_MOST_SECRET_BYTES: Final = 4096


def checked_url(value: str) -> str:
    """An HTTP or HTTPS URL as it was written.

    Raises:
        UserError: it is none that can be asked.
    """
    shown = clean(value, most=200)
    if len(value) > _LONGEST_URL or not all("!" <= letter <= "~" for letter in value):
        raise UserError(
            f"{shown!r} is not a URL: it is too long, or has a character that a URL cannot contain"
        )
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UserError(f"{shown!r} is not a URL: {clean(error)}") from None
    if parts.scheme not in {"http", "https"} or not value.startswith(f"{parts.scheme}://"):
        raise UserError(f"{shown!r} does not start with http:// or https://")
    if parts.username is not None or "@" in parts.netloc:
        raise UserError("the URL names a user, which latlab would store in the run file: leave it out")
    if not host or port == 0:
        raise UserError(f"{shown!r} has no {'host' if not host else 'port that can be asked'}")
    return value


def read_secret(file: str | os.PathLike[str]) -> bytes:
    """What a file holds, without the space around it.

    Raises:
        UserError: It cannot be read, or others can read it too.
    """
    shown = clean(os.fspath(file), most=200)
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - the open file's mode is asked, not the name's
            mode = os.fstat(opened.fileno()).st_mode
            secret = opened.read(_MOST_SECRET_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UserError(f"{shown!r}: {clean(getattr(error, 'strerror', None) or error)}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise UserError(f"others can read {shown!r}; chmod 600 {shown}")
    if len(secret) > _MOST_SECRET_BYTES:
        raise UserError(f"{shown!r} is longer than {_MOST_SECRET_BYTES} bytes")
    return secret.strip()


def checked_requests(value: int) -> int:
    """Requests a second.

    Raises:
        UserError: there are none, or more than one thread sends.
    """
    if not 1 <= value <= MOST_REQUESTS:
        raise UserError(f"{value} requests per second cannot be sent: use 1 to {MOST_REQUESTS:,}")
    return value


def announced(settings: Settings) -> str | None:
    """What leaves this machine; nothing where no server was named."""
    if settings.url is None:
        return None
    parts = urlsplit(settings.url)
    host = parts.hostname or "?"
    where = f"{clean(host, most=200)}, port {parts.port or (443 if parts.scheme == 'https' else 80)}"
    if _is_this_machine(host):
        return f"--url: sends requests to {where}, on this machine"
    return f"--url: sends requests to {where}; nothing else leaves this machine"


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
