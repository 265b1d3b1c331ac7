"""A program that is run once more for its budgets: what a test says, and what came of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.errors import UserError, named
from latlab.explain.apart import explain_apart
from latlab.explain.budgets import Outcome, budgets, outcomes
from latlab.explain.program import ProgramError
from latlab.masking import masked
from latlab.text import clean
from latlab.units import parse_seconds

if TYPE_CHECKING:
    from latlab.compare.outcome import Held
    from latlab.explain.model import Explained

#: What may follow where a budget is neither held nor broken.
_UNDECIDED: Final = ("skip", "fail", "pass")
#: What a test may say beside budgets.
_OPTIONS: Final = ("requests", "runs", "timeout", "undecided")


@dataclass(frozen=True, slots=True)
class Gated:
    """A program with its budgets.

    Attributes:
        command: Its command line, passwords masked.
        explained: Its ledger.
        outcomes: One for each budget.
        undecided: `skip`, `fail` or `pass`.
    """

    command: str
    explained: Explained
    outcomes: tuple[Outcome, ...]
    undecided: str

    @property
    def failure(self) -> str:
        """Why the test fails; empty where it does not."""
        broken, unknown = self._why("broken"), self._why("undecided")
        parts = [(f"{self.command} takes more than it may:", broken)]
        if self.undecided == "fail":
            parts.append((f"{self.command}, not known:", unknown))
        return "\n".join("\n  ".join([head, *lines]) for head, lines in parts if lines)

    @property
    def doubt(self) -> str:
        """Why the test is skipped; empty where it is not."""
        unknown = self._why("undecided") if self.undecided == "skip" else []
        return f"{self.command}: {'; '.join(unknown)}" if unknown else ""

    def _why(self, verdict: Held) -> list[str]:
        return [each.why for each in self.outcomes if each.verdict == verdict]


def gated(program: Sequence[str], given: Mapping[str, object]) -> Gated:
    """Runs a program in the environment and the folder of this process, and holds it to its budgets.

    Args:
        program: Name and arguments.
        given: Budgets by their names, and `requests`, `runs`, `timeout` and `undecided`.

    Raises:
        UserError: a budget or an option is none; nothing was run.
        ProgramError: the program failed.
    """
    if isinstance(program, str | bytes) or not program:
        raise UserError('give the program as a list: ["./prog", "argument"]')
    undecided = str(given.get("undecided", "skip"))
    if undecided not in _UNDECIDED:
        raise UserError(f"undecided: {clean(undecided, most=60)!r}: write {', '.join(map(repr, _UNDECIDED))}")
    asked = budgets({name: limit for name, limit in given.items() if name not in _OPTIONS})
    if not asked:
        raise UserError('no budget: write storage_wait="5 %" or wall="2 s"')
    requests, runs = (_number(name, given.get(name)) for name in ("requests", "runs"))
    if requests is None and (each := next((each for each in asked if each.per), None)):
        raise UserError(f"{each.name}: how many there are is not said: add requests=")
    timeout = given.get("timeout")
    words = [os.fspath(word) for word in program]
    longest_s = None if timeout is None else named("timeout", parse_seconds, str(timeout))
    command = clean(shlex.join(masked(words)), most=80)
    try:
        # A test shows what its program wrote.
        explained = explain_apart(words, os.environ, stdout=1, stderr=2, runs=runs or 1, longest_s=longest_s)
    except ProgramError as error:
        raise ProgramError(f"{command} {error}") from None
    return Gated(command, explained, tuple(outcomes(explained, asked, requests or 1)), undecided)


def _number(name: str, value: object) -> int | None:
    """A whole number above zero; None where it was not given."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise UserError(f"{name}: {clean(value, most=60)!r} is no whole number above zero")
