"""`latlab check RUN --against RUNS`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from latlab.errors import LatlabError, UserError
from latlab.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from latlab.compare import Side
    from latlab.compare.outcome import Check

#: Runs that are measured again at most.
_AGAIN: Final = 2


@click.command("check")
@click.argument("run", metavar="[RUN]", default="last")
@click.option("--against", metavar="RUNS", help="The runs to compare RUN with.")
@click.option(
    "--gate",
    metavar="FILE",
    default="latlab-gate.toml",
    show_default=True,
    help="The gate file, which holds the limits (TOML).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github", "junit", "json"]),
    default="text",
    show_default=True,
    help="Output for people, GitHub annotations and step summary, JUnit XML, or JSON.",
)
@click.option(
    "--aa",
    metavar="N",
    type=click.IntRange(4, 100),
    help="Compare N kept runs of this machine with one another instead: shows false alarms and the "
    "smallest visible changes.",
)
def command(run: str, against: str | None, gate: str, form: str, aa: int | None) -> int:
    """Check RUN (default: last) against other runs by the limits of a gate file.

    RUN and RUNS are sides as in latlab compare: a run, a folder, a quoted glob, or several with commas.

    Exit codes: 0 all gates hold (warnings allowed), 1 a gate is broken, 2 usage error or latlab
    failed, 3 a gate is undecided and the file says undecided = "fail".

    \b
    Examples:
      latlab gate --init
      latlab check last --against old/
      latlab check --aa 8
    """
    from latlab import compare  # noqa: PLC0415 - not needed for --help
    from latlab.compare import gate as gates  # noqa: PLC0415 - see above
    from latlab.compare.outcome import check  # noqa: PLC0415 - see above

    if aa is not None:
        _with_itself(run, aa)
        return 0
    if against is None:
        raise UserError("--against: name the runs to compare RUN with: a folder, a glob, or last~1")
    asked = gates.read(Path(gate))
    others, own = compare.both(against, run)
    kept = compare.stored(others, own)

    def held_against(side: Side) -> Check:
        return check(asked, compare.compare(others, side, same=asked.same, kept=kept))

    checked = held_against(own)
    if asked.undecided == "measure":
        checked = _measured_again(checked, held_against)
    _print(checked, form)
    return checked.code


def _measured_again(checked: Check, held_against: Callable[[Side], Check]) -> Check:
    """Measures what is not held in new processes, twice at most; their runs are added to the run's side."""
    from latlab.cli.terminal.screen import talk  # noqa: PLC0415 - only where that is asked for
    from latlab.compare import Side  # noqa: PLC0415 - see above
    from latlab.compare.again import measured_again  # noqa: PLC0415 - see above

    own = checked.found.b
    for number in range(1, _AGAIN + 1):
        probes = checked.to_measure
        if not probes:
            break
        talk(f"not all gates hold: measuring {', '.join(probes)} again ({number} of {_AGAIN} at most)")
        try:
            own = Side(own.label, (*own.runs, measured_again(own.runs[0], probes)))
        except LatlabError as error:
            talk(f"not measured again: {error}")
            break
        checked = held_against(own)
    return checked


def _with_itself(name: str, count: int) -> None:
    from latlab import compare  # noqa: PLC0415 - not needed for --help
    from latlab.cli.terminal.gates import alarm_lines  # noqa: PLC0415 - for people only
    from latlab.cli.terminal.screen import say, screen_of  # noqa: PLC0415 - see above
    from latlab.compare.alarms import FEWEST, alarms  # noqa: PLC0415 - see above

    own = compare.side(name)
    runs = (*own.runs, *compare.stored(own, own, most=count))[:count]
    if len(runs) < FEWEST:
        profile = runs[0].settings.profile
        raise UserError(
            f"--aa: {len(runs)} kept {'run' if len(runs) == 1 else 'runs'} of this machine and profile,"
            f" {FEWEST} are needed: latlab measure --profile {profile} --no-report adds one"
        )
    say(
        alarm_lines(
            len(runs), [alarms(runs, a_side) for a_side in (1, len(runs) // 2)], screen_of(sys.stdout)
        )
    )


def _print(checked: Check, form: str) -> None:
    if form == "text":
        from latlab.cli.terminal.gates import gate_lines  # noqa: PLC0415 - for people only
        from latlab.cli.terminal.screen import say, screen_of  # noqa: PLC0415 - see above

        say(gate_lines(checked, screen_of(sys.stdout)))
        return
    from latlab.cli import gate_formats  # noqa: PLC0415 - for programs only

    sys.stdout.write(
        {"github": gate_formats.github, "junit": gate_formats.junit, "json": gate_formats.plain}[form](
            checked
        )
    )
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if form == "github" and summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(gate_formats.markdown(checked))
        except (OSError, ValueError) as error:
            raise UserError(f"$GITHUB_STEP_SUMMARY: {clean(error, most=300)}") from None
