"""Files that list hosts, one a line: those to reach by ssh, and the group of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from latlab.errors import UserError
from latlab.text import clean

_HOST: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@%:+-]*")


def hosts_in(file: Path) -> list[str]:
    """The hosts of a file: one a line, as ssh takes them; what follows # is a comment.

    Raises:
        UserError: It cannot be read, or has none, or a line is no host.
    """
    found: dict[str, None] = {}
    for where, host in _lines(file):
        if not _HOST.fullmatch(host):
            raise UserError(f"{where}: {clean(host, most=60)!r} is not a host")
        found[host] = None
    return list(found)


def groups_in(file: Path) -> dict[str, str]:
    """The group of each host of a file: a line is a host's name or address, and the name of its group.

    Raises:
        UserError: It cannot be read, or has none, or a line is wrong.
    """
    found: dict[str, str] = {}
    for where, line in _lines(file):
        words = line.split()
        if len(words) != 2:  # noqa: PLR2004 - host and group
            raise UserError(f"{where}: {clean(line, most=60)!r} is not a host and its group")
        host, group = (clean(word, most=60) for word in words)
        if found.setdefault(host, group) != group:
            raise UserError(f"{where}: {host!r} is in {found[host]!r} already, and cannot be in {group!r}")
    return found


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """What a file lists, each with its place, without comments.

    Raises:
        UserError: It cannot be read, or lists nothing.
    """
    shown = clean(file, most=200)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"{shown!r}: {clean(getattr(error, 'strerror', None) or error)}") from None
    texts = [line.partition("#")[0].strip() for line in lines]
    if not any(texts):
        raise UserError(f"{shown!r} names no host")
    yield from ((f"{shown!r}, line {number}", text) for number, text in enumerate(texts, 1) if text)
