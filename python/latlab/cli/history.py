"""`latlab history`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from latlab.errors import UserError


@click.command("history")
@click.argument("runs", metavar="[RUN|FOLDER]...", nargs=-1)
@click.option(
    "--figure",
    metavar="GLOB",
    default="",
    help="Show figures by PROBE:POINT instead of the headline figures.",
)
@click.option(
    "--same", metavar="SHARE", default="10%", show_default=True, help="Treat smaller changes as no change."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write a picture of at most 20 figures: .svg, .png or .pdf ([export]).",
)
@click.option("--html", "html_file", metavar="FILE", help="Also write an HTML page with charts to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print all points and changes as JSON.")
def command(
    runs: tuple[str, ...],
    *,
    figure: str,
    same: str,
    output: str | None,
    html_file: str | None,
    as_json: bool,
) -> None:
    """Show how this machine's headline figures changed over its kept runs, and when.

    Without RUN: all kept runs of the newest run's machine. A change has at least three runs before and
    after it. A single run that departs and returns is a spike, never a change. What changed in the
    environment at the same time (kernel, C library, latlab, profile) is listed and marked on the axis.

    \b
    Examples:
      latlab history
      latlab history --figure 'storage.*:*'
      latlab history runs/ @nightly --same 5%
      latlab history -o history.svg
      latlab history --html history.html
      latlab history --json | jq '.figures[] | {name, changes}'
    """
    from latlab.cli.terminal.screen import say, say_json, screen_of, talk  # noqa: PLC0415 - not needed for --help
    from latlab.compare import MOST_CHANGE, history  # noqa: PLC0415 - see above
    from latlab.paths import checked_output  # noqa: PLC0415 - see above
    from latlab.units import parse_share  # noqa: PLC0415 - see above

    limit = parse_share(same, most=MOST_CHANGE)
    target = _picture(output) if output else None
    page = checked_output(html_file) if html_file else None
    found = history.history(history.found(runs), figure=figure, same=limit)
    for note in found.notes:
        talk(f"latlab: {note}")
    if page:
        from latlab.report.history_page import render  # noqa: PLC0415 - only for a page
        from latlab.run.saving import save  # noqa: PLC0415 - see above

        save(page, render(found))
    if target:
        from latlab.charts.picture import convert  # noqa: PLC0415 - only for a picture
        from latlab.compare.picture import specification  # noqa: PLC0415 - see above
        from latlab.run.saving import save  # noqa: PLC0415 - see above

        save(target, convert(specification(found), target.suffix[1:].lower()))
        return
    if as_json:
        say_json(found.as_json())
        return
    from latlab.cli.terminal.history_lines import history_lines  # noqa: PLC0415 - for people only

    say(history_lines(found, screen_of(sys.stdout)))


def _picture(name: str) -> Path:
    """Refused before any run is read."""
    from latlab.charts.picture import FORMS  # noqa: PLC0415 - not needed for --help

    target = Path(name)
    if target.suffix[1:].lower() not in FORMS:
        raise UserError(f"-o {name!r}: name the file .svg, .png or .pdf")
    return target
