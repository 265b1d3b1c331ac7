"""Which cheap experiments a ledger suggests: what can be changed from outside the program."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from latlab.explain.file_io import FILE_IO
from latlab.explain.inputs import regular
from latlab.explain.judge import WORTH_JUDGING, weight
from latlab.explain.model import Explained
from latlab.units import format_bytes

_ALLOCATING: Final = ("allocator", "page-faults", "start-and-exit")
_USER: Final = ("user-cpu",)
_KEPT: Final = 64 << 20
_MOST_READ: Final = 64 << 20
_GO: Final = b"\xff Go buildinf:"
_LIBRARIES: Final = {
    "mimalloc": ("libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"),
    "jemalloc": ("libjemalloc.so.2", "libjemalloc.so"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4"),
}
_FOLDERS: Final = ("/usr/local/lib", "/usr/lib", "/usr/lib64", "/lib")
_HUGE_GLIBC: Final = (2, 35)
_OF_RUNTIMES: Final = {
    "go": (
        "go-collects-less",
        "the collector runs when the heap has grown fivefold instead of twofold",
        "GOGC",
        "400",
    ),
    "python": (
        "python-malloc",
        "Python's objects come from malloc, without its own allocator",
        "PYTHONMALLOC",
        "malloc",
    ),
}


Kind = Literal["native", "go", "python", "node", "java", "unknown"]


class Subject(msgspec.Struct, frozen=True):
    """The program's file, as far as it decides what can be changed."""

    path: str
    kind: Kind = "unknown"
    loader: str | None = None
    """The dynamic loader; None: static, or no ELF file."""
    changes_user: bool = False
    """Set-user-id: the loader ignores the environment."""

    @property
    def is_glibc(self) -> bool:
        """Whether glibc loads it."""
        return self.loader is not None and "ld-linux" in self.loader


class Machine(msgspec.Struct, frozen=True):
    """What there is on this machine to change."""

    cpus: int
    allocators: dict[str, str] = {}
    huge_pages: bool = False
    glibc: tuple[int, int] = (0, 0)
    copies: bool = False
    """The files that arguments name can be copied into memory."""
    no_copies: str = ""
    """Why they cannot."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One change.

    Attributes:
        name: stable.
        says: the change in words.
        how: what the user would type or do.
        categories: what it may save; empty: it has no bound.
        environment: variables that are set.
        cache: what is done with the input before each run: as it was, out of memory, into it.
        output: where standard output goes.
        copies: whether the named inputs are copied into memory first.
        cpus: on how many CPUs it runs.
        is_worse: an experiment that asks what is lost, not what is saved.
    """

    name: str
    says: str
    how: str = ""
    categories: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    cache: Literal["as-is", "evicted", "warm"] = "as-is"
    output: Literal["as-is", "null"] = "as-is"
    copies: bool = False
    cpus: int | None = None
    is_worse: bool = False


class Planned(msgspec.Struct, frozen=True):
    """What is to be run, and what is left out and why."""

    baseline: Experiment
    experiments: tuple[Experiment, ...]
    left_out: tuple[str, ...] = ()


def planned(
    explained: Explained, subject: Subject, machine: Machine, inputs: Sequence[Path], input_bytes: int
) -> Planned:
    """The experiments whose categories take at least 3 % of wall time."""
    left_out: list[str] = []
    cold = _was_cold(explained, input_bytes)
    # A run again finds its input in memory: what was cold must be made cold each time.
    cache: Literal["evicted", "warm", "as-is"] = "as-is" if not inputs else "evicted" if cold else "warm"
    baseline = Experiment(name="as-it-was", says="as it was", cache=cache)
    experiments = [
        *_of_input(explained, machine, inputs, cold, input_bytes, left_out),
        *_of_output(explained),
        *_of_memory(explained, subject, machine, left_out),
        *_of_runtimes(explained, subject),
        *_of_threads(explained, machine),
    ]
    others = weight(explained, "network", "sleep", "waiting-for-children")
    if others >= WORTH_JUDGING:
        left_out.append("No experiment can change waits for the network, for a clock or for child processes.")
    return Planned(
        baseline,
        tuple(
            msgspec.structs.replace(each, cache=cache) if each.cache == "as-is" and not each.copies else each
            for each in experiments
        ),
        tuple(left_out),
    )


def _was_cold(explained: Explained, input_bytes: int) -> bool:
    """Whether at least half of the input came from a disk."""
    read = explained.counters.device_read_bytes or 0.0
    return input_bytes > 0 and read >= 0.5 * input_bytes


