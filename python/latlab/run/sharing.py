"""A run that can be passed on: without host, user, paths, addresses and serial numbers, in its sentences too.

Every string and every key of it is searched: for what the fields said that the schema marks as private, for
the names of this machine and this user, and for all forms in `latlab.run.identifiers`. What is found becomes
a word such as `host-1`, within one run the same for the same thing, so that it can still be compared. What
stays says what was measured on, not whose it is: CPU, sizes, kernel, the disk's model, the time of the run.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from latlab.errors import WorkerError
from latlab.run import identifiers, model
from latlab.run.core import core
from latlab.run.identifiers import NOBODYS, PATH_END

KINDS: Final = ("address", "file", "host", "path", "serial", "url", "user", "volume")
TOKEN: Final = re.compile(rf"(?:{'|'.join(KINDS)})-\d+|\(left out\)")
"""What stands for a name that was removed; in brackets, as earlier versions wrote it."""
PRIVATE: Final = (
    "machine.os.host_name",
    "machine.dir.path",
    "machine.dir.file_system.mount_point",
    "machine.dir.file_system.source",
    "machine.disks.mapper_name",
    "machine.file_systems.mount_point",
    "machine.file_systems.source",
    "machine.limits.uid",
    "settings.dir",
    "settings.file",
    "settings.first_touch",
    "settings.url",
    "settings.secret_file",
)
"""What in the header names the host, its user or their files: what the schema marks, and the user's id."""
_SHORTEST_NAME: Final = 3
_SHORTEST_SECRET: Final = 6
_COMMON: Final = """
admin app bench centos cdn data debian docker ext4 fedora ftp git home html http https index.html
instruction latlab linux local localhost machine mail nobody none overlayfs proc python root run runner
server storage sysfs system test tests tmp tmpfs ubuntu unified unknown usr web write www
"""
"""Names that thousands of machines and users have, and that a sentence may use in its own sense."""
_KIND_OF_KEY: Final = {
    **dict.fromkeys(("host", "host_name", "hostname", "fqdn"), "host"),
    **dict.fromkeys(("user", "user_name", "username", "login"), "user"),
    **dict.fromkeys(("mac", "mac_address"), "address"),
    **dict.fromkeys(
        ("serial", "serial_number", "wwid", "wwn", "eui", "eui64", "nguid", "uuid", "guid"), "serial"
    ),
    **dict.fromkeys(("machine_id", "boot_id", "product_uuid", "asset_tag"), "serial"),
}
_KIND_OF_PRIVATE: Final = {"host_name": "host", "mapper_name": "volume", "url": "url"}
#: The folder after these is named as its user.
_USERS_FOLDER: Final = re.compile(r"(?:^|[/\\])(?:home|Users|media|run/user)[/\\]([^/\\\s]+)|^~([\w.-]+)/")
_SERVER: Final = re.compile(r"(?://|\\\\)([\w.-]+)[/\\]|([\w.-]+):/")
_FILE: Final = re.compile(r"[\w-]*[A-Za-z][\w-]*\.[\w.-]+")
#: No text that latlab writes is nearly as long: this one was made up to make the search slow.
_LONGEST_TEXT: Final = 100_000
#: A file may hold names without end, too.
_MOST_WORDS: Final = 500
_MOST_SEEN: Final = 50_000
_LONGEST_SEEN: Final = 2_000

#: What says no name.
_NAMELESS: Final = (int, float, type(None))

T = TypeVar("T", bound=msgspec.Struct)


