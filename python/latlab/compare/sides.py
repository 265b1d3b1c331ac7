"""The two sides of a comparison: which runs they are, and what of them cannot be compared."""

from __future__ import annotations

import contextlib
import functools
import glob
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, Self

from latlab.errors import RunFileError, UserError
from latlab.run.labels import labels
from latlab.run.model import Machine, Settings
from latlab.run.run import Run, load
from latlab.run.store import Store, head
from latlab.text import clean, listed
from latlab.units import format_bytes

_ENDINGS: Final = (".latlab.jsonl", ".latlab.jsonl.zst")
#: Runs of one side.
MOST: Final = 100

#: What every figure depends on, by where a machine's description has it.
OF_ALL: Final = {
    "CPU": "cpu.model_name",
    "number of CPUs": "cpu.logical_cpus",
    "page size": "memory.page_bytes",
    "hypervisor": "virtualisation.hypervisor",
    "cgroup's CPU quota": "limits.cgroup.cpu_quota",
    "cgroup's memory limit": "limits.cgroup.memory_limit_bytes",
    "power source": "cpu.power_source",
}
#: What figures of the disk depend on.
OF_STORAGE: Final = {
    "file system": "dir.file_system.kind",
    "mount options": "dir.file_system.options",
    "disk's device": "dir.file_system.disk",
}
#: What figures of the network depend on, by the run's settings.
OF_NETWORK: Final = ("delay_ms", "rate_mbit", "distance", "url")
OTHER_PATH: Final = "the network's path (--delay, --rate, --distance, --url)"
#: What may have changed what was measured: said, and no reason not to compare.
ENVIRONMENT: Final = {
    "kernel": "os.kernel_release",
    "microcode": "cpu.microcode",
    "C library": "os.libc.version",
    "transparent huge pages": "memory.thp.enabled",
    "frequency governor": "cpu.governor",
    "clock source": "clock_source.current",
}


class Described(Protocol):
    """What was measured, and how: a run, or a host of a fleet."""

    @property
    def machine(self) -> Machine:
        """What it was measured on."""

    @property
    def settings(self) -> Settings:
        """How."""


@dataclass(frozen=True, slots=True)
class Side:
    """Runs that are one side.

    Attributes:
        label: How the side is called.
        runs: At least one; they may have been read in short.
    """

    label: str
    runs: tuple[Run, ...]

    def whole(self) -> Self:
        """The side with the rounds and distributions of its runs.

        Raises:
            RunFileError: a file is not there any more, or damaged.
        """
        return replace(self, runs=tuple(run.whole() for run in self.runs))


@dataclass(frozen=True)
class Named:
    """Run files that are one side, not yet read.

    Attributes:
        label: How the side is called.
        files: At least one.
    """

    label: str
    files: tuple[Path, ...]

    def side(self) -> Side:
        """The side, read.

        Raises:
            UserError: it has too many runs.
            RunFileError: one of its files cannot be read as a run.
        """
        if len(self.files) > MOST:
            raise UserError(f"{self.label!r} names {len(self.files)} runs: a side has {MOST} at most")
        return Side(self.label, tuple(load(file, in_short=True) for file in self.files))

    @functools.cached_property
    def origin(self) -> tuple[set[str], set[str]]:
        """The ids of its runs, and the names of their hosts; runs that have none are of the same host."""
        ids, hosts = set[str](), set[str]()
        for file in self.files:
            # What is wrong with a file is said by its reader.
            with contextlib.suppress(RunFileError):
                own = head(file)
                ids.add(own.id)
                hosts.add(own.machine.text("os.host_name") or "")
        return ids, hosts


def named(words: str, store: Store | None = None) -> Named:
    """The run files that a word names.

    Args:
        words: A run (a file, an id, the beginning of one, `last`, `last~1`), a folder, a glob, `@LABEL` of
            kept runs, or `label=` and one of these; several stand with commas between them.
        store: Where runs are kept.

    Raises:
        UserError: there is no such run.
    """
    label, equals, rest = words.partition("=")
    if not equals or any(mark in label for mark in "/*?."):
        label, rest = "", words
    known = store or Store()
    found = [file for part in rest.split(",") if part for file in files(part, known)]
    if not found:
        raise UserError(f"no run in {clean(words, most=100)!r}: name a run file, a folder, or last")
    short = next((rest.removesuffix(ending) for ending in _ENDINGS if rest.endswith(ending)), rest)
    called = clean(label or short.split("/")[-1] or rest, most=40)
    return Named(called, tuple(dict.fromkeys(found)))


def side(words: str, store: Store | None = None) -> Side:
    """The runs that a word names, as :func:`named` reads it.

    Raises:
        UserError: there is no such run, or there are too many.
    """
    return named(words, store).side()


