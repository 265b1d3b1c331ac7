"""A host of a fleet, from its run files: what it is, and its headline figures in short."""

from __future__ import annotations

import contextlib
import math
import statistics
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from latlab.compare import headlines
from latlab.compare.sides import OF_NETWORK, value_at
from latlab.errors import RunFileError
from latlab.run.brief import Brief, brief
from latlab.run.meanwhile import Meanwhile
from latlab.run.model import Machine, Settings, Unit
from latlab.run.run import load
from latlab.run.saving import save
from latlab.run.store import head
from latlab.run.values import Json
from latlab.text import clean
from latlab.units import format_bytes

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

    def fields(self) -> dict[str, str]:
        """What distinguishes it from other classes, by what it is called."""
        memory = format_bytes(math.exp(self.memory / _MEMORY_STEPS))
        return {
            **dict(zip(HARDWARE, self.hardware, strict=True)),
            "memory": f"about {memory}",
            "disk": self.disk,
            "measured": " ".join(self.measured),
        }


@dataclass(frozen=True, slots=True)
class Value:
    """A figure of a host.

    Attributes:
        value: The median over its runs.
        error: Standard error of its logarithm, by the run's own rounds; None where unknown.
        unit: Of the value.
        method: Version of the probe's method, the latest of its runs.
        disturbed: Whether something else ran meanwhile.
    """

    value: float
    error: float | None
    unit: Unit
    method: int
    disturbed: bool = False

    @property
    def slowness(self) -> float:
        """Its logarithm, such that more is slower."""
        return math.log(self.value) if self.unit == "ns" else -math.log(self.value)


class Figures(Mapping[Key, Value]):
    """Figures of a host in an array: those of 10,000 hosts would fill the memory as objects.

    Args:
        places: Where each figure is in the arrays of all hosts; grows.
        values: The host's.
    """

    __slots__ = ("_numbers", "_places")

    def __init__(self, places: dict[Key, int], values: Mapping[Key, Value]) -> None:
        self._places = places
        last = max((places.setdefault(key, len(places)) for key in values), default=-1)
        self._numbers = array("d", [math.nan]) * (_NUMBERS * (last + 1))
        for key, own in values.items():
            error = math.nan if own.error is None else own.error
            numbers = array("d", (own.value, error, _UNITS.index(own.unit), own.method, own.disturbed))
            self._numbers[_NUMBERS * places[key] : _NUMBERS * (places[key] + 1)] = numbers

    def __getitem__(self, key: Key) -> Value:
        place = self._places[key]
        if not self._has(place):
            raise KeyError(key)
        value, error, unit, method, disturbed = self._numbers[_NUMBERS * place : _NUMBERS * (place + 1)]
        known_error = None if math.isnan(error) else error
        return Value(value, known_error, _UNITS[int(unit)], int(method), bool(disturbed))

    def __iter__(self) -> Iterator[Key]:
        return (key for key, place in self._places.items() if self._has(place))

    def __len__(self) -> int:
        return sum(map(self._has, self._places.values()))

    def _has(self, place: int) -> bool:
        start = _NUMBERS * place
        return start < len(self._numbers) and not math.isnan(self._numbers[start])


_UNITS: Final[tuple[Unit, ...]] = ("ns", "bytes_per_s")
#: Of a figure.
_NUMBERS: Final = 5


@dataclass(frozen=True, slots=True)
class Host:
    """A host.

    Attributes:
        name: How it is called: its name, or its file's where the run is anonymous.
        own_class: What it is compared with.
        machine: Its description, without what changes from minute to minute (:data:`_PASSING`).
        settings: What of its last run's settings figures depend on.
        figures: Headline figures; without disturbed ones where there are others.
        disturbed: How many figures of its runs were.
        runs: How many runs of it there are.
        meanwhile: What else happened during the last of them.
    """

    name: str
    own_class: Class
    machine: Machine
    settings: Settings
    figures: Mapping[Key, Value] = field(repr=False)
    disturbed: int
    runs: int
    meanwhile: Meanwhile | None = None


def hosts(
    paths: Iterable[Path], called: Mapping[Path, str] | None = None
) -> tuple[list[Host], dict[Key, str]]:
    """Reads run files, one after the other; several of one host and class are its repeats.

    Of a run about 1 KiB stays in memory: hosts share what is equal.

    Args:
        paths: Run files.
        called: The names of their hosts, where those are not what the files say.

    Returns:
        The hosts in the order of their first files, and the names of the figures.

    Raises:
        RunFileError: one of the files cannot be read as a run.
    """
    classes: dict[Class, tuple[Class, dict[Key, int]]] = {}
    names: dict[Key, str] = {}
    known: dict[object, Any] = {}
    found: dict[tuple[str, Class], list[Host]] = {}
    for path in paths:
        own = head(path)
        which = class_of(own.machine, own.settings.profile, own.settings.only)
        if which not in classes:
            headline = {Key(*at): name for at, name in headlines(load(path, in_short=True)).items()}
            names |= headline
            classes[which] = which, {key: place for place, key in enumerate(headline)}
        which, places = classes[which]
        said = own.machine.text("os.host_name") or path.name.partition(".")[0]
        name = clean((called or {}).get(path, said), most=60)
        short = brief(path, own, partial(_is_in, places))
        found.setdefault((name, which), []).append(_host(name, which, short, places, known))
    names[CPU_TIME] = "1 s of CPU time"
    return [_together(runs, classes[which][1]) for (_, which), runs in found.items()], names


