"""`latlab history`."""

from __future__ import annotations

import json
import sys

import click


@click.command("history")
@click.argument("runs", metavar="[RUN|FOLDER]...", nargs=-1)
@click.option(
    "--figure", metavar="GLOB", default="", help="Figures by PROBE:POINT instead of the headline figures."
)
@click.option(
    "--same", metavar="SHARE", default="10%", show_default=True, help="Which change does not matter."
)
@click.option("--json", "as_json", is_flag=True, help="Print all points and changes as JSON.")
def command(runs: tuple[str, ...], *, figure: str, same: str, as_json: bool) -> None:
    """Show how this machine's headline figures changed over its kept runs, and when.

    Without RUN: all kept runs of the machine of the newest one. A change has at least three runs before and
    after it. A single run that departs and returns is a spike, never a change. What changed in the
    environment at the same time (kernel, C library, latlab) is named.

    \b
    Examples:
      latlab history
      latlab history --figure 'storage.*:*'
      latlab history runs/ @nightly --same 5%
      latlab history --json | jq '.figures[] | {name, changes}'
    """
    from latlab.cli.compare import share  # noqa: PLC0415 - another command's module
    from latlab.cli.terminal.screen import say, screen_of, talk  # noqa: PLC0415 - not needed for --help
    from latlab.compare import history  # noqa: PLC0415 - see above

    limit = share(same)
    found = history.history(history.found(runs), figure=figure, same=limit)
    for note in found.notes:
        talk(f"latlab: {note}")
    if as_json:
        sys.stdout.write(json.dumps(found.as_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n")
        return
    from latlab.cli.terminal.history_lines import history_lines  # noqa: PLC0415 - for people only

    say(history_lines(found, screen_of(sys.stdout)))
