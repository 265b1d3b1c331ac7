"""A job in the words of the command line: `read 30GB`, `files 100000 10KB`, `requests 20000`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from latlab.errors import UserError
from latlab.text import clean, listed
from latlab.units import format_bytes_as_asked, format_count, parse_count, parse_size

Kind: TypeAlias = Literal[
    "read", "write", "copy", "files", "random", "scan", "syscalls", "transfers", "requests"
]
Connections: TypeAlias = Literal["new", "kept"]
Flush: TypeAlias = Literal["end", "each", "none"]
Cache: TypeAlias = Literal["cold", "cached"]

#: What `cat`, `cp` and most libraries read and write at once.
BLOCK: Final = 128 << 10


@dataclass(frozen=True, slots=True)
class Options:
    """What is said of how a job is done; None where it is not said.

    Attributes:
        block: Bytes a call.
        cache: Whether what is read is in the page cache.
        direct: Past the page cache.
        fsync: When what is written is made durable.
        reading: Files are read, and not written.
        depth: Reads or writes at random places that are under way together.
        random: Memory is read at random.
        rtt_s: Round trip to the server, seconds.
        rate: Bytes a second that the path carries.
        at_once: Concurrent transfers.
        connections: Whether each opens one of its own.
        https: Whether connections use TLS.
    """

    block: int | None = None
    cache: Cache | None = None
    direct: bool = False
    fsync: Flush | None = None
    reading: bool = False
    depth: int = 1
    random: bool = False
    rtt_s: float | None = None
    rate: float | None = None
    at_once: int = 1
    connections: Connections | None = None
    https: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    Attributes:
        kind: What is done.
        count: How many files, calls, transfers or requests; 1 of a stream.
        size: Bytes of each of them.
        options: How.
        path: The file or folder that it is about; empty where only a size was given.
        files: How many files that is; 0 where nothing says.
    """

    kind: Kind
    count: int
    size: int
    options: Options
    path: str = ""
    files: int = 0

    @property
    def bytes(self) -> int:
        """All bytes."""
        return self.count * self.size

    @property
    def reads(self) -> bool:
        """Whether it reads from a disk, and only that."""
        return self.kind == "read" or (self.kind in {"files", "random"} and self.options.reading)

    @property
    def writes(self) -> bool:
        """Whether it writes to a disk."""
        return self.kind in ON_DISK and not self.reads

    @property
    def asked(self) -> str:
        """Its words: `read 30GB --direct`."""
        size = format_bytes_as_asked(self.size).replace(" ", "")
        place = shlex.quote(self.path) if self.path else size
        words = {"COUNT": str(self.count), "SIZE": size, "SIZE|PATH": place}
        return " ".join([self.kind, *(words[each] for each in KINDS[self.kind][0].split()), *self._flags()])

    def _flags(self) -> Iterator[str]:
        usual = Options()
        for field, flag in _FLAGS.items():
            value = getattr(self.options, field)
            if value == getattr(usual, field):
                continue
            if field == "cache":
                yield f"--{value}"
            elif value is True:
                yield flag
            else:
                written = {"rtt_s": f"{value}s", "rate": f"{(self.options.rate or 0) * 8 / 1e6:g}"}
                yield f"{flag} {written.get(field, value)}"

    @property
    def text(self) -> str:
        """`read 30 GB`."""
        size = format_bytes_as_asked(self.size)
        if self.path:
            return f"{self.kind} {clean(self.path, most=80)} ({format_bytes_as_asked(self.bytes)})"
        if self.kind in {"files", "random", "transfers"}:
            how = "" if self.kind == "transfers" else " read" if self.reads else " write"
            return f"{self.kind} {format_count(self.count)} of {size}{how}"
        if self.kind in {"syscalls", "requests"}:
            return f"{self.kind} {format_count(self.count)}"
        return f"{self.kind} {size}"


