"""How long a program takes on another machine, by its ledger here.

The program runs once under `latlab explain`. Each category of its wall time is then scaled by the figures
that represent it (`ratios.TABLE`), with the uncertainty of the ledger's shares and of the figures, by
simulation. What the program computes is only bracketed: between the lowest and the highest ratio of a mix of
kernels and of memory, because no ledger without hardware counters shows which of them a program resembles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from latlab.elsewhere import what_if
from latlab.elsewhere.ratios import PROBES
from latlab.elsewhere.scaling import MATTERS, Category, Scaled
from latlab.errors import UserError
from latlab.explain.answer import percent
from latlab.explain.limits import Limits, find, own_runs
from latlab.explain.model import Explained
from latlab.explain.words import CATEGORIES
from latlab.paths import checked_file
from latlab.predict.answer import Branch, Prediction, Refused, span
from latlab.predict.model import Range, Source
from latlab.run.core import describe
from latlab.run.run import Run
from latlab.run.store import Store
from latlab.text import clean
from latlab.units import format_bytes, format_ns

_UNKNOWN: Final = 0.15
"""With more unexplained than this, the categories say too little."""
_VISIBLE: Final = 0.1
"""A branch is shown where it differs by more than this."""
_MOST_BYTES: Final = 64 << 20
_MOST_RUNS: Final = 5


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked: another machine, or one what-if.

    Attributes:
        on: The other machine's run.
        here: Figures of this one; None: its newest runs.
        runs: How often the program is run for its ledger.
        if_cached: All that it reads had been in memory.
        block: It read in calls of so many bytes.
        disk: Its disk read so many bytes a second.
    """

    on: Run | None = None
    here: Run | None = None
    runs: int = 1
    if_cached: bool = False
    block: int | None = None
    disk: float | None = None

    def checked(self) -> Options:
        """These options, if they ask for one thing.

        Raises:
            UserError: they ask for none or for several.
        """
        asked = [self.on is not None, self.if_cached, self.block is not None, self.disk is not None]
        if sum(asked) != 1:
            raise UserError(
                "predict: name one of --on RUN, --if-cached, --block SIZE and --disk RATE for a program"
            )
        return self


@dataclass(frozen=True, slots=True)
class Elsewhere(Prediction):
    """What is known of a program elsewhere or otherwise.

    Attributes:
        wall_s: What it took here, watched.
        parts: What the answer is the sum of.
    """

    wall_s: float = 0.0
    parts: tuple[Category, ...] = ()


def predicted(words: Sequence[str], options: Options) -> Elsewhere:
    """Runs a program here, or reads what `latlab explain --json` kept of it, and predicts.

    Args:
        words: Name and arguments, or the one file.
        options: What is asked.

    Raises:
        UserError: nothing or several things are asked, or the file is not a ledger.
        NotStartedError: there is no such program.
    """
    options = options.checked()
    explained = kept_ledger(words)
    if explained is None:
        from latlab.explain.run import explain  # noqa: PLC0415 - loads the extension

        explained, _ = explain(words, runs=options.runs)
    if options.on is None:
        return _otherwise(explained, options)
    here = options.here or _newest()
    if here is None:
        why = "no run of this machine has the figures to compare with"
        refused = Refused(why, "latlab measure --profile quick")
        return Elsewhere(job_of(explained), refused=refused, wall_s=explained.wall_s)
    return elsewhere(explained, here, options.on)


def kept_ledger(words: Sequence[str]) -> Explained | None:
    """The ledger in a file that `latlab explain --json` wrote; None where the words are a program.

    Raises:
        UserError: the file is JSON, but no ledger.
    """
    if len(words) != 1 or Path(words[0]).suffix not in {".json", ".jsonl"}:
        return None
    path = Path(checked_file(words[0]))
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{clean(path, most=200)!r} is larger than any ledger")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Explained)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise UserError(
            f"{clean(path, most=200)!r} is not a ledger: latlab explain --json FILE -- PROGRAM writes one"
        ) from None


def _newest() -> Run | None:
    """The newest runs of this machine as one; of a figure that several have, the newest counts."""
    runs = list(itertools.islice(own_runs(Store(), describe().machine, lambda: PROBES), _MOST_RUNS))
    if not runs:
        return None
    return Run(runs[0].header, tuple(record for run in reversed(runs) for record in run.records))


