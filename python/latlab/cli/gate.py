"""`latlab gate --init`."""

from __future__ import annotations

from pathlib import Path

import click

from latlab.errors import UserError
from latlab.text import clean


@click.command("gate")
@click.option("--init", is_flag=True, help="Write a gate file from the newest run.")
@click.option(
    "--out", metavar="FILE", default="latlab-gate.toml", show_default=True, help="The file to write."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def command(out: str, *, init: bool, force: bool) -> None:
    """Write limits for latlab check: up to ten headline figures of the newest run. Edit them as needed.

    Each limit is the smallest change that one run can show against the kept runs of this machine.
    With five kept runs, limits are much tighter than with none.

    \b
    Example:
      latlab gate --init
    """
    from latlab import compare  # noqa: PLC0415 - not needed for --help
    from latlab.cli.terminal.screen import talk  # noqa: PLC0415 - see above
    from latlab.compare.gate import first  # noqa: PLC0415 - see above
    from latlab.paths import checked_output  # noqa: PLC0415 - see above

    if not init:
        raise UserError("latlab gate --init writes a gate file; latlab check reads it")
    shown = clean(out, most=200)
    if Path(out).is_file() and not force:
        raise UserError(f"{shown!r} already exists: --force replaces it, --out names another file")
    target = checked_output(out)
    own = compare.side("last")
    kept = compare.stored(own, own)
    target.write_text(first(own.runs[0], kept), encoding="utf-8")
    talk(f"wrote {shown}, from {own.runs[0].id} and {len(kept)} kept runs; latlab check reads it")