def both_named(first: str, second: str, store: Store | None = None) -> tuple[Named, Named]:
    """The files of two sides, as :func:`named` reads what names them; their labels differ.

    Raises:
        UserError: a side has no run.
    """
    a, b = named(first, store), named(second, store)
    if a.label == b.label:
        return replace(a, label=f"{a.label} (A)"), replace(b, label=f"{b.label} (B)")
    return a, b


def have_several_hosts(*sides: Named) -> bool:
    """Whether a side has runs of several hosts."""
    return any(len(own.origin[1]) > 1 for own in sides)


def both(first: str, second: str, store: Store | None = None) -> tuple[Side, Side]:
    """Two sides by what names them, as :func:`named` reads it.

    Raises:
        UserError: a side has no run or too many, or both have the same one.
    """
    return read(*both_named(first, second, store))


def read(a: Named, b: Named) -> tuple[Side, Side]:
    """Two sides, read.

    Raises:
        UserError: a side has too many runs, or both have the same one.
    """
    first, second = a.side(), b.side()
    check_apart({run.id for run in first.runs}, {run.id for run in second.runs})
    return first, second


def check_apart(first: Set[str], second: Set[str]) -> None:
    """Refuses two sides that have the same run, by the ids of their runs.

    Raises:
        UserError: they have.
    """
    shared = first & second
    if shared:
        raise UserError(f"the run {clean(min(shared), most=80)} is on both sides: name two that differ")


def files(part: str, store: Store) -> Iterator[Path]:
    """The run files that a word without a comma names; see `side`."""
    path = Path(part)
    if part.startswith("@"):
        known = labels(store)
        yield from (entry.path for entry in store.entries() if known.get(entry.id) == part[1:])
    elif path.is_dir():
        yield from sorted(file for file in path.iterdir() if file.name.endswith(_ENDINGS))
    elif any(mark in part for mark in "*?["):
        yield from (Path(name) for name in sorted(glob.glob(part)))  # noqa: PTH207 - as the shell reads it
    else:
        yield store.resolve(part)


# ------------------------------------------------------------------------------------ what cannot be compared


def unlike(
    first: Collection[Described], second: Collection[Described], names: Mapping[str, str]
) -> list[str]:
    """Which of these fields of the machines differ between any two runs of two sides, with their values."""
    found = []
    for name, at in names.items():
        values = [[value_at(run.machine, at) for run in own] for own in (first, second)]
        if len(set(values[0]) | set(values[1])) > 1:
            found.append(f"{name}: {' against '.join(listed(list(dict.fromkeys(own))) for own in values)}")
    return found


def is_like(machine: Machine, other: Machine) -> bool:
    """Whether all figures of two machines can be compared."""
    return all(
        value_at(machine, at) == value_at(other, at) for at in (*OF_ALL.values(), *OF_STORAGE.values())
    )


def environment(first: Collection[Described], second: Collection[Described]) -> list[str]:
    """What else differs."""
    return unlike(first, second, ENVIRONMENT)


class Objections:
    """Why figures of two sides cannot be compared; found once, asked for each figure.

    Args:
        first: The runs of one side.
        second: Those of the other.
        across: The machines are what is compared: that they differ is no objection.
    """

    def __init__(
        self, first: Collection[Described], second: Collection[Described], *, across: bool = False
    ) -> None:
        self._machines = [] if across else unlike(first, second, OF_ALL)
        self._disks = [] if across else unlike(first, second, OF_STORAGE)
        paths = [
            {tuple(getattr(run.settings, name) for name in OF_NETWORK) for run in own}
            for own in (first, second)
        ]
        self._network = [] if len(paths[0] | paths[1]) == 1 else [OTHER_PATH]

    @property
    def machines(self) -> tuple[str, ...]:
        """What the machines differ by."""
        return (*self._machines, *self._disks)

    def to(self, probe: str, methods: Collection[int]) -> str:
        """Why a figure of a probe cannot be compared, the field named; empty where it can.

        Args:
            probe: Its id.
            methods: The versions of its method on both sides.
        """
        if len(methods) > 1:
            return f"method version: {listed(list(map(str, sorted(methods))))}"
        if self._machines:
            return self._machines[0]
        if probe.startswith("storage.") and self._disks:
            return self._disks[0]
        if probe.startswith("network.") and self._network:
            return self._network[0]
        return ""


def value_at(machine: Machine, at: str) -> str:
    """What a machine's description has at a path, in words."""
    value = machine.at(at)
    if value is None:
        return "unknown" if at in _SAID_WHEN_UNKNOWN else "none"
    if at.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    return clean(", ".join(map(str, value)) if isinstance(value, list) else value, most=60)


_SAID_WHEN_UNKNOWN: Final = frozenset(OF_ALL.values()) - {
    "limits.cgroup.cpu_quota",
    "limits.cgroup.memory_limit_bytes",
    "virtualisation.hypervisor",
}
