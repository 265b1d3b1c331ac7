"""`latlab show RUN`."""

from __future__ import annotations

import sys

import click

from latlab.cli.terminal.screen import Line, say, screen_of, styled, talk


@click.command("show")
@click.argument("run", metavar="RUN", default="last")
@click.option(
    "--verbose",
    "-v",
    is_flag=True,
    help="Show all details: samples, paths, intervals, checks, findings.",
)
def command(run: str, *, verbose: bool) -> None:
    """Show a saved run on one page.

    RUN is a file, an id, the start of an id, or `last` (the default).

    \b
    Examples:
      latlab show
      latlab show last -v
      latlab show ./other-machine.latlab.jsonl
    """
    from latlab.cli.terminal.doctor_table import doctor_lines  # noqa: PLC0415 - not needed for --help
    from latlab.cli.terminal.run_view import run_lines  # noqa: PLC0415 - see above
    from latlab.run.run import load  # noqa: PLC0415 - see above

    found = load(run)
    for note in found.notes:
        talk(f"latlab: {note}")
    screen = screen_of(sys.stdout)
    lines = run_lines(found, screen, verbose=verbose)
    if verbose and found.header.doctor:
        lines += [
            Line(),
            styled(" what distorted figures", "bold"),
            *doctor_lines(found.header.doctor, screen),
        ]
    say(lines)