def _otherwise(explained: Explained, options: Options) -> Elsewhere:
    """On this machine, with one thing changed."""
    whole = Elsewhere(job_of(explained), wall_s=explained.wall_s)
    found: Range | Refused | None = refusal(explained)
    if found is None:
        limits: Limits = find(what_if.LIMITS, run=options.here, calibrate=False)
        if options.if_cached:
            found = what_if.cached(explained, limits)
        elif options.block is not None:
            found = what_if.block(explained, limits, options.block)
        else:
            found = what_if.disk(explained, limits, options.disk or 0.0)
    if isinstance(found, Refused):
        return replace(whole, refused=found)
    return replace(
        whole, branches=(Branch("", found),), sources=tuple(Source(probe, "") for probe in what_if.PROBES)
    )


def job_of(explained: Explained) -> str:
    """The command line, cut where it is long."""
    return clean(" ".join(explained.program.arguments), most=200)


def refusal(explained: Explained) -> Refused | None:
    """Why nothing follows from a ledger at all."""
    program = explained.program
    again = "run it again so that it ends with exit code 0"
    if program.signal is not None:
        return Refused(f"the program was ended by signal {program.signal}", again)
    if program.exit_code:
        return Refused(f"the program failed with exit code {program.exit_code}", again)
    if not explained.closure.holds:
        total = percent(explained.closure.sum)
        return Refused(
            f"accounting error: the categories of its wall time sum to {total}", _once_more(explained)
        )
    unexplained = explained.row("unexplained")
    if unexplained is not None and unexplained.share > _UNKNOWN:
        why = f"{percent(unexplained.share)} of its wall time could not be explained"
        return Refused(why, _once_more(explained))
    return None


def _once_more(explained: Explained) -> str:
    return f"latlab predict --runs {max(10, 10 * explained.runs)}"


def elsewhere(explained: Explained, here: Run, there: Run) -> Elsewhere:
    """What a program takes on another machine.

    Args:
        explained: Its ledger on this machine.
        here: Figures of this machine.
        there: Figures of the other one.
    """
    whole = Elsewhere(job_of(explained), wall_s=explained.wall_s)
    refused = refusal(explained)
    if refused is not None:
        return replace(whole, refused=refused)
    scaled = Scaled(explained, here, there)
    if scaled.refused is not None:
        return replace(whole, refused=scaled.refused, sources=scaled.sources)
    cached, cold = scaled.total(), scaled.total(cached=False)
    fits = scaled.fits_memory
    answer = cached if fits else cold
    notes = list(scaled.notes)
    branches = [Branch("", answer)]
    if not fits:
        notes.append(
            f"It reads {format_bytes(explained.counters.read_chars)}, more than the other machine's memory"
            f" ({format_bytes(scaled.memory)}): assumed to be read from the disk."
        )
    elif _differ(cached, cold):
        branches.append(Branch("if what it reads is not in the page cache there", cold))
    warm = scaled.total(waits=False)
    if fits and _differ(warm, cached):
        branches.append(Branch("if what it reads is in the page cache there", warm))
    if answer.is_wide:
        return replace(whole, refused=scaled.too_wide(answer), sources=scaled.sources)
    return replace(
        whole,
        branches=tuple(branches),
        parts=scaled.parts,
        sources=scaled.sources,
        notes=tuple(notes),
    )


def _differ(one: Range, other: Range) -> bool:
    first, second = (math.sqrt(answer.low * answer.high) for answer in (one, other))
    return max(first, second) > (1 + _VISIBLE) * min(first, second)


def lines(found: Elsewhere) -> Iterator[str]:
    """What the terminal shows."""
    yield f"{found.job}: {format_ns(found.wall_s * 1e9)} here"
    if found.refused is not None:
        yield f"No prediction: {found.refused.why}."
        yield f"To get an answer: {found.refused.lifted_by}"
        return
    for branch in found.branches:
        yield f"{branch.when or 'predicted'}: {branch}"
    for part in found.parts:
        if max(part.here_s, part.there.high) >= MATTERS * found.wall_s:
            name = CATEGORIES[part.name][0]
            becomes = span(part.there.low, part.there.high)
            yield f"  {name}: {format_ns(part.here_s * 1e9)} here, {becomes} there; {part.by}"
    yield from found.notes