def _of_input(
    explained: Explained,
    machine: Machine,
    inputs: Sequence[Path],
    cold: bool,
    input_bytes: int,
    left_out: list[str],
) -> list[Experiment]:
    if weight(explained, *FILE_IO) < WORTH_JUDGING:
        return []
    if not inputs:
        left_out.append(
            "It was not seen to read a file of 64 KiB or more: no input to move into or out of memory."
        )
        return []
    shown = format_bytes(input_bytes)
    found = []
    if cold:
        found.append(
            Experiment(
                name="input-in-memory",
                says=f"its input ({shown}) in the page cache",
                how="read the files once beforehand, or keep them in memory",
                categories=FILE_IO,
                cache="warm",
            )
        )
    else:
        found.append(
            Experiment(
                name="input-evicted",
                says=f"its input ({shown}) not in the page cache",
                how="the time of a first run after the machine starts",
                cache="evicted",
                is_worse=True,
            )
        )
    if machine.copies:
        found.append(
            Experiment(
                name="input-on-tmpfs",
                says="the files that its arguments name, copied into memory",
                how="copy them to a file system in memory, such as /dev/shm",
                categories=FILE_IO,
                copies=True,
            )
        )
    elif machine.no_copies:
        left_out.append(f"Input on tmpfs: {machine.no_copies}.")
    return found


def _of_output(explained: Explained) -> list[Experiment]:
    counters = explained.counters
    share = weight(explained, *FILE_IO, "pipe")
    if not counters.written_chars or counters.written_chars < _SMALL_OUTPUT or share < WORTH_JUDGING:
        return []
    return [
        Experiment(
            name="output-to-null",
            says="standard output to /dev/null",
            how="> /dev/null, or write less",
            categories=(*FILE_IO, "pipe"),
            output="null",
        )
    ]


_SMALL_OUTPUT: Final = 1 << 20


def _of_memory(
    explained: Explained, subject: Subject, machine: Machine, left_out: list[str]
) -> list[Experiment]:
    # Where user code cannot be looked into, all of it may be the allocator.
    unseen = explained.row("user-cpu") is not None
    categories = (*_ALLOCATING, *_USER) if unseen else _ALLOCATING
    faults, allocator = weight(explained, "page-faults"), weight(explained, "allocator")
    worth = faults >= WORTH_JUDGING if unseen else faults + allocator >= WORTH_JUDGING
    if not worth:
        return []
    if not subject.is_glibc or subject.changes_user:
        left_out.append(
            "Allocator settings: the program is set-user-id, so the loader ignores them."
            if subject.changes_user
            else "Allocator settings: the program does not use glibc's loader, so they have no effect."
        )
        return []
    keeps = (
        f"glibc.malloc.top_pad={_KEPT}:glibc.malloc.trim_threshold={16 * _KEPT}"
        f":glibc.malloc.mmap_threshold={16 * _KEPT}"
    )
    setting = partial(_of_variable, categories)
    says = "glibc's malloc requests memory in large pieces and keeps it"
    found = [setting("malloc-keeps-memory", says, "GLIBC_TUNABLES", keeps)]
    if machine.huge_pages and machine.glibc >= _HUGE_GLIBC:
        huge = f"{keeps}:glibc.malloc.hugetlb=1"
        found.append(setting("malloc-huge-pages", "the same, in huge pages", "GLIBC_TUNABLES", huge))
    else:
        left_out.append("Huge pages: this kernel does not provide them, or glibc is older than 2.35.")
    if explained.threads.most > 1:
        found.append(setting("malloc-one-arena", "all threads share one heap", "MALLOC_ARENA_MAX", "1"))
    found += [
        setting(f"malloc-{name}", f"{name} instead of its allocator", "LD_PRELOAD", library)
        for name, library in machine.allocators.items()
    ]
    if not machine.allocators:
        left_out.append(f"Another allocator: none of {', '.join(_LIBRARIES)} is installed.")
    return found


def _of_variable(categories: tuple[str, ...], name: str, says: str, variable: str, value: str) -> Experiment:
    """One variable of the environment that is set."""
    how, environment = f"{variable}={value}", {variable: value}
    return Experiment(name=name, says=says, how=how, categories=categories, environment=environment)


def _of_runtimes(explained: Explained, subject: Subject) -> list[Experiment]:
    unseen = explained.row("user-cpu") is not None
    memory = weight(explained, "allocator", "garbage-collection", "page-faults")
    if memory < WORTH_JUDGING and not unseen:
        return []
    categories = (*_ALLOCATING, "garbage-collection", *(_USER if unseen else ()))
    if subject.kind in _OF_RUNTIMES:
        return [_of_variable(categories, *_OF_RUNTIMES[subject.kind])]
    if subject.kind == "node":
        option = f"{os.environ.get('NODE_OPTIONS', '')} --max-semi-space-size=64".strip()
        return [
            Experiment(
                name="node-young-space",
                says="room for 64 MiB of young objects",
                how="NODE_OPTIONS=--max-semi-space-size=64",
                categories=categories,
                environment={"NODE_OPTIONS": option},
            )
        ]
    return []


