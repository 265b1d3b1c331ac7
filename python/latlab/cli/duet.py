"""`latlab duet`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import click

from latlab.cli.terminal.screen import say, say_json, screen_of, talk
from latlab.errors import UserError, named
from latlab.units import parse_cpus, parse_seconds, parse_share

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Between the two programs.
_VS: Final = "--vs"
_MOST: Final = 1000
_STDERR: Final = 2
#: Seconds between two lines of progress where there is no terminal.
_EVERY_S: Final = 10.0


@click.command("duet", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument(
    "programs",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[--] PROGRAM... --vs PROGRAM...",
)
@click.option(
    "--pairs",
    metavar="N",
    type=click.IntRange(3, _MOST),
    default=10,
    show_default=True,
    help="Runs of each program.",
)
@click.option(
    "--same",
    metavar="SHARE",
    default="5%",
    show_default=True,
    help="Treat smaller differences as no difference.",
)
@click.option(
    "--warmup",
    metavar="N",
    type=click.IntRange(0, _MOST),
    default=1,
    show_default=True,
    help="Warm-up runs of each program, not counted.",
)
@click.option("--cpus", metavar="LIST", help="Run both on these CPUs: 0,2-3 (default: all allowed ones).")
@click.option(
    "--prepare",
    metavar="COMMAND",
    multiple=True,
    help="Shell command before each run, not timed; given twice: for the first program, then for the second.",
)
@click.option("--timeout", metavar="TIME", help="Fail when a run takes longer: 30s, 5min.")
@click.option(
    "--explain",
    "watched",
    is_flag=True,
    help="Watch each run as latlab explain does, and compare where wall time goes.",
)
@click.option("--show-output", is_flag=True, help="Show what the programs write, on standard error.")
@click.option("--json", "as_json", is_flag=True, help="Print figures and all runs as JSON.")
def command(
    programs: tuple[str, ...],
    *,
    pairs: int,
    same: str,
    warmup: int,
    cpus: str | None,
    prepare: tuple[str, ...],
    timeout: str | None,
    watched: bool,
    show_output: bool,
    as_json: bool,
) -> int:
    """Run two programs alternately and show which is faster, by how much, and how certain that is.

    Each pair of runs gives one ratio, so drift affects both; which program is first is random. Each
    program against itself shows what chance alone gives. Programs get no input, and their output is
    discarded.

    \b
    Examples:
      latlab duet -- ./old --vs ./new
      latlab duet --pairs 30 --same 2% --cpus 1 -- ./prog --fast --vs ./prog --safe
      latlab duet -- ./prog --vs env MALLOC_ARENA_MAX=1 ./prog
      latlab duet --explain -- ./old --vs ./new      which part of wall time changed
    """
    from latlab.duet import duet  # noqa: PLC0415 - not needed for --help

    a, b = _sides(programs)
    with _progress(shown=not show_output) as report:
        found = duet(
            a,
            b,
            count=pairs,
            same=named("--same", parse_share, same),
            warmup=warmup,
            cpus=None if cpus is None else named("--cpus", parse_cpus, cpus),
            prepare=prepare,
            longest_s=None if timeout is None else named("--timeout", parse_seconds, timeout),
            watched=watched,
            output=_STDERR if show_output else None,
            report=report,
        )
    if as_json:
        say_json(found.as_json())
    else:
        from latlab.cli.terminal.duet_lines import duet_lines  # noqa: PLC0415 - for people only

        say(duet_lines(found, screen_of(sys.stdout)))
    return 130 if found.interrupted else 0


def _sides(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Both command lines.

    Raises:
        UserError: there are not two.
    """
    if words.count(_VS) != 1:
        raise UserError("duet: name two programs, with --vs between them: latlab duet -- ./old --vs ./new")
    place = words.index(_VS)
    a, b = words[:place], words[place + 1 :]
    if not a or not b:
        raise UserError(f"duet: name a program {'before' if not a else 'after'} --vs")
    return a, b


@contextlib.contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[str], None] | None]:
    """A line that is written over on a terminal, elsewhere one now and then."""
    if not shown:
        yield None
        return
    if screen_of(sys.stderr).is_terminal:

        def live(text: str) -> None:
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()

        try:
            yield live
        finally:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        return
    last = time.monotonic()

    def plain(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_S:
            last = time.monotonic()
            talk(f"latlab: {text}")

    yield plain