class Anonymous:
    """Takes names out of texts, each replaced by the same word wherever it stands.

    It learns as it goes: a user whose folder one text named is found by name in those that follow.
    """

    def __init__(self, keep: Iterable[str] = ()) -> None:
        """Knows no name yet.

        Args:
            keep: Words that are no names, whoever is called so.
        """
        self._keep = _vocabulary() | {*_COMMON.split()} | {word.lower() for word in keep}
        self._tokens: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        #: Kind and replacement of each name that is found wherever it stands as a word.
        self._words: dict[str, tuple[str, str]] = {}
        self._paths: set[str] = set()
        self._patterns: tuple[re.Pattern[str], re.Pattern[str] | None] | None = None
        self._seen: dict[tuple[str, str], str] = {}

    def know_this_machine(self) -> None:
        """The names of this machine, its user and their home folder."""
        for kind, name in _own_names():
            self.know(kind, name, own=True)

    def know(self, kind: str, name: str, *, own: bool = False) -> str:
        """What stands for a name, which from now on is found wherever it stands as a word, in any case.

        Args:
            kind: One of `KINDS`.
            name: As it was said.
            own: It is this machine's for sure: its host is also called by the first part of the name alone,
                and a path need not look like one.
        """
        name = name.strip()
        if TOKEN.fullmatch(name):
            return name
        if kind == "host" and identifiers.normal_address(name) is not None:
            kind = "address"
        if kind == "path" and own and not re.search(r"[/\\]", name):
            kind = "volume"
        token = self._token(kind, name)
        if kind == "host":
            if own or name.count(".") > 1:
                self._know_word(kind, name.partition(".")[0], token)
            self._know_word(kind, name.rstrip("."), token)
        elif kind == "url":
            self._know_url(name, token, own=own)
        elif re.search(r"[/\\]", name):
            self._know_path(name, own=own)
        elif kind not in {"path", "address"}:
            self._know_word(kind, name, token)
        return token

    def text(self, text: str, key: str = "") -> str:
        """The text without names; `key` is that of the field in which it stands."""
        seen = self._seen.get((key, text))
        if seen is not None:
            return seen
        if len(text) > _LONGEST_TEXT:
            return "(left out)"
        kind = _KIND_OF_KEY.get(key)
        hidden = self.know(kind, text) if kind and text.strip() else self._replaced(text, key)
        if len(self._seen) < _MOST_SEEN and len(text) < _LONGEST_SEEN:
            self._seen[key, text] = hidden
        return hidden

    def value(self, value: model.Json, key: str = "") -> model.Json:
        """JSON without names, in its strings and its keys."""
        if isinstance(value, _NAMELESS):
            return value
        if isinstance(value, str):
            return self.text(value, key)
        if isinstance(value, Mapping):
            if _is_histogram(value):
                return value
            out: dict[str, model.Json] = {}
            for name, item in value.items():
                hidden = self.text(name)
                while hidden in out:
                    hidden += "'"
                out[hidden] = self.value(item, name)
            return out
        # Most of a run are long lists of figures.
        return [item if isinstance(item, _NAMELESS) else self.value(item, key) for item in value]

    def learn(self, struct: msgspec.Struct) -> model.Json:
        """The fields of a struct without names, all of which are known from then on."""
        return self.value(msgspec.to_builtins(struct, enc_hook=model.from_machine))

    def struct(self, value: T) -> T:
        """A struct without names."""
        return msgspec.convert(self.learn(value), type(value), dec_hook=model.to_machine)

    def _token(self, kind: str, name: str) -> str:
        if kind == "host":
            name = name.rstrip(".").lower()
            known = self._words.get(name) or self._words.get(name.partition(".")[0])
            if known is not None and known[0] == "host":
                return known[1]
        elif kind == "address":
            name = identifiers.normal_address(name) or name.lower().replace("-", ":")
        elif kind == "path":
            name = name.rstrip("/")
        if (kind, name) not in self._tokens:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._tokens[kind, name] = f"{kind}-{self._counts[kind]}"
        return self._tokens[kind, name]

    def _know_word(self, kind: str, word: str, token: str) -> None:
        low = word.lower()
        if len(word) < _SHORTEST_NAME or word.isdecimal() or TOKEN.fullmatch(low):
            return
        is_new = low not in self._words and len(self._words) < _MOST_WORDS
        if is_new and low not in self._keep:
            self._words[low] = kind, token
            self._forget()

    def _know_path(self, path: str, *, own: bool) -> None:
        if own and path not in self._paths and not re.match(rf"/(?:{NOBODYS}|\Z)", path):
            self._paths.add(path)
            self._forget()
        for kind, part in _names_in(path):
            self._know_word(kind, part, self._token(kind, part))

    def _know_url(self, url: str, token: str, *, own: bool) -> None:
        if own and url not in self._paths:
            self._paths.add(url)
            self._forget()
        # A file of somebody else's may hold what is no address.
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
            if parts.hostname:
                self.know("host", parts.hostname)
            secrets = [parts.username or "", parts.password or "", parts.query]
            secrets += [value for _, value in parse_qsl(parts.query, max_num_fields=100)]
            for word in secrets:
                if len(word) >= _SHORTEST_SECRET:
                    self._know_word("url", word, token)

    def _forget(self) -> None:
        self._patterns = None
        self._seen.clear()

    def _compiled(self) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
        """Finds paths and forms; finds words, a host's with the domain behind it."""
        if self._patterns is None:
            paths = "|".join(map(re.escape, sorted(self._paths, key=len, reverse=True)))
            known = rf"(?<![\w.-])(?P<known>(?:{paths})(?![\w-])(?:/{PATH_END}*)?)|" if paths else ""
            words = "|".join(
                re.escape(word) + (r"(?:\.[A-Za-z][\w-]*)*" if kind == "host" else "")
                for word, (kind, _) in sorted(self._words.items(), key=lambda item: -len(item[0]))
            )
            of_words = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE) if words else None
            self._patterns = re.compile(known + identifiers.FORMS), of_words
        return self._patterns

    def _replaced(self, text: str, key: str) -> str:
        forms, _ = self._compiled()
        out, at = [], 0
        for match in forms.finditer(text):
            for start, end, kind, name in self._found(match, key):
                out += [self._without_words(text[at:start]), self.know(kind, name)]
                at = end
        return "".join([*out, self._without_words(text[at:])])

    def _found(self, match: re.Match[str], key: str) -> Iterable[identifiers.Found]:
        if match.lastgroup != "known":
            return identifiers.found(match, key)
        kind = "url" if "://" in match.group() else "path"
        return (identifiers.Found(match.start(), match.end(), kind, match.group()),)

    def _without_words(self, text: str) -> str:
        _, words = self._compiled()
        return text if words is None else words.sub(self._word, text)

    def _word(self, match: re.Match[str]) -> str:
        word = match.group().lower()
        while word not in self._words:
            word = word.rpartition(".")[0]
        return self._words[word][1]


