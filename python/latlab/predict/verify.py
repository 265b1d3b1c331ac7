"""A job that a program does, predicted and timed; and how many of those lay within their range so far."""

from __future__ import annotations

import math
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from latlab.errors import UserError
from latlab.predict import kept
from latlab.predict.answer import Prediction
from latlab.predict.calibrate import outcome_of
from latlab.predict.kept import Outcome
from latlab.run.core import describe
from latlab.text import clean

_STDERR: Final = 2


def verify(found: Prediction, command: Sequence[str], directory: str | None) -> Outcome:
    """Runs a program after its job was predicted, and keeps both.

    Args:
        found: The prediction, with one answer.
        command: The program; its output goes to standard error.
        directory: Where the job is done.

    Raises:
        UserError: the program cannot be started, failed, or there is not one answer.
    """
    if found.only is None:
        why = found.refused.why if found.refused else "name --cold or --cached"
        raise UserError(f"{found.job}: verification needs exactly one answer: {why}")
    begun = time.perf_counter()
    try:
        ended = subprocess.run(command, stdout=_STDERR, check=False)  # noqa: S603 - the user's own
    except OSError as error:
        raise UserError(f"{clean(command[0], most=100)!r} cannot be run: {clean(error.strerror)}") from None
    seconds = time.perf_counter() - begun
    if ended.returncode:
        raise UserError(
            f"{clean(command[0], most=100)!r} ended with {ended.returncode}: its time does not count"
        )
    machine = kept.identity(describe(directory).machine)
    outcome = outcome_of(
        found, seconds, machine, f"{command[0]}: {found.job}", list(map(shlex.quote, command))
    )
    kept.keep([outcome])
    return outcome


@dataclass(frozen=True, slots=True)
class Coverage:
    """How predictions did so far.

    Attributes:
        held: Within the range.
        count: In all.
        error: Geometric mean of how many times too long or too short they were.
    """

    held: int
    count: int
    error: float


def coverage(outcomes: Sequence[Outcome]) -> Coverage:
    """What outcomes say together; there is at least one."""
    errors = [abs(math.log(own.actual / own.predicted)) for own in outcomes]
    return Coverage(sum(own.held for own in outcomes), len(outcomes), math.exp(sum(errors) / len(errors)))


def record_lines() -> Iterator[str]:
    """This machine's own coverage, and each program that was verified, the newest last."""
    own = [each for each in kept.outcomes(describe(None).machine, disk=False) if each.source == "verify"]
    if not own:
        yield "Nothing was verified here yet: latlab predict JOB --verify -- COMMAND"
        return
    found = coverage(own)
    yield (
        f"{found.held} of {found.count} within the range; geometric mean of the error {found.error:.2f} times"
    )
    for each in own:
        word = "within" if each.held else "outside"
        yield (
            f"{each.when[:16].replace('T', ' ')}  {each.job}: took {each.actual:.3g} s, predicted"
            f" {each.low:.3g}–{each.high:.3g} s ({word}): {clean(each.command, most=120)}"
        )
