"""The fastest of several runs, each explained separately."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

import msgspec

from latlab.errors import UserError
from latlab.explain.inputs import place_on_stdin
from latlab.explain.model import Explained
from latlab.explain.run import explain

_INPUT, _OUTPUT = 0, 1


def best_of(
    times: int, arguments: Sequence[str], *, level: int = 1, overhead: float | None = None
) -> tuple[Explained, bytes]:
    """Runs a program so often and returns the ledger of the fastest run, decoded and as JSON.

    A run that fails or is interrupted is the last, and its ledger is returned. The output of the first run is
    the program's, that of the others is thrown away; a file on standard input is read from the same place
    each time.

    Raises:
        UserError: Its input can be read only once, or there is nowhere to put the output.
        NotStartedError: There is no such program, or it cannot be executed.
    """
    place = place_on_stdin(
        "--best-of: standard input is a pipe, which can be read only once; use a file: < FILE"
    )
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
    except OSError as error:
        raise UserError(
            f"--best-of: the output of further runs goes to {os.devnull}: {error.strerror}"
        ) from None
    found: list[tuple[Explained, bytes]] = []
    try:
        for number in range(times):
            if place is not None:
                os.lseek(_INPUT, place, os.SEEK_SET)
            with contextlib.nullcontext() if number == 0 else _thrown_away(nowhere):
                found.append(explain(arguments, level=level, runs=1, overhead=overhead))
            program = found[-1][0].program
            if program.exit_code or program.signal is not None or program.left_running:
                return found[-1] if number == 0 else _named(found[-1], found)
    finally:
        os.close(nowhere)
    return _named(min(found, key=lambda each: each[0].wall_s), found)


def _named(
    chosen: tuple[Explained, bytes], among: Sequence[tuple[Explained, bytes]]
) -> tuple[Explained, bytes]:
    """With the wall times of all runs."""
    walls = tuple(each.wall_s for each, _ in among)
    explained, plain = chosen
    body = msgspec.json.decode(plain) | {"best_of_s": walls}
    return msgspec.structs.replace(explained, best_of_s=walls), msgspec.json.encode(body)


@contextlib.contextmanager
def _thrown_away(nowhere: int) -> Iterator[None]:
    """What is written to standard output meanwhile goes nowhere."""
    sys.stdout.flush()
    kept = os.dup(_OUTPUT)
    try:
        os.dup2(nowhere, _OUTPUT)
        yield
    finally:
        os.dup2(kept, _OUTPUT)
        os.close(kept)