def _of_threads(explained: Explained, machine: Machine) -> list[Experiment]:
    threads = explained.threads
    if threads.most <= 1 or machine.cpus <= 1 or explained.share("locks", "run-queue-wait") < WORTH_JUDGING:
        return []
    # Fewer CPUs change what all threads do and when: no share of the ledger bounds that.
    return [
        Experiment(
            name=f"on-{count}-cpu{'s' if count > 1 else ''}",
            says=f"on {count} CPU{'s' if count > 1 else ''} of {machine.cpus}",
            how=f"taskset, or {count} thread{'s' if count > 1 else ''}",
            cpus=count,
        )
        for count in dict.fromkeys((1, machine.cpus // 2))
        if 0 < count < machine.cpus
    ]


# ---- what there is


def subject_of(arguments: Sequence[str]) -> Subject:
    """What kind of program a command starts."""
    found = shutil.which(arguments[0]) if arguments else None
    if found is None:
        return Subject(arguments[0] if arguments else "")
    path = Path(found).resolve()
    for _ in range(4):
        interpreter = _interpreter(path)
        if interpreter is None:
            break
        path = interpreter
    return _elf(path)


def _interpreter(path: Path) -> Path | None:
    """The program that a script's first line names."""
    try:
        with regular(path) as file:
            line = file.read(256).split(b"\n", 1)[0]
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    words = line[2:].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    found = shutil.which(words[0]) if words else None
    return Path(found).resolve() if found else None


def _elf(path: Path) -> Subject:
    kind = _kind_of_name(path.name)
    try:
        about = path.stat()
        with regular(path) as file:
            head = file.read(_MOST_READ)
    except OSError:
        return Subject(str(path), kind)
    if head[:4] != b"\x7fELF":
        return Subject(str(path), kind)
    if kind == "unknown":
        kind = "go" if _GO in head else "native"
    return Subject(str(path), kind, _loader(head), bool(about.st_mode & 0o6000))


def _kind_of_name(name: str) -> Kind:
    if name.startswith(("python", "pypy")):
        return "python"
    if name in {"node", "nodejs"}:
        return "node"
    return "java" if name == "java" else "unknown"


def _loader(head: bytes) -> str | None:
    """The dynamic loader that a 64-bit ELF file names."""
    if len(head) < 64 or head[4] != 2:  # noqa: PLR2004 - 64 bits
        return None
    order = "<" if head[5] == 1 else ">"
    table, size, count = (
        struct.unpack_from(f"{order}Q", head, 32)[0],
        struct.unpack_from(f"{order}H", head, 54)[0],
        struct.unpack_from(f"{order}H", head, 56)[0],
    )
    for at in range(table, table + size * count, max(size, 1)):
        if at + 56 > len(head):
            break
        if struct.unpack_from(f"{order}I", head, at)[0] == 3:  # noqa: PLR2004 - PT_INTERP
            offset, _, _, length = struct.unpack_from(f"{order}QQQQ", head, at + 8)
            return head[offset : offset + length].rstrip(b"\0").decode("utf-8", "replace")
    return None


def machine_now(subject: Subject, input_bytes: int, names_input: bool) -> Machine:
    """What this machine offers; a file can be elsewhere only where an argument names it."""
    no_copies = "" if names_input else "no argument names it"
    if input_bytes > _available() / 4:
        no_copies = no_copies or f"{format_bytes(input_bytes)} of it is too much for the free memory"
    return Machine(
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        allocators=_allocators() if subject.is_glibc else {},
        huge_pages=_gives_huge_pages(),
        glibc=_glibc(),
        copies=not no_copies,
        no_copies=no_copies,
    )


def _allocators() -> dict[str, str]:
    folders = [Path(folder) for folder in _FOLDERS]
    folders += [path for folder in folders[:2] for path in folder.glob("*-linux-gnu*") if path.is_dir()]
    found = {}
    for name, files in _LIBRARIES.items():
        for path in (folder / file for file in files for folder in folders):
            if path.is_file():
                found[name] = str(path)
                break
    return found


def _gives_huge_pages() -> bool:
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="ascii")
    except OSError:
        return False
    return "[never]" not in text


def _glibc() -> tuple[int, int]:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = version.split(".")[:2]
        return (int(major), int(minor)) if name == "glibc" else (0, 0)
    except (ValueError, OSError, AttributeError):
        return 0, 0


def _available() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return 0


def given_environment() -> dict[str, str]:
    """The environment that this process was started with, without what Python set for itself."""
    try:
        block = Path("/proc/self/environ").read_bytes()
    except OSError:
        return dict(os.environ)
    pairs = [os.fsdecode(entry).partition("=") for entry in block.split(b"\0") if b"=" in entry[1:]]
    # Of several of one name a program is given the first.
    return {name: value for name, _, value in reversed(pairs)}


def environment_of(experiment: Experiment, before: Mapping[str, str]) -> dict[str, str]:
    """The environment of a run: a preload or tunable of the user's own stays, ours comes where it wins."""
    changed = dict(before)
    for name, value in experiment.environment.items():
        own = before.get(name)
        if own and name == "LD_PRELOAD":
            changed[name] = f"{value}:{own}"
        elif own and name == "GLIBC_TUNABLES":
            changed[name] = f"{own}:{value}"
        else:
            changed[name] = value
    return changed
