"""`latlab`: which commands there are, and how every one of them ends.

Exit codes: 0; 2 for a mistake of the user's, with one line on standard error; 130 when interrupted; 1 when
latlab itself failed, with one line that says where the details are; 2 in `check`, where 1 says that a gate is
broken. stdout is data, stderr is talk.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence

import click

from latlab.errors import LatlabError, UserError

#: Name, module and one line for `latlab --help`, which must not import the modules.
COMMANDS: dict[str, tuple[str, str]] = {
    "measure": ("latlab.cli.measure", "Measure this machine and save the run (the default)."),
    "list": ("latlab.cli.list", "List every probe, and what it touches and needs."),
    "doctor": (
        "latlab.cli.doctor",
        "Report what distorts figures on this machine.",
    ),
    "noise": (
        "latlab.cli.noise",
        "Measure what interrupts a CPU, how often and for how long.",
    ),
    "explain": ("latlab.cli.explain", "Run a program and show where its wall time goes."),
    "duet": ("latlab.cli.duet", "Run two programs alternately and show which is faster."),
    "show": ("latlab.cli.show", "Show a saved run; -v shows all details."),
    "report": ("latlab.cli.report", "Write a run as one HTML, PDF or Markdown file."),
    "chart": ("latlab.cli.chart", "Write one chart of a run as SVG, PNG or PDF."),
    "compare": ("latlab.cli.compare", "Show what changed between two sides, and how certain that is."),
    "check": ("latlab.cli.check", "Check a run against others by a gate file, for CI."),
    "gate": ("latlab.cli.gate", "Write a gate file with limits from this machine's runs."),
    "runs": ("latlab.cli.runs", "List the kept runs; label and remove them."),
    "fleet": ("latlab.cli.fleet", "Find the slow machines of many."),
    "predict": ("latlab.cli.predict", "Predict how long a job takes here, as a range."),
    "history": ("latlab.cli.history", "Show headline figures over the kept runs, and when they changed."),
    "export": ("latlab.cli.export", "Write a run as CSV, NPZ, JSON or Parquet."),
    "lesson": ("latlab.cli.lesson", "Run a textbook experiment here, beside its published figures."),
    "serve": ("latlab.cli.serve", "Run a server for another latlab's network tests."),
    "stages": ("latlab.cli.stages", "Print the file with which your program marks its stages."),
    "completion": ("latlab.cli.completion", "Print the shell's completion script."),
}

#: How `check` ends where latlab fails: its code 1 says that a gate is broken.
_COULD_NOT_RUN = 2
_DEFAULT = "measure"
_OWN_OPTIONS = frozenset({"--help", "-h", "--version", "-V"})

EPILOG = """\b
Examples:
  latlab                                      measure everything, about a minute and a half
  latlab --profile quick                      the same in half a minute
  latlab measure --only 'memory.load.*'       one question only
  latlab measure --dry-run                    what would be run, read and written
  latlab doctor                               what distorts figures on this machine
  latlab noise                                what interrupts a CPU here, in ten seconds
  latlab explain -- ./program                 where a program's wall time goes
  latlab duet -- ./old --vs ./new             which of two programs is faster
  latlab show last -v                         the newest run, with details of its figures
  latlab compare last~1 last                  what changed between two runs, and how certain
  latlab lesson                               the lessons, by the question that each answers
  latlab report last -o report.html           one file, opens without a network

RUN is a file, an id, the start of an id, or `last`."""


class Commands(click.Group):
    """A group that knows its commands by name, and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command's module."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)  # noqa: S101 - a programming error, found by any test
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands without importing any."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`latlab --profile quick` is `latlab measure --profile quick`."""
        # A shell that completes `latlab <TAB>` asks for the commands.
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        if not args or (args[0].startswith("-") and args[0] not in _OWN_OPTIONS):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or a message that names the nearest one."""
        if args[0] not in COMMANDS:
            from latlab.nearest import nearest  # noqa: PLC0415 - only after a mistake

            guess = nearest(args[0], COMMANDS)
            hint = f"did you mean {guess}?" if guess else "latlab --help lists the commands"
            raise UserError(f"no such command: {args[0]!r}; {hint}")
        if isinstance(ctx.obj, list):
            ctx.obj.append(args[0])
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from latlab.installed import version  # noqa: PLC0415 - reads the package's metadata

        click.echo(f"latlab {version()}")
        ctx.exit()


@click.command(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version.",
)
def group() -> None:
    """Measure how long memory, disk, network and kernel operations take on this machine.

    Without a command: latlab measure.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits with its code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        arguments: What follows the program's name; that of this process by default.

    Returns:
        The exit code.
    """
    asked: list[str] = []
    try:
        result = group.main(
            args=None if arguments is None else list(arguments),
            prog_name="latlab",
            standalone_mode=False,
            obj=asked,
        )
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        code = _ended_by(error)
        _drop_what_cannot_be_written()
        return _COULD_NOT_RUN if code == 1 and asked == ["check"] else code
    return result if isinstance(result, int) else 0


def _ended_by(error: Exception | KeyboardInterrupt) -> int:
    """Says what went wrong, in one line, and returns the exit code."""
    match error:
        case click.exceptions.Exit():
            code = error.exit_code
        case click.Abort() | KeyboardInterrupt():
            code = _say("interrupted", 130)
        case click.ClickException():
            code = _say(_usage(error), 2)
        case LatlabError():
            code = _say(str(error), error.exit_code)
        case BrokenPipeError():
            code = _quietly()
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EIO, strerror=reason):
            code = _say(f"the output could not be written: {reason}", 1)
        case _:
            code = _internal(error)
    return code


def _say(message: str, code: int) -> int:
    from latlab.cli.terminal.screen import talk  # noqa: PLC0415 - only when there is something to say

    # Where nobody can be told, the exit code is all that is left.
    with contextlib.suppress(OSError):
        talk(f"latlab: {message}")
    return code


def _usage(error: click.ClickException) -> str:
    """One line, with where to read on."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = context.command_path if context else "latlab"
    return f"{message} ({where} --help)"


def _quietly() -> int:
    """Whoever read our output has gone: end as other programs do."""
    return 128 + getattr(signal, "SIGPIPE", 13)


def _drop_what_cannot_be_written() -> None:
    """Otherwise what a full disk did not take is tried again at exit, and ends with a code of Python's."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _internal(error: Exception) -> int:
    """Latlab's own fault: one line, and the details where they can be read and sent."""
    if os.environ.get("LATLAB_DEBUG"):
        traceback.print_exception(error)
        return 1
    from latlab.cli.details import keep_details  # noqa: PLC0415 - only after a fault

    where = keep_details(error)
    shown = f"details are in {where}" if where else "set LATLAB_DEBUG=1 to see the details"
    return _say(f"this is a bug in latlab ({type(error).__name__}: {error}); {shown}", 1)


if __name__ == "__main__":
    main()
