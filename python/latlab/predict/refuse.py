"""What rules out an answer before anything is calculated, each with the command that remedies it."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from latlab.predict.answer import Refused
from latlab.predict.job import ON_DISK, Job
from latlab.predict.model import EXTRAPOLATED
from latlab.predict.place import COMPRESSED, MEMORY, PACKED, REMOTE, Limits, Place
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.text import clean
from latlab.units import format_bytes, format_bytes_as_asked, format_percent

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
#: Longer writes meet the end of a drive's cache, or of a cloud's credits, which few have below it.
_PROBED_BYTES: Final = 10 << 30
#: Programs that wait so much of the time for a disk leave no room for another.
_BUSY: Final = 0.3
_PRESSURE: Final = Path("/proc/pressure/io")
#: A disk that loses so much of its rate within a stream is throttled, or has a cache of its own.
_FALLEN: Final = 0.7


def refused(job: Job, run: Run, here: Machine, place: Place | None, known: Limits) -> Refused | None:
    """Why a job is not answered; None where nothing speaks against it.

    Args:
        job: What is done.
        run: What was measured.
        here: This machine, with the file system that the job is on.
        place: What the job reads, where that is known.
        known: What bounds the page cache here.
    """
    return next(_reasons(job, run, here, place, known), None)


def _reasons(job: Job, run: Run, here: Machine, place: Place | None, known: Limits) -> Iterator[Refused]:
    """In the order in which they are said."""
    for name, at in _HARDWARE.items():
        if run.machine.at(at) != here.at(at):
            yield Refused(
                f"the run is of another machine ({_differ(name, at, run.machine, here)})", "latlab measure"
            )
    for name, at in _STATE.items():
        if run.machine.at(at) != here.at(at):
            yield Refused(
                f"this machine has changed since the run ({_differ(name, at, run.machine, here)})",
                "latlab measure",
            )
    yield from _of_memory(job, known)
    if job.kind in ON_DISK:
        yield from _of_system(job, run, here, place)
        yield from _of_stream(job, run)
        yield from _of_now(job)


def _of_memory(job: Job, known: Limits) -> Iterator[Refused]:
    """What has to be in memory, and is not."""
    room = format_bytes_as_asked(known.memory)
    half = format_bytes_as_asked(max(known.memory // 2, 1)).replace(" ", "")
    if job.kind == "scan" and job.bytes > known.memory:
        yield Refused(f"it does not fit into memory: {room} may be used", f"latlab predict scan {half}")
    if job.options.cache == "cached" and job.bytes > known.memory:
        yield Refused(
            f"it cannot be in the page cache: {room} may be used", f"latlab predict {job.asked} --cold"
        )


def _of_now(job: Job) -> Iterator[Refused]:
    """Other programs that keep the disk busy: how they share it nobody knows."""
    try:
        text = _PRESSURE.read_text(encoding="utf-8")
    except OSError:
        return
    some = re.search(r"^some avg10=([\d.]+)", text, re.MULTILINE)
    share = float(some[1]) / 100 if some else 0.0
    if share > _BUSY:
        yield Refused(
            f"other programs wait for a disk {format_percent(share)} of the time now",
            f"latlab predict --measure {job.asked}",
        )


def _of_system(job: Job, run: Run, here: Machine, place: Place | None) -> Iterator[Refused]:
    kind = here.text("dir.file_system.kind") or "unknown"
    point = here.text("dir.file_system.mount_point") or "/"
    if kind in MEMORY or here.flag("dir.file_system.in_memory"):
        yield Refused(f"{point} is {kind}, which is memory, not a disk", f"latlab predict scan {job.bytes}")
    flags = ("dir.file_system.network", "dir.file_system.user_space")
    if kind.startswith(REMOTE) or any(here.flag(at) for at in flags):
        yield Refused(
            f"{point} is {kind}: a server or a program answers there, and its speed is unknown",
            "latlab explain -- COMMAND (it runs the job and says where its time goes)",
        )
    for name, at in _SYSTEM.items():
        if run.machine.at(at) != here.at(at):
            folder = place.path if place else point
            yield Refused(
                f"the run measured another file system ({_differ(name, at, run.machine, here)})",
                f"latlab measure --only 'storage.*' --dir {folder}",
            )
    if place is not None and place.has_holes:
        yield Refused(
            f"it takes {format_bytes(place.on_disk)} of its {format_bytes(place.size)} on the disk:"
            " it has holes, or is compressed",
            f"latlab predict {job.kind} {max(place.on_disk, 1)}",
        )
    options = here.at("dir.file_system.options")
    reported = options if isinstance(options, list) else []
    if kind in PACKED or any(str(each).startswith(COMPRESSED) for each in reported):
        yield Refused(
            f"{point} is {kind}, which compresses: how many bytes reach the disk is unknown",
            "latlab explain -- COMMAND (it runs the job and says where its time goes)",
        )
    free = here.integer("dir.file_system.available_bytes")
    grows = job.writes and job.kind != "random"
    if grows and free is not None and job.bytes > free:
        yield Refused(
            f"there is no room for it: {point} has {format_bytes_as_asked(free)} left", f"df -h {point}"
        )
    total = here.integer("dir.file_system.total_bytes")
    if total is not None and job.bytes > total:
        yield Refused(f"{point} holds {format_bytes_as_asked(total)} in all", f"df -h {point}")


def _of_stream(job: Job, run: Run) -> Iterator[Refused]:
    """A device that slows down in a long stream, or of which that is unknown."""
    from latlab.topics import storage_steady  # noqa: PLC0415 - only where a run has such streams

    probed = [record for record in run.records if record.probe == storage_steady.PROBE]
    remedy = (
        f"latlab measure --only {storage_steady.PROBE} --profile thorough --max-bytes {job.bytes}"
        " --budget 10min"
    )
    for record in storage_steady.records(run) if probed else ():
        rates = [rate for _, rate in storage_steady.slices(record)]
        quarter = max(len(rates) // 4, 1)
        first, last = (statistics.fmean(own) for own in (rates[:quarter], rates[-quarter:]))
        moved = record.work.bytes
        if moved and last < _FALLEN * first and job.bytes > EXTRAPOLATED * moved:
            yield Refused(
                f"within {format_bytes(moved)} the disk slowed down to {format_percent(last / first)} of its"
                " rate; its later rate is unknown",
                remedy,
            )
    if job.writes and job.bytes > _PROBED_BYTES:
        written = max((r.work.bytes for r in probed if r.point.operation == "write"), default=0)
        if job.bytes > EXTRAPOLATED * written:
            yield Refused(
                f"no run has written more than {format_bytes(written)} here: a drive's cache or a cloud's"
                " credits may end earlier",
                remedy,
            )


def _differ(name: str, at: str, first: Machine, second: Machine) -> str:
    return f"{name}: {_words(first.at(at))} then, {_words(second.at(at))} now"


def _words(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value > _LARGE:
        return format_bytes(value)
    return "none" if value is None else clean(value, most=60)


_LARGE: Final = 1 << 20
