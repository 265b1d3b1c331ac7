"""A host of a fleet, from its run files: what it is, and its headline figures in short."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from latlab.compare import headlines
from latlab.compare.sides import value_at
from latlab.errors import RunFileError
from latlab.run.brief import Brief, brief
from latlab.run.meanwhile import Meanwhile
from latlab.run.model import Machine, Unit
from latlab.run.run import load
from latlab.run.store import head
from latlab.text import clean

#: What hosts of one class share, by where a machine's description has it.
HARDWARE: Final = {
    "CPU": "cpu.model_name",
    "number of CPUs": "cpu.logical_cpus",
    "architecture": "os.arch",
    "kernel": "os.kernel_release",
    "microcode": "cpu.microcode",
    "file system": "dir.file_system.kind",
}
#: Hosts with the same memory modules differ by what their firmware keeps: a class has steps of a tenth.
_MEMORY_STEPS: Final = 1 / math.log(1.1)


class Key(NamedTuple):
    """A figure's probe and its point."""

    probe: str
    point: str


#: Wall time that a second of work takes on one CPU: quotas, other programs and the host make it longer.
CPU_TIME: Final = Key("cpu.time", "1 s of work")
#: Of which at least so much is left.
_LEAST_LEFT: Final = 0.001


class Class(NamedTuple):
    """Hosts that are compared with one another.

    Attributes:
        hardware: Values of :data:`HARDWARE`, in its order.
        memory: Which step its memory is.
        disk: Model of the disk that was measured, or what is known of it.
        measured: The profile and the probes of its runs.
    """

    hardware: tuple[str, ...]
    memory: int
    disk: str
    measured: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A figure of a host.

    Attributes:
        value: The median over its runs.
        error: Standard error of its logarithm, by the run's own rounds; None where unknown.
        unit: Of the value.
    """

    value: float
    error: float | None
    unit: Unit

    @property
    def slowness(self) -> float:
        """Its logarithm, such that more is slower."""
        return math.log(self.value) if self.unit == "ns" else -math.log(self.value)


@dataclass(frozen=True, slots=True)
class Host:
    """A host.

    Attributes:
        name: How it is called: its name, or its file's where the run is anonymous.
        own_class: What it is compared with.
        machine: Its description.
        figures: Headline figures; of several runs, without disturbed ones where there are others.
        disturbed: How many figures of its runs were.
        runs: How many runs of it there are.
        meanwhile: What else happened during the last of them.
    """

    name: str
    own_class: Class
    machine: Machine
    figures: Mapping[Key, Value] = field(repr=False)
    disturbed: int
    runs: int
    meanwhile: Meanwhile | None = None


def hosts(
    paths: Iterable[Path], called: Mapping[Path, str] | None = None
) -> tuple[list[Host], dict[Key, str]]:
    """Reads run files, one after the other; several of one host and class are its repeats.

    Args:
        paths: Run files.
        called: The names of their hosts, where those are not what the files say.

    Returns:
        The hosts in the order of their first files, and the names of the figures.

    Raises:
        RunFileError: one of the files cannot be read as a run.
    """
    names: dict[Class, dict[Key, str]] = {}
    found: dict[tuple[str, Class], list[Brief]] = {}
    for path in paths:
        own = head(path)
        which = class_of(own.machine, own.settings.profile, own.settings.only)
        if which not in names:
            names[which] = {Key(*at): name for at, name in headlines(load(path)).items()}
        wanted = names[which]
        said = own.machine.text("os.host_name") or path.name.partition(".")[0]
        name = clean((called or {}).get(path, said), most=60)
        short = brief(path, own, partial(_is_in, wanted))
        found.setdefault((name, which), []).append(short)
    together = {key: name for own in names.values() for key, name in own.items()}
    together[CPU_TIME] = "1 s of CPU time"
    return [_host(name, which, runs) for (name, which), runs in found.items()], together


def _is_in(wanted: Mapping[Key, str], probe: str, point: str) -> bool:
    return Key(probe, point) in wanted


def damage(file: Path) -> str:
    """Why what a host sent cannot be read as a run; empty where it can."""
    try:
        load(file)
    except RunFileError as error:
        return f"what it sent is no run file: {error}".replace(f"{file}:", "line ")
    return ""


def class_of(machine: Machine, profile: str, only: Iterable[str] = ()) -> Class:
    """The class of a machine that was measured like this."""
    disk = machine.text("dir.file_system.disk")
    known = next((own for own in machine.sections("disks") if own.text("name") == disk), Machine({}))
    memory = machine.integer("memory.total_bytes") or 1
    return Class(
        tuple(value_at(machine, at) for at in HARDWARE.values()),
        round(math.log(memory) * _MEMORY_STEPS),
        clean(known.text("model") or f"rotational: {known.flag('rotational_flag')}", most=60),
        (profile, *only),
    )


def _host(name: str, which: Class, runs: list[Brief]) -> Host:
    values: dict[Key, list[Value]] = {}
    disturbed: dict[Key, list[Value]] = {}
    for run in runs:
        for median in run.medians:
            kept = disturbed if median.disturbed else values
            key = Key(median.key.probe, median.key.point)
            kept.setdefault(key, []).append(Value(median.value, median.error, median.unit))
        lost = run.meanwhile.interrupted if run.meanwhile is not None else None
        if lost is not None:
            took = Value(1e9 / max(1 - lost, _LEAST_LEFT), None, "ns")
            values.setdefault(CPU_TIME, []).append(took)
    return Host(
        name,
        which,
        runs[-1].head.machine,
        {key: _together(own) for key, own in (disturbed | values).items()},
        sum(map(len, disturbed.values())),
        len(runs),
        runs[-1].meanwhile,
    )


def _together(values: list[Value]) -> Value:
    """One figure of several runs: their median, with the error of one of them."""
    errors = [own.error for own in values if own.error is not None]
    return Value(statistics.median(own.value for own in values), max(errors, default=None), values[0].unit)


def by_class(found: Iterable[Host]) -> dict[Class, list[Host]]:
    """The hosts of each class, the largest class first."""
    classes: dict[Class, list[Host]] = {}
    for host in found:
        classes.setdefault(host.own_class, []).append(host)
    return dict(sorted(classes.items(), key=lambda own: -len(own[1])))


def differences(a: Class, b: Class) -> Iterator[str]:
    """What two classes differ by, in words."""
    for name, first, second in zip(HARDWARE, a.hardware, b.hardware, strict=True):
        if first != second:
            yield f"{name}: {first} against {second}"
    if a.memory != b.memory:
        yield "size of memory"
    if a.disk != b.disk:
        yield f"disk: {a.disk} against {b.disk}"
    if a.measured != b.measured:
        yield f"measured: {', '.join(a.measured)} against {', '.join(b.measured)}"
