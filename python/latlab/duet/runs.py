"""The runs of a duet: pairs in random order, on the same CPUs, in the environment that latlab was given."""

from __future__ import annotations

import contextlib
import random
import resource
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from latlab.duet.judge import Pair, Taken
from latlab.errors import UserError
from latlab.explain.apart import explain_apart
from latlab.explain.experiments import given_environment
from latlab.explain.program import ProgramError, run
from latlab.masking import masked
from latlab.text import clean
from latlab.units import format_seconds

#: Characters of a command that stands for itself in a sentence.
_SHORT = 24


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two programs.

    Attributes:
        arguments: Its command line.
        command: The same in one line, passwords masked.
        label: What it is called: its command line where that is short, else `A` or `B`.
        prepare: What a shell runs before each of its runs; empty: nothing.
    """

    arguments: tuple[str, ...]
    command: str
    label: str
    prepare: str = ""


def sides(a: Sequence[str], b: Sequence[str], prepare: Sequence[str] = ()) -> tuple[Side, Side]:
    """Both programs.

    Args:
        a: The first command line.
        b: The second.
        prepare: What a shell runs before each run: none, one for both sides, or one for each.

    Raises:
        UserError: there is no such program, or more to prepare than sides.
    """
    if len(prepare) > 2:  # noqa: PLR2004 - one a side
        raise UserError(
            "--prepare: give it once for both programs, or twice: for the first and for the second"
        )
    for arguments in (a, b):
        if shutil.which(arguments[0]) is None:
            raise UserError(f"{clean(arguments[0], most=200)!r}: there is no such program")
    first, second = (*prepare, *prepare, "", "")[:2] if len(prepare) < 2 else prepare  # noqa: PLR2004 - see above
    commands = [clean(shlex.join(masked(arguments)), most=200) for arguments in (a, b)]
    named = commands[0] != commands[1] and max(map(len, commands)) <= _SHORT
    labels = commands if named else ["A", "B"]
    return (
        Side(tuple(a), commands[0], labels[0], first),
        Side(tuple(b), commands[1], labels[1], second),
    )


class Runner:
    """Runs either side once."""

    def __init__(self, *, watched: bool, longest_s: float | None, output: int | None) -> None:
        """Nothing is started.

        Args:
            watched: Whether each run is explained.
            longest_s: A run, or what prepares it, may take so long.
            output: Where the programs' output goes; None: nowhere.
        """
        self._watched = watched
        self._longest_s = longest_s
        self._output = output
        self._environment = given_environment()

    def once(self, side: Side) -> Taken:
        """Prepares a run, and runs it.

        Raises:
            UserError: it fails.
        """
        nowhere = subprocess.DEVNULL if self._output is None else self._output
        if side.prepare:
            with self._named(f"--prepare {clean(side.prepare, most=80)!r}"):
                run(
                    ["sh", "-c", side.prepare],
                    self._environment,
                    stdout=nowhere,
                    stderr=self._output,
                    longest_s=self._longest_s,
                )
        with self._named(side.command):
            if self._watched:
                return self._explained(side, nowhere)
            ran = run(
                side.arguments,
                self._environment,
                stdout=nowhere,
                stderr=self._output,
                longest_s=self._longest_s,
            )
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        memory = ran.memory_bytes if ran.memory_bytes > own else None
        return Taken(ran.wall_s, ran.cpu_s, ran.page_faults, memory, ran.start_s, ran.waited_s)

    def _explained(self, side: Side, nowhere: int) -> Taken:
        found = explain_apart(
            side.arguments,
            self._environment,
            stdout=nowhere,
            stderr=self._output,
            longest_s=self._longest_s,
        )
        counters = found.counters
        return Taken(
            found.wall_s,
            counters.user_s + counters.system_s,
            counters.minor_faults + counters.major_faults,
            categories={row.name: row.seconds for row in found.categories},
        )

    @contextlib.contextmanager
    def _named(self, what: str) -> Iterator[None]:
        try:
            yield
        except ProgramError as error:
            most = "" if self._longest_s is None else f" (--timeout {format_seconds(self._longest_s)})"
            text = str(error).replace("took more than its time", f"took too long{most}")
            raise UserError(f"{what}: {text}") from None
        except OSError as error:
            raise UserError(f"{what}: {clean(error.strerror or error, most=200)}") from None


def orders(count: int, dice: random.Random) -> list[bool]:
    """Whether A is first, of so many pairs: of half of them, drawn at random."""
    drawn = [number % 2 == 0 for number in range(count)]
    # Of an odd number a coin says who is first once more.
    drawn[-1] ^= count % 2 == 1 and dice.random() < 0.5  # noqa: PLR2004 - a coin
    dice.shuffle(drawn)
    return drawn


def pairs(runner: Runner, a: Side, b: Side, a_first: Sequence[bool]) -> Iterator[Pair]:
    """A pair of runs for each of these orders."""
    for is_first in a_first:
        if is_first:
            first = runner.once(a)
            yield first, runner.once(b)
        else:
            second = runner.once(b)
            yield runner.once(a), second
