"""`latlab check RUN --against RUNS`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from latlab.errors import UserError
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.compare.outcome import Check


@click.command("check")
@click.argument("run", metavar="[RUN]", default="last")
@click.option("--against", metavar="RUNS", help="The runs that RUN is held against.")
@click.option(
    "--gate", metavar="FILE", default="latlab-gate.toml", show_default=True, help="The limits, as TOML."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github", "junit", "json"]),
    default="text",
    show_default=True,
    help="For people, GitHub's annotations and step summary, JUnit XML, or JSON.",
)
def command(run: str, against: str | None, gate: str, form: str) -> int:
    """Hold RUN (default: last) against other runs by the limits of a gate file.

    RUN and RUNS are sides as in latlab compare: a run, a folder, a quoted glob, or several with commas.

    Exit codes: 0 all is held (warnings allowed), 1 a gate is broken, 2 a mistake in what was asked, 3 a
    gate is undecided and the file says undecided = "fail".

    \b
    Examples:
      latlab gate --init
      latlab check last --against old/
    """
    from latlab import compare  # noqa: PLC0415 - not needed for --help
    from latlab.compare import gate as gates  # noqa: PLC0415 - see above
    from latlab.compare.outcome import check  # noqa: PLC0415 - see above

    if against is None:
        raise UserError("--against: name the runs that RUN is held against: a folder, a glob, or last~1")
    asked = gates.read(Path(gate))
    others, own = compare.both(against, run)
    found = compare.compare(others, own, same=asked.same, kept=compare.stored(others, own))
    checked = check(asked, found)
    _print(checked, form)
    return checked.code


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
