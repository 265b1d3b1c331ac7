"""`latlab fleet`."""

from __future__ import annotations

import json
import sys

import click

from latlab.errors import UserError


@click.group("fleet")
def command() -> None:
    """Find the slow machines of many, by how much they are slow, and what distinguishes them.

    \b
    Examples:
      latlab fleet merge runs/                   one run file per host, in a folder
      latlab fleet merge 'node*.latlab.jsonl' --json
    """


@command.command("merge")
@click.argument("files", metavar="FILE|FOLDER...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print all hosts as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="List every host.")
def merge(files: tuple[str, ...], *, as_json: bool, verbose: bool) -> int:
    """Find the slow hosts among those whose run files are given.

    Hosts with the same CPU, memory, disk and kernel form a class. Each host's headline figures are
    compared with those of its class, which needs at least five hosts. One in 1,000 fleets without a
    slow host gets a false alarm. Several runs of one host count as repeats.

    \b
    Examples:
      latlab fleet merge runs/
      latlab fleet merge 'node*.latlab.jsonl' -v
      latlab fleet merge runs/ --json | jq .named

    Exit code 1: a host is slow.
    """
    from latlab.cli.terminal.fleet_lines import fleet_lines  # noqa: PLC0415 - not needed for --help
    from latlab.cli.terminal.screen import say, screen_of  # noqa: PLC0415 - see above
    from latlab.compare.sides import files as named_by  # noqa: PLC0415 - see above
    from latlab.fleet import merge as survey_of  # noqa: PLC0415 - see above
    from latlab.run.store import Store  # noqa: PLC0415 - see above
    from latlab.text import clean  # noqa: PLC0415 - see above

    store = Store()
    found = list(dict.fromkeys(path for word in files for path in named_by(word, store)))
    if not found:
        raise UserError(f"no run file in {clean(' '.join(files), most=100)!r}")
    survey = survey_of(found)
    if as_json:
        sys.stdout.write(json.dumps(survey.as_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    else:
        say(fleet_lines(survey, screen_of(sys.stdout), verbose=verbose))
    return 1 if survey.named else 0