def _is_in(wanted: Mapping[Key, int], probe: str, point: str) -> bool:
    return Key(probe, point) in wanted


def damage(file: Path) -> str:
    """Why what a host sent cannot be read as a run; empty where it can."""
    try:
        load(file)
    except RunFileError as error:
        return f"what it sent is no run file: {error}".replace(f"{file}:", "line ")
    return ""


def tell_apart(called: Mapping[Path, str]) -> None:
    """Writes into run files what their hosts are called, where different hosts have one name.

    By it they are found again when surveys are compared.

    Args:
        called: Run files, and the names of their hosts.

    Raises:
        UserError: a file cannot be written.
    """
    of_name: dict[str, set[str]] = {}
    said: dict[Path, str] = {}
    for file, name in called.items():
        with contextlib.suppress(RunFileError):
            said[file] = head(file).machine.text("os.host_name") or ""
            of_name.setdefault(said[file], set()).add(name)
    for file, own in said.items():
        if len(of_name[own]) > 1:
            first, _, rest = file.read_bytes().partition(b"\n")
            header = msgspec.json.decode(first)
            header["machine"].setdefault("os", {})["host_name"] = called[file]
            save(file, msgspec.json.encode(header) + b"\n" + rest)


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


def _host(name: str, which: Class, run: Brief, places: dict[Key, int], known: dict[object, Any]) -> Host:
    """A host with one run."""
    values: dict[Key, list[Value]] = {}
    for each in run.medians:
        value = Value(each.value, each.error, each.unit, each.method, each.disturbed)
        values.setdefault(Key(each.key.probe, each.key.point), []).append(value)
    lost = run.meanwhile.interrupted if run.meanwhile is not None else None
    if lost is not None:
        values[CPU_TIME] = [Value(1e9 / max(1 - lost, _LEAST_LEFT), None, "ns", 1)]
    settings = Settings(**{name: getattr(run.head.settings, name) for name in OF_NETWORK})
    return Host(
        name,
        which,
        Machine(_shared(_lasting(run.head.machine), known)),
        known.setdefault(settings, settings),
        Figures(places, {key: _middle(own) for key, own in values.items()}),
        sum(each.disturbed for each in run.medians),
        1,
        run.meanwhile,
    )


def _together(runs: Sequence[Host], places: dict[Key, int]) -> Host:
    """A host with several runs: each figure's median."""
    if len(runs) == 1:
        return runs[0]
    values: dict[Key, list[Value]] = {}
    for key, value in (pair for run in runs for pair in run.figures.items()):
        values.setdefault(key, []).append(value)
    return replace(
        runs[-1],
        figures=Figures(places, {key: _middle(own) for key, own in values.items()}),
        disturbed=sum(run.disturbed for run in runs),
        runs=len(runs),
    )


def _middle(values: Sequence[Value]) -> Value:
    """One figure of several runs: the median of undisturbed ones, if any, with the error of their mean."""
    values = [own for own in values if not own.disturbed] or values
    errors = [own.error for own in values if own.error is not None]
    error = math.hypot(*errors) / len(errors) if errors else None
    return Value(
        statistics.median(own.value for own in values),
        error,
        values[0].unit,
        max(own.method for own in values),
        values[0].disturbed,
    )


#: What of a description differs between two measurements of one host, or between hosts that are alike, and
#: explains no figure. Other parts are equal on most hosts, and shared.
_PASSING: Final = (
    "os.host_name",
    "memory.available_bytes",
    "limits.usable_memory_bytes",
    "limits.cgroup.memory_left_bytes",
    "dir.file_system.available_bytes",
    "file_systems",
    "unknown",
)


def _lasting(machine: Machine) -> dict[str, Json]:
    """A description without :data:`_PASSING`."""
    kept: dict[str, Json] = dict(machine)
    for path in _PASSING:
        *outer, last = path.split(".")
        place = kept
        for name in outer:
            inner = place.get(name)
            place[name] = dict(inner) if isinstance(inner, dict) else {}
            place = place[name]
        place.pop(last, None)
    return kept


def _shared(value: Json, known: dict[object, Json]) -> Json:
    """The same value, each part of it one object for all that are equal to it."""
    key: object = (type(value), value)
    if isinstance(value, dict):
        value = {name: _shared(each, known) for name, each in value.items()}
        # What is known stays: no other object has its id.
        key = (*value, *map(id, value.values()))
    elif isinstance(value, list):
        value = [_shared(each, known) for each in value]
        key = (list, *map(id, value))
    return known.setdefault(key, value)


def by_class(found: Iterable[Host]) -> dict[Class, list[Host]]:
    """The hosts of each class, the largest class first."""
    classes: dict[Class, list[Host]] = {}
    for host in found:
        classes.setdefault(host.own_class, []).append(host)
    return dict(sorted(classes.items(), key=lambda own: -len(own[1])))
