"""`latlab doctor`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from latlab.cli.terminal.screen import Line, say, say_json, screen_of, talk
from latlab.errors import LatlabError, named
from latlab.paths import checked_folder

if TYPE_CHECKING:
    from latlab.run.model import Machine
    from latlab.run.noise import Survey
    from latlab.run.run import Run


#: Long enough for twenty ticks of any kernel, short enough to wait for.
_LISTEN_S = 2.0


@click.command("doctor")
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="Check the file system of this directory (default: the current one).",
)
@click.option(
    "--listen/--no-listen",
    default=True,
    show_default=True,
    help="Measure for 2 seconds how often CPUs are interrupted, by what, and which CPU is the quietest.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(directory: str | None, *, listen: bool, as_json: bool) -> None:
    """Report what distorts figures on this machine, by how much, and how to fix it.

    Measures for two seconds what interrupts the CPUs; changes nothing.

    \b
    Examples:
      latlab doctor
      latlab doctor --no-listen
      latlab doctor --json | jq -r '.[] | select(.severity != "note") | .title'
    """
    import msgspec  # noqa: PLC0415 - not needed for --help

    from latlab.doctor import examine, load_average  # noqa: PLC0415 - see above
    from latlab.run.core import describe  # noqa: PLC0415 - loads the extension

    directory = None if directory is None else named("--dir", checked_folder, directory)
    here = describe(directory)
    # Before listening, which is a busy thread too.
    load = load_average()
    heard = _heard() if listen else None
    findings = examine(here.machine, here.clock, last=_last_run(here.machine), load_now=load, heard=heard)
    if as_json:
        say_json(msgspec.to_builtins(findings))
        return
    from latlab.cli.terminal.doctor_table import doctor_lines  # noqa: PLC0415 - for people only
    from latlab.cli.terminal.header import header_lines  # noqa: PLC0415 - for people only

    screen = screen_of(sys.stdout)
    header = header_lines(here.tool.version, here.machine, screen)
    say([*header, Line(), *doctor_lines(findings, screen)])


def _heard() -> Survey | None:
    """What two seconds of listening found. What it cannot hear is no reason to say nothing else."""
    from latlab.run import noise  # noqa: PLC0415 - see above

    if sys.stderr.isatty():
        talk(f"measuring for {_LISTEN_S:g} s what interrupts the CPUs (--no-listen skips this)")
    try:
        return noise.survey(_LISTEN_S)[0]
    except LatlabError as error:
        talk(f"latlab: no noise measurement: {error}")
        return None


def _last_run(machine: Machine) -> Run | None:
    """The newest run, if it was on this machine: it knows the effective page size. Never an error."""
    from latlab.run.reader import read  # noqa: PLC0415 - not needed for --help
    from latlab.run.store import Store  # noqa: PLC0415 - not needed for --help

    try:
        run = read(Store().resolve("last"))
    except LatlabError:
        return None
    same = all(run.header.machine.get(part) == machine.get(part) for part in ("cpu", "caches"))
    return run if same else None
