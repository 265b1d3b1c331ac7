"""`latlab report RUN -o FILE`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from latlab.paths import checked_output

if TYPE_CHECKING:
    from latlab.run.run import Run

_ENDINGS = (".html", ".pdf", ".md")


@click.command("report")
@click.argument("run", metavar="RUN", default="last")
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    required=True,
    help="FILE.html, FILE.pdf or FILE.md; an existing one is replaced.",
)
def command(run: str, out: str) -> None:
    """Write a run as one self-contained file.

    RUN is a file, an id, the start of an id, or `last` (the default).

    \b
    Examples:
      latlab report last -o report.html     opens from disk, needs no network
      latlab report last -o report.pdf      to print (needs latlab[export])
      latlab report last -o report.md
    """
    from latlab.run.run import load  # noqa: PLC0415 - not needed for --help

    target = checked_output(out, _ENDINGS)
    write_report(load(run), target)
    sys.stderr.write(f"wrote {target}\n")


def write_report(run: Run, target: Path, *, replace: bool = True) -> Path:
    """Writes the report in the form that the name's ending asks for."""
    from latlab import report  # noqa: PLC0415 - draws charts

    report.write(run, target, replace=replace)
    return target
