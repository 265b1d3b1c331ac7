"""What makes an answer worthless before anything is calculated, each with the command that lifts it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Final

from latlab.compare.sides import value_at
from latlab.predict.answer import Refused
from latlab.predict.job import Job
from latlab.predict.model import EXTRAPOLATED
from latlab.predict.place import MEMORY, REMOTE, Place
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.topics import storage_steady
from latlab.units import format_bytes, format_bytes_as_asked, format_percent

_OF_DISK: Final = frozenset({"read", "write", "copy", "files"})
#: Whose figures these are; what differs makes it another machine.
_HARDWARE: Final = {
    "CPU": "cpu.model_name",
    "number of CPUs": "cpu.logical_cpus",
    "architecture": "os.arch",
    "hypervisor": "virtualisation.hypervisor",
}
#: What changes figures of one machine.
_STATE: Final = {
    "kernel": "os.kernel_release",
    "frequency governor": "cpu.governor",
    "power source": "cpu.power_source",
    "cgroup's CPU quota": "limits.cgroup.cpu_quota",
    "cgroup's memory limit": "limits.cgroup.memory_limit_bytes",
}
_SYSTEM: Final = {
    "mount point": "dir.file_system.mount_point",
    "file system": "dir.file_system.kind",
    "disk": "dir.file_system.source",
}
#: A disk that loses so much of its rate within a stream is throttled, or has a cache of its own.
_FALLEN: Final = 0.7


def refused(job: Job, run: Run, here: Machine, place: Place | None) -> Refused | None:
    """Why a job is not answered; None where nothing speaks against it.

    Args:
        job: What is done.
        run: What was measured.
        here: This machine, with the file system that the job is on.
        place: What the job reads, where that is known.
    """
    return next(_reasons(job, run, here, place), None)


def _reasons(job: Job, run: Run, here: Machine, place: Place | None) -> Iterator[Refused]:
    for name, at in _HARDWARE.items():
        if value_at(run.machine, at) != value_at(here, at):
            yield Refused(
                f"the run is of another machine ({_differ(name, at, run.machine, here)})", "latlab measure"
            )
    for name, at in _STATE.items():
        if value_at(run.machine, at) != value_at(here, at):
            yield Refused(
                f"this machine has changed since the run ({_differ(name, at, run.machine, here)})",
                "latlab measure",
            )
    if job.kind in _OF_DISK:
        yield from _of_system(job, run, here, place)
        yield from _of_stream(job, run)


def _of_system(job: Job, run: Run, here: Machine, place: Place | None) -> Iterator[Refused]:
    kind = here.text("dir.file_system.kind") or "unknown"
    point = here.text("dir.file_system.mount_point") or "/"
    if kind in MEMORY or here.flag("dir.file_system.in_memory"):
        yield Refused(f"{point} is {kind}, which is memory and no disk", f"latlab predict scan {job.bytes}")
    flags = ("dir.file_system.network", "dir.file_system.user_space")
    if kind.startswith(REMOTE) or any(here.flag(at) for at in flags):
        yield Refused(
            f"{point} is {kind}: a server or a program answers there, and what it does is not known",
            "latlab explain -- COMMAND (it runs the job and says where its time goes)",
        )
    for name, at in _SYSTEM.items():
        if value_at(run.machine, at) != value_at(here, at):
            folder = place.path if place else point
            yield Refused(
                f"the run measured another file system ({_differ(name, at, run.machine, here)})",
                f"latlab measure --only 'storage.*' --dir {folder}",
            )
    if place is not None and place.has_holes:
        yield Refused(
            f"it takes {format_bytes(place.on_disk)} of its {format_bytes(place.size)} on the disk:"
            " it has holes, or is compressed",
            f"latlab predict {job.kind} {place.on_disk}",
        )
    free = here.integer("dir.file_system.available_bytes")
    writes = job.kind in {"write", "copy"} or (job.kind == "files" and not job.options.reading)
    if writes and free is not None and job.bytes > free:
        yield Refused(
            f"there is no room for it: {point} has {format_bytes_as_asked(free)} left", f"df -h {point}"
        )
    total = here.integer("dir.file_system.total_bytes")
    if job.kind in {"read", "files"} and total is not None and job.bytes > total:
        yield Refused(f"{point} holds {format_bytes_as_asked(total)} in all", f"df -h {point}")


def _of_stream(job: Job, run: Run) -> Iterator[Refused]:
    """A device that slows down in a long stream: what a longer one takes nobody knows."""
    for record in storage_steady.records(run):
        rates = [rate for _, rate in storage_steady.slices(record)]
        quarter = max(len(rates) // 4, 1)
        first, last = (statistics.fmean(own) for own in (rates[:quarter], rates[-quarter:]))
        moved = record.work.bytes
        if moved and last < _FALLEN * first and job.bytes > EXTRAPOLATED * moved:
            yield Refused(
                f"within {format_bytes(moved)} the disk slowed down to {format_percent(last / first)} of its"
                " rate; how it goes on is not known",
                f"latlab measure --only storage.steady --profile thorough --max-bytes {job.bytes}",
            )


def _differ(name: str, at: str, first: Machine, second: Machine) -> str:
    return f"{name}: {value_at(first, at)} then, {value_at(second, at)} now"
