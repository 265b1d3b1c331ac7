"""`latlab compare A B`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from latlab.compare import Comparison
    from latlab.fleet.changes import Changes


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--same", metavar="SHARE", default="10%", show_default=True, help="Treat smaller changes as no change."
)
@click.option("--across", is_flag=True, help="Compare different machines, all runs of a side as one.")
@click.option("--verbose", "-v", is_flag=True, help="Show every figure, with its reason.")
@click.option("--html", "page", metavar="FILE", help="Write a page with both sides in every chart to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def command(
    a: str, b: str, *, same: str, across: bool, verbose: bool, page: str | None, as_json: bool
) -> None:
    """Show what changed between two sides, how certain that is, and which change would have been detected.

    A side is a run (a file, an id, `last`, `last~1`), a folder, a quoted glob, @LABEL of kept runs
    (`latlab runs label`), or LABEL= and one of these; commas join several. Runs are the unit of
    variance: five per side show much more than one.

    If a side has runs of several hosts, such as the folder of a latlab fleet survey, each host is
    compared with itself by its headline figures, and hosts are the unit of variance.

    \b
    Examples:
      latlab compare last~1 last
      latlab compare before=old/ after=new/
      latlab compare 'A=a*.latlab.jsonl' 'B=b*.latlab.jsonl' --same 5%
      latlab compare before=old/ after=new/ --html change.html
      latlab compare laptop.latlab.jsonl last --across    two machines
    """
    from latlab import compare  # noqa: PLC0415 - not needed for --help
    from latlab.paths import checked_output  # noqa: PLC0415 - see above
    from latlab.units import parse_share  # noqa: PLC0415 - see above

    target = None if page is None else checked_output(page, (".html",))
    limit = parse_share(same, most=compare.MOST_CHANGE)
    named = compare.both_named(a, b)
    # Across machines all runs of a side are those of one.
    if not across and compare.have_several_hosts(*named):
        from latlab.fleet.between import between  # noqa: PLC0415 - takes some time to import

        found: Comparison | Changes = between(*named, same=limit)
    else:
        sides = compare.read(*named)
        found = compare.compare(*sides, same=limit, across=across, kept=compare.stored(*sides))
    if target is not None:
        from latlab.report import compared  # noqa: PLC0415 - draws charts

        compared.write(found, target)
        sys.stderr.write(f"wrote {target}\n")
    from latlab.cli.terminal.screen import say, say_json, screen_of  # noqa: PLC0415 - not needed for --help

    if as_json:
        say_json(found.as_json())
        return
    screen = screen_of(sys.stdout)
    if isinstance(found, compare.Comparison):
        from latlab.cli.terminal.comparison import comparison_lines  # noqa: PLC0415 - for people only

        say(comparison_lines(found, screen, verbose=verbose))
    else:
        from latlab.cli.terminal.change_lines import change_lines  # noqa: PLC0415 - for people only

        say(change_lines(found, screen, verbose=verbose))
