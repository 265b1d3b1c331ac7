"""How long a job takes on this machine, as a range, by what a run has measured; or why there is no answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from latlab.errors import UserError
from latlab.predict import kept
from latlab.predict.answer import Branch, Gain, Prediction, Refused, span
from latlab.predict.cases import Known
from latlab.predict.figures import FAULT, FILES, where_programs_wait
from latlab.predict.job import Cache, Connections, Flush, Job, Options, parse
from latlab.predict.place import Limits, Place, limits, place_of
from latlab.predict.plan import Step, predict_plan
from latlab.predict.refuse import refused
from latlab.predict.work import predict, probes_of
from latlab.run.core import describe
from latlab.run.machine import Machine
from latlab.run.reader import read as read_file
from latlab.run.run import Run
from latlab.run.store import Store, first_line
from latlab.view.figure import Absent, Figure, Measured

__all__ = [
    "Branch",
    "Gain",
    "Job",
    "Options",
    "Prediction",
    "Refused",
    "Step",
    "asked",
    "copy",
    "files",
    "from_run",
    "newest",
    "parsed",
    "planned",
    "probes_of",
    "read",
    "transfers",
    "usual",
    "write",
]
#: Runs that are looked through for one with the figures of a job.
_MOST_RUNS: Final = 20


def parsed(words: Sequence[str], options: Options) -> tuple[Job, Place | None]:
    """The job of some words, and the path that they name.

    Raises:
        UserError: the words name no job.
    """
    places: list[Place] = []

    def size_of(name: str) -> tuple[int, int]:
        places.append(place_of(name))
        return places[0].size, places[0].files

    return parse(words, options, size_of), places[0] if places else None


def asked(
    job: Job,
    run: Run,
    directory: str | None = None,
    place: Place | None = None,
    *,
    calibrated: bool = True,
) -> Prediction:
    """The prediction of a job, for this machine as it is now.

    Args:
        job: What is done.
        run: What was measured here.
        directory: Where it is done; by default where the run measured.
        place: What it reads, where that is known.
        calibrated: By what jobs took that were run here.
    """
    here, known = _here(run, job.path or directory, place)
    why = refused(job, run, here, place, known.limits)
    if why:
        return Prediction(job.text, (), why)
    return predict(job, known, _calibrated(here) if calibrated else None)


def planned(steps: Sequence[Step], run: Run, directory: str | None = None) -> Prediction:
    """The same of several jobs."""
    here, known = _here(run, directory)
    text = ", then ".join(step.text for step in steps)
    for job in (job for step in steps for job in step.jobs):
        why = refused(job, run, here, None, known.limits)
        if why:
            return Prediction(text, (), Refused(f"{job.text}: {why.why}", why.lifted_by))
    cpus = here.number("limits.usable_cpus") or 1.0
    return predict_plan(steps, known, cpus, _calibrated(here))


def _here(run: Run, directory: str | None, place: Place | None = None) -> tuple[Machine, Known]:
    here = describe(directory or run.machine.text("dir.path")).machine
    known = where_programs_wait(run)
    return here, Known(known, limits(memory_of(here)), place.cached if place else None)


def _calibrated(here: Machine) -> kept.Calibration | None:
    return kept.calibration(kept.outcomes(here))


def newest(probes: Collection[str], name: str | None = None) -> Run:
    """The figures of some probes: of a run that is named, or of the newest that measured them all.

    Raises:
        UserError: there is no such run, or none at all.
    """
    store, wanted = Store(), {*probes, FAULT, FILES}
    if name is not None or not (entries := store.entries()):
        return read_file(store.resolve(name or "last"), only=wanted)
    for entry in entries[: -_MOST_RUNS - 1 : -1]:
        plan = first_line(entry.path)
        if all(b'"id":"%s"' % probe.encode() in plan for probe in probes):
            return read_file(entry.path, only=wanted)
    return read_file(entries[-1].path, only=wanted)


def from_run(job: Job, run: Run) -> Prediction:
    """The prediction for the machine of a run as it was then: nothing here is looked at."""
    return predict(job, _then(run))


def _then(run: Run) -> Known:
    """What is known of a machine as it was when it was measured."""
    return Known(where_programs_wait(run), Limits(memory_of(run.machine), None))


def memory_of(machine: Machine) -> int:
    """Bytes that the page cache may grow to."""
    known = [
        machine.integer(at)
        for at in ("memory.available_bytes", "limits.usable_memory_bytes", "limits.cgroup.memory_left_bytes")
    ]
    return min((value for value in known if value), default=0)


def usual(run: Run) -> Iterator[tuple[str, str]]:
    """What page one says of a machine: three jobs whose figures the run has, and how long each takes."""
    known = _then(run)
    for what, words, options in (
        ("reading 30 GB from the disk", ("read", "30GB"), Options(cache="cold")),
        ("writing 100,000 files of 10 kB, not flushed,", ("files", "100000", "10kB"), Options()),
        ("a million system calls", ("syscalls", "1000000"), Options()),
    ):
        for branch in predict(parse(words, options, _no_path), known).branches:
            if branch.answer:
                yield what, span(branch.answer.low, branch.answer.high)


def read(
    run: Run, size: str, *, block: int | None = None, cached: bool = False, direct: bool = False
) -> Figure:
    """How long reading so much takes on the machine of a run: from the disk, or from the page cache.

    Args:
        run: Any run.
        size: `"30 GB"`.
        block: Bytes a call.
        cached: From the page cache.
        direct: Past the page cache.

    Returns:
        Nanoseconds with their 90 % range, or why there is no answer.
    """
    return _figure(run, ["read", size], Options(block=block, cache=_cache(direct, cached), direct=direct))


def write(run: Run, size: str, *, block: int | None = None, fsync: Flush = "end") -> Figure:
    """How long writing so much takes, made durable as `fsync` says; else as :func:`read`."""
    return _figure(run, ["write", size], Options(block=block, fsync=fsync))


def copy(run: Run, size: str, *, cached: bool = False, fsync: Flush = "none") -> Figure:
    """How long copying a file takes; else as :func:`read`."""
    return _figure(run, ["copy", size], Options(cache=_cache(False, cached), fsync=fsync))


def files(
    run: Run, count: int, size: str, *, reading: bool = False, cached: bool = False, fsync: Flush = "none"
) -> Figure:
    """How long writing so many small files takes, or reading them; else as :func:`read`."""
    options = Options(reading=True, cache=_cache(False, cached)) if reading else Options(fsync=fsync)
    return _figure(run, ["files", str(count), size], options)


def transfers(
    run: Run,
    count: int,
    size: str,
    *,
    rtt_s: float,
    rate: float,
    at_once: int = 1,
    connections: Connections = "new",
) -> Figure:
    """How long fetching so many files over HTTP takes.

    Args:
        run: Any run.
        count: How many.
        size: Bytes of each, `"1 MB"`.
        rtt_s: Round trip to the server, seconds.
        rate: Bytes a second that the path carries.
        at_once: How many run concurrently.
        connections: A new one for each, or one that is kept for each worker.

    Returns:
        As :func:`read`.
    """
    options = Options(rtt_s=rtt_s, rate=rate, at_once=at_once, connections=connections)
    return _figure(run, ["transfers", str(count), size], options)


def _cache(direct: bool, cached: bool) -> Cache | None:
    return None if direct else "cached" if cached else "cold"


def _figure(run: Run, words: Sequence[str], options: Options) -> Figure:
    found = from_run(parse([word.replace(" ", "") for word in words], options, _no_path), run)
    own = found.answer
    if own is None:
        return Absent(found.refused.why if found.refused else "it depends on what is in the page cache")
    return Measured(own.middle * 1e9, "ns", (own.low * 1e9, own.high * 1e9))


def _no_path(name: str) -> tuple[int, int]:
    """No path is looked at for the machine of a run."""
    raise UserError(f"{name!r} is not a size, such as 30GB")
