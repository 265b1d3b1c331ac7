"""Starts the engine: a program or a process in, its ledger out."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from latlab.errors import LatlabError, UserError, WorkerError
from latlab.explain.model import Explained
from latlab.masking import masked
from latlab.run.core import core
from latlab.text import clean


class NotStartedError(LatlabError):
    """The program could not be started; `exit_code` is what a shell would end with."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def explain(arguments: Sequence[str], *, level: int = 1, runs: int = 1) -> tuple[Explained, bytes]:
    """Runs a program on this terminal and returns its ledger, decoded and as JSON.

    Args:
        arguments: Name and arguments.
        level: At most this level of sight; 1 is the most.
        runs: How often it is run; from the second time on its output is thrown away.

    Raises:
        NotStartedError: There is no such program, or it cannot be executed.
    """
    try:
        text = core().explain_program([os.fspath(word) for word in arguments], level, runs)
    except ChildProcessError as error:
        raise NotStartedError(clean(error.strerror, most=300), error.errno or 127) from None
    except OSError as error:
        raise WorkerError(clean(error)) from None
    return _decoded(text)


def explain_process(pid: int, seconds: float, *, level: int = 1) -> tuple[Explained, bytes]:
    """Watches a process that runs already, and returns its ledger, decoded and as JSON.

    Raises:
        UserError: There is no such process, or it may not be looked at.
    """
    try:
        text = core().explain_process(pid, seconds, level)
    except ValueError as error:
        raise UserError(clean(error, most=300)) from None
    except OSError as error:
        raise WorkerError(clean(error)) from None
    return _decoded(text)


def _decoded(text: str) -> tuple[Explained, bytes]:
    """Secrets in the command line are masked here: all that is shown and written repeats it."""
    whole = msgspec.json.decode(text)
    program = whole["program"]
    program["arguments"] = masked(program["arguments"])
    return msgspec.convert(whole, Explained), msgspec.json.encode(whole)
