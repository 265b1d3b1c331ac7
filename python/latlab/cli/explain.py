"""`latlab explain`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from latlab.errors import UserError

if TYPE_CHECKING:
    from latlab.explain.model import Explained
    from latlab.explain.run import Repeating

_LONGEST_S = 86_400
_MOST_RUNS = 10_000
#: A shell adds this to the number of the signal that ended a program.
_BY_SIGNAL = 128


@click.command(
    "explain",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENTS]...")
@click.option("--pid", metavar="PID", help="Watch a process that runs already, instead of starting one.")
@click.option("--for", "duration", metavar="TIME", help="With --pid: for how long (default: 30s).")
@click.option(
    "--level",
    type=click.Choice(["1", "2", "3"]),
    help="Use at most this sight: 1 kernel and user samples, 2 user samples, 3 /proc alone (default: the most"
    " that this user may have).",
)
@click.option(
    "--runs",
    metavar="N",
    help="Run the program N times (default: once; a short one more often, its output thrown away).",
)
@click.option("--json", "json_file", metavar="FILE", help="Write everything to FILE as JSON, too.")
@click.pass_context
def command(
    context: click.Context,
    program: tuple[str, ...],
    pid: str | None,
    duration: str | None,
    level: str | None,
    runs: str | None,
    json_file: str | None,
) -> None:
    """Run PROGRAM and say where its wall time goes.

    Each instant goes to one category: what the running threads do, waiting for a CPU, or what all of them
    wait for. They sum to 100 %. Needs no root and no rebuild; root sees more. The program's output and exit
    code are its own; what was found is written to standard error. Stages that the program marks itself
    (`latlab stages`; in Python `with latlab.stage("read"):`) are listed with what their time went to.

    \b
    Examples:
      latlab explain -- ./program --its-option
      latlab explain --json where.json -- python3 script.py
      latlab explain --runs 1 -- ./changes-something
      latlab explain --pid 4711 --for 10s
    """
    from latlab.cli.arguments import checked_output  # noqa: PLC0415 - not needed for --help

    target = checked_output(json_file, (), may_exist=True)
    most = int(level or 1)
    if pid is not None:
        explained, plain = _process(program, pid, duration, runs, most)
    else:
        if duration is not None:
            raise UserError("--for: says how long --pid watches; a program is watched until it ends")
        if not program:
            raise UserError("explain: name a program to run, as in: latlab explain -- ./program")
        from latlab.explain.run import explain  # noqa: PLC0415 - loads the extension

        explained, plain = explain(program, level=most, runs=_runs(runs), told=_told)
    if target is not None:
        target.write_bytes(plain + b"\n")
    _show(explained)
    context.exit(_exit_code(explained))


def _process(
    program: tuple[str, ...], pid: str, duration: str | None, runs: str | None, level: int
) -> tuple[Explained, bytes]:
    from latlab.explain.run import explain_process  # noqa: PLC0415 - loads the extension
    from latlab.units import parse_seconds  # noqa: PLC0415 - not needed for --help

    if program:
        raise UserError("--pid: either a process or a program to start, not both")
    if runs is not None:
        raise UserError("--runs: a process that runs already cannot be run again")
    if not pid.isdecimal() or int(pid) == 0:
        raise UserError(f"--pid: {pid!r} is no process id")
    try:
        seconds = parse_seconds(duration or "30s")
    except UserError as error:
        raise UserError(f"--for: {error}") from None
    if seconds > _LONGEST_S:
        raise UserError(f"--for: {duration!r} is more than a day")
    return explain_process(int(pid), seconds, level=level)


def _runs(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_RUNS:
        raise UserError(f"--runs: {text!r} is no number from 1 to {_MOST_RUNS:,}")
    return int(text)


def _told(repeating: Repeating) -> None:
    from latlab.cli.terminal.screen import talk  # noqa: PLC0415 - only when there is something to say
    from latlab.units import format_ns  # noqa: PLC0415 - see above

    talk(
        f"latlab: the program took {format_ns(repeating.wall_ns)}: running it again for at most"
        f" {format_ns(repeating.budget_ns)}, its output thrown away (--runs 1: once only)"
    )


def _show(explained: Explained) -> None:
    from latlab.cli.terminal.screen import Line, say, screen_of, styled  # noqa: PLC0415 - for people only
    from latlab.explain.table import facts, processes, stages, table  # noqa: PLC0415 - see above
    from latlab.explain.verdict import verdict  # noqa: PLC0415 - see above

    screen = screen_of(sys.stderr)
    lines = [Line()]
    for at, sentence in enumerate(verdict(explained)):
        wrapped = screen.wrapped(sentence)
        lines += [styled(line.text, "bold") for line in wrapped] if at == 0 else wrapped
    lines.append(Line())
    lines += [Line(screen.fit(line)) for line in table(explained)]
    for listed in (stages(explained), processes(explained)):
        if listed:
            lines += [Line(), *(Line(screen.fit(line)) for line in listed)]
    lines.append(Line())
    for fact in facts(explained):
        lines += screen.wrapped(fact, rest="  ")
    say(lines, sys.stderr)


def _exit_code(explained: Explained) -> int:
    if explained.program.signal is not None:
        return _BY_SIGNAL + explained.program.signal
    return explained.program.exit_code or 0
