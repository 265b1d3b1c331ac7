"""`latlab predict -- PROGRAM`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

import click

from latlab.errors import UserError

_REFUSED = 3
_RUN, _LAST = "--on", 2


@click.command("predict", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENTS]... | LEDGER")
@click.option(
    "--on", "other", metavar="RUN", help="Predict for the machine of this run (also as the last two words)."
)
@click.option("--run", "here", metavar="RUN", help="Figures of this machine. [default: its newest runs]")
@click.option("--runs", metavar="N", type=click.IntRange(1, 10_000), default=1, help="Run it N times.")
@click.option("--if-cached", is_flag=True, help="Predict with all that it reads in memory.")
@click.option("--block", metavar="SIZE", help="Predict with reads in calls of this size.")
@click.option("--disk", metavar="RATE", help="Predict with a disk that reads this fast: 3GB/s.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.pass_context
def command(
    context: click.Context,
    program: tuple[str, ...],
    *,
    other: str | None,
    here: str | None,
    runs: int,
    if_cached: bool,
    block: str | None,
    disk: str | None,
    as_json: bool,
) -> None:
    """Run PROGRAM here and predict how long it takes on another machine, or with one thing changed.

    LEDGER is a file of `latlab explain --json`. The program's output goes to standard error.

    \b
    Examples:
      latlab predict --on other.latlab.jsonl -- ./program
      latlab predict explain.json --on other.latlab.jsonl
      latlab predict --if-cached -- ./program
    """
    words, other = _split(program, other)
    if not words:
        raise UserError("predict: name a program, as in: latlab predict --on RUN -- ./program")
    from latlab.elsewhere.program import Options, lines, predicted  # noqa: PLC0415 - not needed for --help
    from latlab.run.run import load  # noqa: PLC0415 - see above
    from latlab.units import parse_size, parse_value  # noqa: PLC0415 - see above

    rate, unit = parse_value(disk) if disk is not None else (None, "bytes_per_s")
    size = parse_size(block) if block is not None else None
    if unit != "bytes_per_s" or (rate is not None and rate <= 0):
        raise UserError(f"--disk: {disk!r} is not a rate; write it as 3GB/s")
    if size == 0:
        raise UserError("--block takes a size above zero")
    options = Options(
        on=load(other) if other else None,
        here=load(here) if here else None,
        runs=runs,
        if_cached=if_cached,
        block=size,
        disk=rate,
    )
    options = options.checked()
    with _apart():
        found = predicted(words, options)
    from latlab.cli.terminal.screen import Line, say, say_json, screen_of  # noqa: PLC0415 - not needed for --help

    if as_json:
        say_json(found.as_json())
    else:
        screen = screen_of(sys.stdout)
        say([Line(), *(line for text in lines(found) for line in screen.wrapped(text, rest="  "))])
    if found.refused is not None:
        context.exit(_REFUSED)


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """What the program writes goes to standard error: standard output is the answer's."""
    sys.stdout.flush()
    own = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(own, 1)
        os.close(own)


def _split(words: Sequence[str], other: str | None) -> tuple[Sequence[str], str | None]:
    """The program's words, and the run that its last two words name: `./program --on RUN`."""
    if other is None and len(words) > _LAST and words[-_LAST] == _RUN:
        return words[:-_LAST], words[-1]
    return words, other
