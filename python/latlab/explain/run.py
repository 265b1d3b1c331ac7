"""Starts the engine: a program or a process in, its ledger out."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from latlab.errors import LatlabError, UserError, WorkerError
from latlab.explain.kept import Kept
from latlab.explain.model import Calibration, Explained
from latlab.explain.worker import look_through
from latlab.masking import masked
from latlab.run.core import core
from latlab.text import clean


class NotStartedError(LatlabError):
    """The program could not be started; `exit_code` is what a shell would end with."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def explain(
    arguments: Sequence[str], *, level: int = 1, runs: int = 1, overhead: float | None = None
) -> tuple[Explained, bytes]:
    """Runs a program on this terminal and returns its ledger, decoded and as JSON.

    Args:
        arguments: Name and arguments.
        level: Maximum tracing level; 1 is the most.
        runs: How often it is run; from the second time on its output is thrown away.
        overhead: Share of its CPU time that recording may cost (otherwise 5 %); infinite: all is recorded.

    Raises:
        NotStartedError: There is no such program, or it cannot be executed.
    """
    kept = Kept()
    try:
        words = [os.fspath(word) for word in arguments]
        text = core().explain_program(words, level, runs, _for_core(kept), overhead)
    except ChildProcessError as error:
        raise NotStartedError(clean(error.strerror, most=300), error.errno or 127) from None
    except OSError as error:
        raise WorkerError(clean(error)) from None
    return _decoded(text, kept)


def explain_process(
    pid: int, seconds: float, *, level: int = 1, overhead: float | None = None
) -> tuple[Explained, bytes]:
    """Watches a process that runs already, and returns its ledger, decoded and as JSON.

    Raises:
        UserError: There is no such process, or it may not be looked at.
    """
    kept = Kept()
    try:
        text = core().explain_process(pid, seconds, level, _for_core(kept), overhead)
    except ValueError as error:
        raise UserError(clean(error, most=300)) from None
    except OSError as error:
        raise WorkerError(clean(error)) from None
    return _decoded(text, kept)


def _for_core(kept: Kept) -> str:
    return msgspec.json.encode(kept.calibrations).decode()


def _decoded(text: str, kept: Kept) -> tuple[Explained, bytes]:
    """Secrets in the command line are masked here: all that is shown and written repeats it."""
    whole = msgspec.json.decode(text)
    if not whole["calibration_kept"]:
        kept.keep(msgspec.convert(whole["calibration"], Calibration))
    if kept.notice:
        whole["notes"] = [*whole.get("notes", ()), kept.notice]
    look_through(whole)
    program = whole["program"]
    program["arguments"] = masked(program["arguments"])
    return msgspec.convert(whole, Explained), msgspec.json.encode(whole)
