"""`latlab measure`: check what was asked, say what it will take, measure, show, save."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latlab.cli.terminal.screen import say, say_json, screen_of, talk
from latlab.errors import LatlabError, UserError
from latlab.paths import checked_output
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.run.core import Plan
    from latlab.run.model import Settings
    from latlab.run.run import Run

#: As `latlab.run.settings` has them, which is not loaded for --help; a test compares.
DISTANCES = ("same-rack", "same-city", "london-california")

_EPILOG = """\b
Examples:
  latlab measure                                    everything, about a minute and a half
  latlab measure --profile quick                    coarser, at most 30 seconds
  latlab measure --only 'memory.load.*' --budget 30s
  latlab measure --skip memory.poke,memory.stride
  latlab measure --cpu 2 --gentle                   on a machine in production
  latlab measure --only 'storage.*' --dir /data     the disk behind /data
  latlab measure --only 'network.*' --delay 20      a path with a round trip of 20 ms
  latlab measure --only network.http --url https://example.org/
  latlab measure --dry-run                          what would be run, read and written
  latlab measure --json | jq '.records | length'

Sizes are typed as 64KiB, 1.5GB or 4096; times as 30s, 2min or 90.
Ctrl-C keeps what is done (exit code 130)."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What concerns the output, not the measurement."""

    out: Path | None
    as_json: bool
    report: bool
    quiet: bool
    anonymous: bool
    beside: bool


@click.command("measure", epilog=_EPILOG)
@click.option(
    "--profile",
    type=click.Choice(["quick", "standard", "thorough"]),
    default="standard",
    show_default=True,
    help="How much to measure: about 30 s, 90 s or 10 min.",
)
@click.option(
    "--only",
    metavar="GLOBS",
    multiple=True,
    help="Run only these probes: 'memory.*', ids, or several with commas.",
)
@click.option("--skip", metavar="GLOBS", multiple=True, help="Leave these probes out.")
@click.option(
    "--dir",
    "dir",
    metavar="DIR",
    help="Measure the file system of this directory. [default: your cache folder]",
)
@click.option(
    "--file", "file", metavar="PATH", help="Measure reading from this file; nothing is written to it."
)
@click.option(
    "--first-touch",
    metavar="DIR",
    help="Also read the files already in DIR: a first time, and again.",
)
@click.option(
    "--drop-caches",
    is_flag=True,
    help="Root only: empty the caches of the whole machine before cold reads of many files.",
)
@click.option(
    "--delay",
    "delay_ms",
    metavar="MS",
    type=float,
    help="Add this round-trip delay between client and server of network probes.",
)
@click.option(
    "--rate",
    "rate_mbit",
    metavar="MBIT",
    type=float,
    help="Limit bandwidth to MBIT Mbit/s per direction.",
)
@click.option(
    "--distance",
    type=click.Choice(DISTANCES),
    help="Add a named round-trip delay: 0.1, 2 or 140 ms.",
)
@click.option(
    "--url",
    metavar="URL",
    help="Let network.http, .connect and .transfer request this HTTP or HTTPS URL; without it, "
    "nothing leaves this machine.",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    help="Shared-secret file of the server at --url.",
)
@click.option(
    "--requests",
    "requests_per_s",
    metavar="N",
    type=int,
    help="Requests per second of network.http. [default: 10 to a URL, 2,000 without one]",
)
@click.option("--budget", metavar="SECONDS", help="Wall time for the whole run, instead of the profile's.")
@click.option(
    "--max-bytes", metavar="SIZE", help="Write at most this much. [default by profile: 512MiB, 4GiB, 16GiB]"
)
@click.option(
    "--cpu", "cpus", metavar="LIST", help="Use these CPUs only, as in 0,2-3. [default: all that are allowed]"
)
@click.option(
    "--seed", metavar="N", help="Seed of every random choice. [default: a new one; stored in the run]"
)
@click.option(
    "--out", metavar="FILE", help="Save the run to this file. [default: a new file in the run folder]"
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the run as one JSON object to stdout; no report is written.",
)
@click.option(
    "--beside",
    is_flag=True,
    help="Do not wait for your other latlab measure; the run is marked if one is running.",
)
@click.option("--no-report", is_flag=True, help="Do not write the HTML report.")
@click.option("--quiet", "-q", is_flag=True, help="Print only errors to stderr.")
@click.option(
    "--gentle",
    is_flag=True,
    help="Use one CPU, no saturating probes and idle I/O class: for machines in production.",
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Leave host, user, paths and addresses out of the run file and the report.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be run, read and written, and how long it would take; run nothing.",
)
@click.pass_context
def command(context: click.Context, /, **asked: Any) -> int:  # noqa: ANN401 - click hands over one dict
    """Measure this machine: print one page, save one run file, write one HTML report."""
    from latlab.run.settings import SETTINGS, make_settings  # noqa: PLC0415 - not needed for --help

    options = {option.name: option.opts[0] for option in context.command.params if option.name}
    settings = make_settings(options, **{name: asked[name] for name in SETTINGS})
    plan = checked_plan(settings)
    if not asked["quiet"]:
        _warn(settings)
    if asked["dry_run"]:
        _show_plan(plan, as_json=asked["as_json"])
        return 0
    wishes = Wishes(
        out=None if asked["out"] is None else checked_output(asked["out"], may_exist=False),
        as_json=asked["as_json"],
        report=not asked["no_report"] and not asked["as_json"],
        quiet=asked["quiet"],
        anonymous=asked["anonymous"],
        beside=asked["beside"],
    )
    run = _measured(settings, plan, wishes)
    try:
        _show(run, wishes)
    except KeyboardInterrupt:
        # What was measured is in its file.
        talk("latlab: interrupted" + (f"; the run is kept in {clean(run.path)}" if run.path else ""))
        return 130
    return _exit_code(run)


