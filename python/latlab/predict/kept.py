"""What jobs took beside what was predicted of them: kept beside the runs, and what follows for ranges.

A calibrated range is split conformal (Papadopoulos et al. 2002; Lei et al. 2018): the score of a kind of job
is how far its time (the median of three) lay from the prediction, on a logarithm, in half widths of the
range that the model gave. The range of another job is so many half widths wide that nine of ten kinds lay
within; of n kinds no more than n of n + 1 can be promised. One kind has one score, however often it was run.

Kinds whose time is mostly of one part correct that part: by the mean of their errors, drawn towards none as
if one more kind had none. Each kind is scored with the corrections of all others (Barber et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from latlab.errors import UserError
from latlab.predict.model import LEVEL, Range
from latlab.run.machine import Machine
from latlab.run.saving import locked, save
from latlab.run.store import Store

FILE: Final = "predictions.jsonl"
#: Narrower and wider half widths are taken for these: a run's visits are a minute apart, its jobs are hours
#: away, and what a busy minute did to few visits says little of a job.
LEAST_HALF, MOST_HALF = 0.2, 0.3
#: Of a file that grew larger than this, nothing is read.
_MOST_BYTES: Final = 16 << 20
#: What makes it another machine, or another disk, whose outcomes say nothing of this one.
_MACHINE: Final = ("cpu.model_name", "cpu.logical_cpus", "os.kernel_release", "virtualisation.hypervisor")
_DISK: Final = ("dir.file_system.kind", "dir.file_system.source")


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that was predicted, and run.

    Attributes:
        source: What ran it.
        kind: What its repeats have in common: the kind of a calibration's job, or a program with its job.
        job: What was predicted, in words.
        predicted: Most likely seconds.
        low: Lower end of the range that was given.
        high: Upper end.
        half: Half of the width that the model gave, on a logarithm, before calibration.
        actual: Seconds that it took.
        bytes: What it moved of each part.
        most: The part that most of its time was predicted for.
        when: Time stamp.
        machine: What it ran on.
        command: The program; empty of calibrations.
    """

    source: Literal["calibrate", "verify"]
    kind: str
    job: str
    predicted: float
    low: float
    high: float
    half: float
    actual: float
    bytes: dict[str, float] = {}
    most: str = ""
    when: str = ""
    machine: str = ""
    command: str = ""

    @property
    def held(self) -> bool:
        """Whether it lay within the range."""
        return self.low <= self.actual <= self.high

    @property
    def width(self) -> float:
        """Half of the model's width as far as it is believed."""
        return believed(self.half)

    @property
    def error(self) -> float:
        """Logarithm of what it took over what was predicted."""
        return math.log(self.actual / self.predicted)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What jobs that were run say of ranges.

    Attributes:
        kinds: How many kinds of jobs.
        factor: Half widths of the model's range that the calibrated one has.
        level: What share of kinds it holds at least.
        moved: Bytes that the longest of them moved of each part.
        off: Logarithm of what each part takes longer than its figure says.
    """

    kinds: int
    factor: float
    level: float
    moved: dict[str, float]
    off: dict[str, float]

    def widened(self, own: Range) -> Range:
        """A range of the model as it holds."""
        half = self.factor * believed(own.half)
        return Range(own.middle, own.middle * math.exp(-half), own.middle * math.exp(half), self.level)


def believed(half: float) -> float:
    """Half of a range's width on a logarithm, as far as it is believed."""
    return min(max(half, LEAST_HALF), MOST_HALF)


#: Fewer kinds say nothing (n of n + 1 would be four of five).
LEAST_KINDS: Final = 9


def calibration(outcomes: Iterable[Outcome]) -> Calibration | None:
    """The calibration by some outcomes; None where too few kinds are among them."""
    kinds: dict[str, Outcome] = {}
    moved: dict[str, float] = {}
    for own in outcomes:
        if own.source != "calibrate" or not all(
            math.isfinite(x) and x > 0 for x in (own.actual, own.predicted)
        ):
            continue
        kinds[own.kind] = own
        for name, size in own.bytes.items():
            moved[name] = max(moved.get(name, 0.0), size)
    if len(kinds) < LEAST_KINDS:
        return None
    every = list(kinds.values())
    scores = []
    for place, one in enumerate(every):
        others = corrections(every[:place] + every[place + 1 :])
        scores.append(abs(one.error - others.get(one.most, 0.0)) / one.width)
    return Calibration(len(every), *conformal(scores), moved, corrections(every))


def corrections(own: Sequence[Outcome]) -> dict[str, float]:
    """What each part takes longer, on a logarithm, by the jobs that are mostly of it."""
    errors: dict[str, list[float]] = {}
    for one in own:
        errors.setdefault(one.most, []).append(one.error)
    return {name: sum(each) / (len(each) + 1) for name, each in errors.items()}


def conformal(scores: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """The score that another one stays below with this chance, and the chance that so many can promise."""
    count = len(scores)
    rank = min(math.ceil((count + 1) * level), count)
    return sorted(scores)[rank - 1], min(level, rank / (count + 1))


def identity(machine: Machine, *, disk: bool = True) -> str:
    """What outcomes are of: a machine, and the disk of a folder."""
    return " | ".join(str(machine.at(at)) for at in _MACHINE + (_DISK if disk else ()))


def path(*, make: bool = False) -> Path | None:
    """The file; None where there is none, or none can be made."""
    store = Store()
    folder = store.beside() if make else store.folder
    return None if folder is None else Path(folder) / FILE


def outcomes(machine: Machine | None = None, *, disk: bool = True) -> list[Outcome]:
    """What is kept, the newest last: of all machines, or of one and its disk. A damaged line is left out."""
    file = path()
    try:
        if file is None or file.stat().st_size > _MOST_BYTES:
            return []
        lines = file.read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(_DECODER.decode(line))
        except (msgspec.MsgspecError, ValueError):
            continue
    wanted = "" if machine is None else identity(machine, disk=disk)
    return [own for own in found if own.machine.startswith(wanted)]


def keep(more: Sequence[Outcome], *, instead_of: str = "") -> Path:
    """Adds outcomes to the file; those of the same machine and source are replaced where that is asked.

    Raises:
        UserError: the file cannot be written.
    """
    file = path(make=True)
    if file is None:
        raise UserError("no folder to keep predictions in: set XDG_DATA_HOME to one that can be written")
    machines = {own.machine for own in more}
    with locked(file.parent):
        known = [own for own in outcomes() if own.source != instead_of or own.machine not in machines]
        save(file, b"".join(msgspec.json.encode(own) + b"\n" for own in (*known, *more)))
    return file


_DECODER: Final = msgspec.json.Decoder(Outcome)
