"""A run that can be passed on: without host, user, paths, addresses and serial numbers, in its sentences too.

What the schema marks as private goes from its field. Sentences (flags, checks, reasons, findings of the
doctor) may repeat it or name other files, so every text is searched: for what those fields said, and for
anything that has the form of a path. What stays says what was measured on, not whose it is: CPU, sizes,
kernel, the disk's model, the time of the run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from latlab.run import model

REMOVED: Final = "(left out)"
_SHORTEST_PATH: Final = 2
_SHORTEST_NAME: Final = 3
#: Names that thousands of machines and users have and that a sentence may use in its own sense.
_COMMON: Final = frozenset(
    {
        *(
            "data",
            "disk",
            "ext4",
            "file",
            "files",
            "home",
            "instruction",
            "kernel",
            "localhost",
            "memory",
            "network",
        ),
        *(
            "none",
            "overlay",
            "overlayfs",
            "proc",
            "python",
            "read",
            "root",
            "storage",
            "sysfs",
            "system",
            "tmpfs",
        ),
        *("debian", "fedora", "linux", "ubuntu", "unified", "unknown", "user", "write"),
    }
)
#: Where the system describes itself: the same on every machine, but for what stands under cgroup.
_NOBODYS: Final = (
    r"(?:proc|sys|etc|usr|lib|lib64|bin|sbin)(?:/|\b)"
    r"|\.dockerenv\b|run/\.containerenv\b|dev/[a-z0-9]+(?![\w/-])"
)
_END: Final = r"[^\s'\"`,;:()\[\]<>|]"
_FORMS: Final = re.compile(
    r"/sys/fs/cgroup/" + _END + "+"  # holds user ids and names of containers
    r"|(?<=['\"`])/(?!" + _NOBODYS + r")[^'\"`]+(?=['\"`])"
    r"|(?<![\w.:/)~])/(?!" + _NOBODYS + ")" + _END + "+"
    r"|(?<![\w/])~[\w.-]*/" + _END + "*"
    r"|(?<!\w)[A-Za-z]:\\[^\s'\"`]+|\\\\[\w.-]+\\[^\s'\"`]*"
    r"|(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])"
)
_ADDRESS: Final = re.compile(r"(?<![\w.])(?!127\.|0\.)\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])")
#: The folder after these is named as its user.
_USERS_FOLDER: Final = re.compile(r"^/(?:var/)?(?:home|Users|media|run/media|run/user|mnt)/([^/]+)")
#: Of a record's fields, those that hold sentences; the others hold names of the schema, and figures.
_SENTENCES: Final = ("flags", "checks", "error", "findings")


class Sharing:
    """What a run must not say, learned from its header, and taken out of each of its lines.

    Attributes:
        header: The header without it.
    """

    def __init__(self, header: model.Header, names: Iterable[str] = ()) -> None:
        """Learns.

        Args:
            header: The header as it was measured.
            names: Further names that must not be said.
        """
        plain = msgspec.to_builtins(header, enc_hook=model.from_machine)
        said: set[str] = set()
        for path in model.PRIVATE:
            _take_out(plain, path.split("."), said)
        self._away = header.settings.url is not None
        self._secrets = _pattern(said, names)
        for name in ("machine", "doctor"):
            plain[name] = self._hidden(plain[name])
        self.header: model.Header = msgspec.convert(plain, model.Header, dec_hook=model.to_machine)

    def record(self, record: model.Record) -> model.Record:
        """The record without it."""
        plain = msgspec.to_builtins(record)
        for name in _SENTENCES:
            if name in plain:
                plain[name] = self._hidden(plain[name])
        return msgspec.convert(plain, model.Record)

    def footer(self, footer: model.Footer) -> model.Footer:
        """The footer without it."""
        return msgspec.structs.replace(footer, stopped_by=self._text(footer.stopped_by))

    def _text(self, text: str) -> str:
        if self._secrets is not None:
            text = self._secrets.sub(REMOVED, text)
        text = _FORMS.sub(REMOVED, text)
        return _ADDRESS.sub(REMOVED, text) if self._away else text

    def _hidden(self, value: model.Json) -> model.Json:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._text(name): self._hidden(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._hidden(item) for item in value]
        return value


def _take_out(fields: model.Json, path: list[str], said: set[str]) -> None:
    """Removes what stands at a path, through lists; what it said is remembered, to be found in sentences."""
    name, *rest = path
    if isinstance(fields, list):
        for item in fields:
            _take_out(item, path, said)
    elif isinstance(fields, dict) and name in fields:
        value = fields[name]
        if rest:
            _take_out(value, rest, said)
        elif isinstance(value, str):
            fields[name] = REMOVED
            said.add(value)
        else:
            fields[name] = None


def _pattern(said: Iterable[str], names: Iterable[str]) -> re.Pattern[str] | None:
    """Finds all of them: paths with what follows, names as whole words in any case; longest first."""
    paths: set[str] = set()
    words: set[str] = set(names)
    for text in said:
        if "://" in text:
            paths.add(text)
            # A file of somebody else's may hold what is no address.
            with contextlib.suppress(ValueError):
                parts = urlsplit(text)
                words.update(filter(None, (parts.netloc, parts.hostname, parts.query, parts.path.strip("/"))))
        elif "/" in text or "\\" in text:
            if not re.match(rf"/(?:{_NOBODYS})", text):
                paths.add(text)
            words.update(_names_in(text))
        else:
            # A host's own name is the first part of its full one.
            words.update((text, text.partition(".")[0]))
    alternatives = [
        rf"(?<![\w.-]){re.escape(path)}(?![\w-])(?:/{_END}*)?"
        for path in paths
        if len(path) >= _SHORTEST_PATH
    ]
    alternatives += [
        rf"(?<!\w)(?i:{re.escape(word)})(?!\w)"
        for word in words
        if len(word) >= _SHORTEST_NAME and word.lower() not in _COMMON
    ]
    return re.compile("|".join(sorted(alternatives, key=len, reverse=True))) if alternatives else None


def _names_in(path: str) -> Iterator[str]:
    """The user whose folder it lies in, the server of a network file system, and a file's own name."""
    if found := _USERS_FOLDER.match(path):
        yield found.group(1)
    if server := re.match(r"(?://)?([\w.-]+)(?::?/)", path):
        yield server.group(1)
    if "." in (name := path.rpartition("/")[2]):
        yield name