#: Kinds whose bytes are on a disk.
ON_DISK: Final[frozenset[Kind]] = frozenset({"read", "write", "copy", "files", "random"})
#: What each kind takes after its name, and what it is, for `latlab predict list`.
KINDS: Final[dict[Kind, tuple[str, str]]] = {
    "read": ("SIZE|PATH", "read a file, or all of a folder: --block, --cold or --cached, --direct"),
    "write": ("SIZE", "write a file from front to back: --block, --direct, --fsync end, each or none"),
    "copy": ("SIZE|PATH", "copy a file, or all of a folder: --cold or --cached, --fsync"),
    "files": ("COUNT SIZE", "write small files, or read them with --read: --cold or --cached, --fsync each"),
    "random": ("COUNT SIZE", "write blocks at random places of a file, or read them with --read: --depth"),
    "scan": ("SIZE", "read memory sequentially, or at random with --random"),
    "syscalls": ("COUNT", "make the cheapest system call"),
    "transfers": ("COUNT SIZE", "fetch files over HTTP: --rtt, --rate, --at-once, --connections new or kept"),
    "requests": ("COUNT", "ask a server for a byte: --rtt, --at-once, --connections new or kept"),
}
_ALLOWED: Final[dict[Kind, frozenset[str]]] = {
    "read": frozenset({"block", "cache", "direct"}),
    "write": frozenset({"block", "direct", "fsync"}),
    "copy": frozenset({"cache", "fsync"}),
    "files": frozenset({"cache", "fsync", "reading"}),
    "random": frozenset({"reading", "depth", "cache"}),
    "scan": frozenset({"random"}),
    "syscalls": frozenset(),
    "transfers": frozenset({"rtt_s", "rate", "at_once", "connections", "https"}),
    "requests": frozenset({"rtt_s", "at_once", "connections", "https"}),
}
_FLAGS: Final = {
    "block": "--block",
    "cache": "--cold and --cached",
    "direct": "--direct",
    "fsync": "--fsync",
    "reading": "--read",
    "depth": "--depth",
    "random": "--random",
    "rtt_s": "--rtt",
    "rate": "--rate",
    "at_once": "--at-once",
    "connections": "--connections",
    "https": "--https",
}


def parse(words: Sequence[str], options: Options, size_of: Callable[[str], tuple[int, int]]) -> Job:
    """The job that words name.

    Args:
        words: `["read", "30GB"]`.
        options: How it is done.
        size_of: The bytes of a path and its files, asked where a word is not a size.

    Raises:
        UserError: they name none, or an option has no meaning for it.
    """
    name, *rest = words or [""]
    kind = next((own for own in KINDS if own == name), None)
    if kind is None:
        raise UserError(
            f"{clean(name, most=60)!r} is not a job: {listed(list(KINDS))}; `latlab predict list` shows them"
        )
    for field, flag in _FLAGS.items():
        if getattr(options, field) != getattr(Options(), field) and field not in _ALLOWED[kind]:
            raise UserError(f"{flag} has no meaning for {kind}")
    if options.cache and kind in {"files", "random"} and not options.reading:
        raise UserError(f"--{options.cache} has no meaning for writing {kind}")
    if options.direct and options.cache:
        raise UserError("--direct goes past the page cache: leave out --cold and --cached")
    wanted = KINDS[kind][0].split()
    if len(rest) != len(wanted):
        raise UserError(f"latlab predict {kind} takes {' '.join(wanted)}")
    if wanted[0] == "COUNT":
        count = parse_count(rest[0])
        if count < 1:
            raise UserError(f"latlab predict {kind} takes a count above zero")
        return Job(kind, count, parse_size(rest[1]) if len(rest) > 1 else 1, options)
    try:
        size = parse_size(rest[0])
    except UserError:
        if "PATH" not in wanted[0]:
            raise
        size, files = size_of(rest[0])
        return Job(kind, 1, size, options, rest[0], files)
    if size < 1:
        raise UserError(f"latlab predict {kind} takes a size above zero")
    return Job(kind, 1, size, options)