def _warn(settings: Settings) -> None:
    """Says beforehand what reaches beyond this run: other programs, other machines."""
    from latlab.run.away import announced  # noqa: PLC0415 - for people only
    from latlab.run.settings import DROPPED  # noqa: PLC0415 - for people only

    if settings.drop_caches:
        talk(f"--drop-caches: {DROPPED}")
    if (said := announced(settings)) is not None:
        talk(said)


def checked_plan(settings: Settings) -> Plan:
    """What would be run.

    Raises:
        UserError: Nothing.
    """
    from latlab.run.core import plan  # noqa: PLC0415 - loads the extension

    try:
        planned = plan(settings)
    except ValueError as error:
        raise UserError(f"these settings cannot be measured: {error}") from None
    if not planned.probes:
        raise UserError(
            "nothing is left to run: --only, --skip and --gentle leave no probe; latlab list shows all"
        )
    return planned


def _show_plan(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        import msgspec  # noqa: PLC0415 - not needed for --help

        say_json(msgspec.to_builtins(plan))
        return
    from latlab.cli.terminal.probe_table import plan_line, plan_lines  # noqa: PLC0415 - for people only

    screen = screen_of(sys.stdout)
    say([*plan_lines(plan, screen), *plan_line(plan, screen)])


def _measured(settings: Settings, plan: Plan, wishes: Wishes) -> Run:
    """Measures, with progress on standard error; an interrupt ends it early and is no error."""
    from latlab.cli.terminal.progress import progress_on  # noqa: PLC0415 - not needed for --help
    from latlab.run import conduct, events  # noqa: PLC0415 - not needed for --help
    from latlab.run.turn import turn  # noqa: PLC0415 - not needed for --help

    def say(text: str) -> None:
        if not wishes.quiet:
            talk(text)

    with (
        turn(conduct.seconds_of(settings), beside=wishes.beside, say=say) as marks,
        progress_on(sys.stderr, plan=plan, quiet=wishes.quiet) as progress,
    ):
        return conduct.conduct(
            settings,
            out=wishes.out,
            listener=lambda event: progress.on_event(events.plain(event)),
            anonymous=wishes.anonymous,
            marks=marks,
        )


def _show(run: Run, wishes: Wishes) -> None:
    unread: OSError | None = None
    try:
        _print(run, wishes)
    except OSError as error:
        # The pipe's reader has gone, the disk behind `>` is full: where the run is kept is still to be said.
        unread = error
    report = _written_report(run, wishes) if wishes.report else None
    if not wishes.quiet:
        from latlab.cli.terminal.ending import ending_lines  # noqa: PLC0415 - for people only

        say(ending_lines(run, report, screen_of(sys.stderr), short=wishes.as_json), sys.stderr)
    if unread is not None:
        raise unread


def _print(run: Run, wishes: Wishes) -> None:
    if wishes.as_json:
        sys.stdout.write(run.to_json() + "\n")
        sys.stdout.flush()
    else:
        _show_ladder(run, wishes)


def _show_ladder(run: Run, wishes: Wishes) -> None:
    from latlab.cli.terminal.run_view import run_lines  # noqa: PLC0415 - for people only

    # Whoever watches has seen the header on standard error; a file or a pipe gets it with the ladder.
    seen = sys.stdout.isatty() and sys.stderr.isatty() and not wishes.quiet
    say(run_lines(run, screen_of(sys.stdout), header=not seen))


def _written_report(run: Run, wishes: Wishes) -> Path | None:
    """The report beside the run file; a report that cannot be written is no reason to lose the run."""
    if run.path is None or not run.records:
        return None
    from latlab.cli.report import write_report  # noqa: PLC0415 - draws charts

    target = run.path.with_name(run.path.name.removesuffix(".jsonl").removesuffix(".latlab") + ".html")
    try:
        # Nobody named this file: one that is there is the user's.
        return write_report(run, target, replace=False)
    except LatlabError as error:
        if not wishes.quiet:
            talk(f"latlab: no report was written: {error}")
        return None


def _exit_code(run: Run) -> int:
    if run.stopped_by == "interrupted":
        return 130
    return 1 if run.stopped_by.startswith("failed") else 0