class Sharing:
    """What a run must not say, learned from its header, and taken out of each of its lines.

    Attributes:
        header: The header without it.
    """

    def __init__(self, header: model.Header, names: Anonymous | None = None) -> None:
        """Learns from the header as it was measured; `names` are those that other runs have taught."""
        self._names = names or Anonymous()
        plain = msgspec.to_builtins(header, enc_hook=model.from_machine)
        for path in PRIVATE:
            _take_out(plain, path.split("."), self._names)
        self._names.know_this_machine()
        # Twice: what is learned at the end is in the beginning too.
        self._names.value(plain)
        hidden = self._names.value(plain)
        self.header: model.Header = msgspec.convert(hidden, model.Header, dec_hook=model.to_machine)

    def learn(self, record: model.Record) -> None:
        """Learns what the record says besides."""
        self._names.learn(record)

    def record(self, record: model.Record) -> model.Record:
        """The record without it."""
        return self._names.struct(record)

    def footer(self, footer: model.Footer) -> model.Footer:
        """The footer without it."""
        return self._names.struct(footer)


def _take_out(fields: model.Json, path: list[str], names: Anonymous) -> None:
    """Replaces what stands at a path, through lists; what it said is known from then on."""
    name, *rest = path
    if isinstance(fields, list):
        for item in fields:
            _take_out(item, path, names)
    elif isinstance(fields, dict) and name in fields:
        value = fields[name]
        if rest:
            _take_out(value, rest, names)
        elif isinstance(value, str):
            if value.strip(" /"):
                fields[name] = names.know(_KIND_OF_PRIVATE.get(name, "path"), value, own=True)
        else:
            fields[name] = None


def _names_in(path: str) -> Iterator[tuple[str, str]]:
    """The user whose folder it lies in, the server of a network file system, and a file's own name."""
    for found in _USERS_FOLDER.finditer(path):
        yield "user", found.group(1) or found.group(2)
    if server := _SERVER.match(path):
        yield "host", server.group(1) or server.group(2)
    name = re.split(r"[/\\]", path)[-1]
    if "/by-id/" in path:
        for match in re.finditer(identifiers.FORMS, name):
            yield from ((kind, said) for _, _, kind, said in identifiers.found(match))
    elif _FILE.fullmatch(name):
        yield "file", name


def _own_names() -> Iterator[tuple[str, str]]:
    """This machine, its user and their home folder."""
    yield "host", socket.gethostname()
    # Neither is there where a container runs as a number.
    with contextlib.suppress(OSError, KeyError, ImportError):
        yield "user", getpass.getuser()
    home = os.path.expanduser("~")  # noqa: PTH111 - as Path.home(), but never an error
    if home.strip("/\\~"):
        yield "path", home


def _is_histogram(value: Mapping[str, model.Json]) -> bool:
    """Counts, encoded: what does not decode is a text like others."""
    encoding, data = value.get("encoding"), value.get("data")
    if not (isinstance(encoding, str) and isinstance(data, str)) or set(value) - {"encoding", "unit", "data"}:
        return False
    try:
        core().decode_histogram(encoding, data)
    except (ValueError, WorkerError):
        return False
    return isinstance(value.get("unit"), str) and len(value["unit"]) <= _SHORTEST_NAME


@functools.cache
def _vocabulary() -> frozenset[str]:
    """The words of the format itself: names of its fields, its fixed values, probes."""
    found: set[str] = set()
    # Without the core a run can still be shared; only a machine that is called as a field loses its name.
    with contextlib.suppress(WorkerError):
        _words_of(msgspec.json.decode(core().schema_json()), found)
        found.update(probe["id"] for probe in msgspec.json.decode(core().list_probes()))
    return frozenset(part.lower() for name in found for part in (name, *re.split(r"[._/ -]", name)))


def _words_of(schema: model.Json, found: set[str]) -> None:
    if isinstance(schema, dict):
        found.update(schema.get("properties", ()))
        found.update(word for word in (*schema.get("enum", ()), schema.get("const")) if isinstance(word, str))
        for item in schema.values():
            _words_of(item, found)
    elif isinstance(schema, list):
        for item in schema:
            _words_of(item, found)
