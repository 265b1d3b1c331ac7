"""`latlab list`."""

from __future__ import annotations

import sys

import click

from latlab.cli.terminal.screen import say, say_json, screen_of


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the full descriptions as JSON.")
def command(*, as_json: bool) -> None:
    """List every probe: its question, what it touches and what it needs.

    \b
    Examples:
      latlab list
      latlab list --json | jq -r '.[].id'
    """
    import msgspec  # noqa: PLC0415 - not needed for --help

    from latlab.run.core import list_probes  # noqa: PLC0415 - loads the extension

    found = list_probes()
    if as_json:
        say_json(msgspec.to_builtins(found))
        return
    from latlab.cli.terminal.probe_table import probe_lines  # noqa: PLC0415 - for people only

    say(probe_lines(found, screen_of(sys.stdout)))
