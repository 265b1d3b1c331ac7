"""How long a job takes on this machine, as a range, by what a run has measured; or why there is no answer."""

from __future__ import annotations

from collections.abc import Sequence

from latlab.predict.answer import Branch, Gain, Prediction, Refused
from latlab.predict.job import Job, Options, parse
from latlab.predict.place import Limits, Place, limits, place_of
from latlab.predict.refuse import refused
from latlab.predict.work import predict
from latlab.run.core import describe
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.view.figure import Absent, Figure, Measured

__all__ = ["Branch", "Gain", "Job", "Options", "Prediction", "Refused", "asked", "from_run", "read", "write"]


def asked(words: Sequence[str], options: Options, run: Run, directory: str | None = None) -> Prediction:
    """The prediction of a job in the words of the command line, for this machine as it is now.

    Args:
        words: `["read", "30GB"]`.
        options: How it is done.
        run: What was measured here.
        directory: Where it is done; by default where the run measured.

    Raises:
        UserError: the words name no job.
    """
    places: list[Place] = []

    def size_of(name: str) -> int:
        places.append(place_of(name))
        return places[0].size

    job = parse(words, options, size_of)
    place = places[0] if places else None
    here = describe(job.path or directory or run.machine.text("dir.path")).machine
    why = refused(job, run, here, place)
    if why is not None:
        return Prediction(job, (), why)
    return predict(job, run, limits(memory_of(here)), place.cached if place else None)


def from_run(job: Job, run: Run) -> Prediction:
    """The prediction for the machine of a run as it was then: nothing here is looked at."""
    return predict(job, run, Limits(memory_of(run.machine), None))


def memory_of(machine: Machine) -> int:
    """Bytes that the page cache may grow to."""
    known = [
        machine.integer(at)
        for at in ("memory.available_bytes", "limits.usable_memory_bytes", "limits.cgroup.memory_left_bytes")
    ]
    return min((value for value in known if value), default=0)


def read(run: Run, size: str, *, block: int | None = None, cached: bool = False) -> Figure:
    """How long reading so much takes on the machine of a run: from the disk, or from the page cache.

    Args:
        run: Any run.
        size: `"30 GB"`.
        block: Bytes a call.
        cached: From the page cache.

    Returns:
        Nanoseconds with their 90 % range, or why there is no answer.
    """
    options = Options(block=block, cache="cached" if cached else "cold")
    return _figure(from_run(parse(["read", size.replace(" ", "")], options, len), run))


def write(run: Run, size: str, *, block: int | None = None) -> Figure:
    """How long writing so much takes, with a flush at its end; else as :func:`read`."""
    return _figure(
        from_run(parse(["write", size.replace(" ", "")], Options(block=block, fsync="end"), len), run)
    )


def _figure(found: Prediction) -> Figure:
    if found.refused is not None or len(found.branches) != 1:
        return Absent(found.refused.why if found.refused else "it depends on what is in the page cache")
    own = found.branches[0].range
    return Measured(own.seconds * 1e9, "ns", (own.low * 1e9, own.high * 1e9))
