"""The prediction of a job by what a run has measured: its cases, and what would be faster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from latlab.predict import figures, small_files, storage
from latlab.predict.answer import Gain, Prediction, Refused, answered, branch_of
from latlab.predict.cases import Case, Known, NotGivenError, NotMeasuredError, missing
from latlab.predict.job import BLOCK, ON_DISK, Job, Kind
from latlab.predict.kept import Calibration
from latlab.predict.transfers import PROBE, transfers
from latlab.units import format_bytes_as_asked, format_ns

#: Less gain is none.
_LEAST_GAIN: Final = 1.2
#: What `--measure` gives to the test file, and to each probe, seconds.
_LAY_OUT_S, _PROBE_S = 6, 6
#: Connections that browsers open to a server at most.
_AT_ONCE: Final = 6


def predict(job: Job, known: Known, calibrated: Calibration | None = None) -> Prediction:
    """How long a job takes.

    Args:
        job: What is done.
        known: What was measured, and what is known of this machine now.
        calibrated: What jobs that were run say of ranges.
    """
    try:
        cases = cases_of(job, known)
    except NotMeasuredError as error:
        return Prediction(job.text, (), _missing(error, job))
    except NotGivenError as error:
        return Prediction(job.text, (), Refused(error.what, error.lifted_by))
    gains = sorted(_gains(job, known, cases, calibrated), key=lambda gain: -gain.factor)
    return answered(job.text, cases, calibrated, gains=gains, notes=tuple(_notes(job, known)))


def _missing(error: NotMeasuredError, job: Job) -> Refused:
    why = f"the run has no figure of {error.what}; measuring takes {measuring_s(probes_of(job))} s"
    return Refused(why, f"latlab predict --measure {job.asked}")


def measuring_s(probes: Collection[str]) -> int:
    """Seconds that `--measure` takes at most: laying out the test file, and some for each probe."""
    return _LAY_OUT_S + _PROBE_S * len(probes)


def cases_of(job: Job, known: Known) -> list[Case]:
    """The ways in which a job may go.

    Raises:
        NotMeasuredError: the run lacks a figure.
        NotGivenError: the job lacks what only the user knows.
    """
    if job.files and job.bytes / job.files < small_files.STREAM_BYTES:
        if job.kind == "read":
            return small_files.read(job, known, job.files, job.bytes / job.files)
        return small_files.copy(job, known)
    return _CASES[job.kind](job, known)


def _scan(job: Job, known: Known) -> list[Case]:
    if job.options.random:
        part = figures.memory_pokes(known.run, job.bytes) or missing("memory", figures.LOAD)
    else:
        part = figures.memory_stream(known.run, job.bytes) or missing("memory", figures.BANDWIDTH)
    return [Case.of([part])]


def _syscalls(job: Job, known: Known) -> list[Case]:
    call = figures.operation(
        known.run, known.run.select(figures.CALL, operation="getppid"), "system calls", "cpu"
    )
    return [Case.of([(call or missing("a system call", figures.CALL)).times(job.count)])]


_CASES: Final[Mapping[Kind, Callable[[Job, Known], list[Case]]]] = {
    "read": storage.read,
    "write": storage.write,
    "copy": storage.copy,
    "files": small_files.files,
    "random": storage.blocks,
    "scan": _scan,
    "syscalls": _syscalls,
    "transfers": transfers,
    "requests": transfers,
}
_FLUSHED: Final = frozenset({figures.WRITE, figures.SYNC})


def probes_of(job: Job) -> frozenset[str]:
    """The probes whose figures a job may need."""
    if job.kind not in ON_DISK:
        return {
            "scan": frozenset({figures.LOAD if job.options.random else figures.BANDWIDTH}),
            "syscalls": frozenset({figures.CALL}),
        }.get(job.kind, frozenset({PROBE}))
    reading = frozenset({figures.READ})
    if job.kind == "random":
        return reading | {figures.RANDOM if job.options.reading else figures.RANDOM_WRITE}
    if job.kind == "files" or job.files > 1:
        return reading | {figures.FILES, figures.RANDOM} | (_FLUSHED if job.writes else frozenset())
    return reading if job.kind == "read" else _FLUSHED | (reading if job.kind == "copy" else frozenset())


def _changed(job: Job, known: Known) -> Iterator[tuple[str, Job]]:
    """The same job done otherwise, and the words for it."""
    options = job.options

    def changed(**fields: Any) -> Job:  # noqa: ANN401 - whatever fields options have
        return replace(job, options=replace(options, **fields))

    if options.direct:
        rates = figures.rates(known.run, figures.WRITE if job.writes else figures.READ, "direct")
        for rate in rates[-1:] and [figures.best_block(rates)]:
            yield f"--block {typed(rate.block)}", changed(block=rate.block)
    if job.kind == "write" and options.fsync == "each":
        yield "--fsync end", changed(fsync="end")
        larger = 16 * (options.block or BLOCK)
        yield f"--block {typed(larger)}", changed(block=larger)
    if job.kind == "random":
        probe = figures.RANDOM if options.reading else figures.RANDOM_WRITE
        deeper = {own.depth for own in figures.depths(known.run, probe, "") if own.depth > options.depth}
        for depth in sorted(deeper):
            yield f"--depth {depth}", changed(depth=depth)
    if job.kind in {"transfers", "requests"} and options.rtt_s and (options.rate or job.kind == "requests"):
        if options.at_once < _AT_ONCE:
            yield f"--at-once {_AT_ONCE}", changed(at_once=_AT_ONCE)
        if options.connections == "new":
            yield "--connections kept", changed(connections="kept")
    if job.kind == "files" and job.writes:
        flush = "end" if options.fsync == "each" else options.fsync
        one = replace(job, kind="write", count=1, size=job.bytes, options=replace(options, fsync=flush))
        yield f"one file instead (write {typed(job.bytes)})", one


def _gains(job: Job, known: Known, cases: list[Case], calibrated: Calibration | None) -> Iterator[Gain]:
    """What is faster by a fifth, the best of each kind of change."""
    before = branch_of(cases[-1], calibrated).range.middle
    best: dict[str, Gain] = {}
    for words, other in _changed(job, known):
        try:
            case = cases_of(other, known)[-1]
        except (NotMeasuredError, NotGivenError):
            continue
        after = branch_of(case, calibrated).range
        gain = Gain(words, after, before / after.middle)
        lever = words.split()[0]
        # Deeper or larger is worth its price only where it gains another fifth.
        if gain.factor > _LEAST_GAIN * (best[lever].factor if lever in best else 1.0):
            best[lever] = gain
    yield from best.values()


def _notes(job: Job, known: Known) -> Iterator[str]:
    """What an answer says besides."""
    options = job.options
    room = format_bytes_as_asked(known.limits.memory)
    if known.limits.returned and (size := taken(job, known.cached or 0)):
        each = figures.found_by_host(known.run)
        more = "longer" if each is None else f"up to {format_ns(each * size * 1e9, digits=2)} longer"
        yield f"free memory goes back to the host here: where it has to be found again, this takes {more}"
    unknown = options.cache is None and not options.direct and known.cached is None
    if job.kind in {"read", "copy"} and unknown and job.bytes > known.limits.memory:
        yield f"more than the page cache holds ({room}): it comes from the disk"
    buffered = job.writes and job.kind != "random" and not options.direct
    if buffered and options.fsync in {None, "none"}:
        yield "without a flush the disk goes on writing afterwards: --fsync end waits for it"
    if job.kind == "transfers" and not options.https:
        yield "without TLS: --https adds its round trip"


def taken(job: Job, cached: int = 0) -> int:
    """Bytes of memory that the page cache takes for a job, of which so many are cached."""
    options = job.options
    if job.kind not in ON_DISK or options.direct or job.kind == "random":
        return 0
    read = job.bytes - cached if job.reads or job.kind == "copy" else 0
    return (0 if options.cache == "cached" else read) + (job.bytes if job.writes else 0)


def typed(size: int) -> str:
    """A size as it is typed: `1MiB`."""
    return format_bytes_as_asked(size).replace(" ", "")
