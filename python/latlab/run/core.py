"""The measuring core as Python sees it: what it can measure, what it would do, what this machine is."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from latlab.errors import WorkerError
from latlab.run import model
from latlab.text import clean


class ProbeInfo(msgspec.Struct, frozen=True):
    """What a probe is, as `latlab list` shows it."""

    id: str
    tier: str
    title: str
    question: str
    method: str
    method_version: int
    unit: model.Unit
    convention: str = ""
    needs: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    saturates: bool = False


class Layout(msgspec.Struct, frozen=True):
    """Writing the test file that all probes of the disk share, in time of its own."""

    written_bytes: int
    seconds: float


class Plan(msgspec.Struct, frozen=True):
    """What a run would do: `seconds` of wall time; at most, bytes held at once and written, CPUs busy.

    What is said of a probe is for one pass of rounds; with more than one of `passes`, rounds go on until
    figures agree, for `seconds` at most.
    """

    probes: tuple[model.PlannedProbe, ...]
    seconds: float
    memory_bytes: int
    written_bytes: int
    cpus: int
    passes: int = 1
    unmatched: tuple[str, ...] = ()
    layout: Layout | None = None


class Description(msgspec.Struct, frozen=True):
    """This machine, its clock, and what describes them."""

    machine: model.Machine
    clock: model.ClockFacts
    tool: model.Tool


def core() -> Any:  # noqa: ANN401 - an extension module
    """The measuring core.

    Raises:
        WorkerError: it is not there; a run can still be read.
    """
    try:
        from latlab import _core  # noqa: PLC0415 - 10 ms that reading a run does not need
    except ImportError as error:
        raise WorkerError(
            f"the measuring core cannot be loaded ({clean(error, most=200)}):"
            " reinstall latlab, or run `make build`"
        ) from None
    return _core


def list_probes() -> list[ProbeInfo]:
    """Every probe, in the order in which they run."""
    return msgspec.json.decode(core().list_probes(), type=list[ProbeInfo])


def matches(probe: str, glob: str) -> bool:
    """Whether a glob names a probe, as the core reads it: the beginning of an id up to a dot does too."""
    return fnmatchcase(probe, glob) or probe.startswith(f"{glob}.")


def plan(settings: model.Settings) -> Plan:
    """What a run with these settings would do here; touches nothing."""
    return msgspec.json.decode(core().plan(msgspec.json.encode(settings).decode()), type=Plan)


def describe(directory: str | os.PathLike[str] | None = None) -> Description:
    """This machine, and the file system of a directory; about 0.1 s."""
    text = core().describe(None if directory is None else os.fspath(directory))
    return msgspec.json.decode(text, type=Description, dec_hook=model.to_machine)


def sweep(directory: str | os.PathLike[str] | None = None) -> int:
    """Removes abandoned scratch folders of this user's from a directory, by default the one that is measured.

    Returns:
        How many were removed; 0 too where the directory cannot be used.
    """
    return int(core().sweep(None if directory is None else os.fspath(directory)))
