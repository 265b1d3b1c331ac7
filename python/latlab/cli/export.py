"""`latlab export RUN -o FILE`."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from latlab.errors import UserError
from latlab.paths import checked_output

if TYPE_CHECKING:
    from latlab.run.run import Run

_ENDINGS = (".csv", ".npz", ".json", ".jsonl", ".parquet")


@click.command("export")
@click.argument("run", metavar="RUN", default="last")
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    required=True,
    help="FILE.csv, .npz, .json, .jsonl or .parquet; an existing one is replaced.",
)
@click.option("--anonymous", is_flag=True, help="Leave out host, user, paths and addresses.")
def command(run: str, out: str, *, anonymous: bool) -> None:
    """Write the data of a run for other programs.

    RUN is a file, an id, the start of an id, or `last` (the default). CSV and Parquet have one row
    per record; NPZ has all values and histograms; JSON has everything, as one object; JSONL is a run file.

    \b
    Examples:
      latlab export last -o run.csv
      latlab export last --anonymous -o mine.latlab.jsonl
    """
    from latlab.run.run import load  # noqa: PLC0415 - not needed for --help

    target = checked_output(out, _ENDINGS)
    found = load(run)
    _write(found.anonymous() if anonymous else found, target)
    sys.stderr.write(f"wrote {target}\n")


def _write(run: Run, target: Path) -> None:
    from latlab.run.export import to_lines  # noqa: PLC0415 - not needed for --help
    from latlab.run.saving import save  # noqa: PLC0415 - see above

    ending = target.suffix.lower()
    if ending == ".csv":
        run.to_csv(target)
    elif ending == ".npz":
        run.to_npz(target)
    elif ending == ".json":
        save(target, f"{run.to_json()}\n".encode())
    elif ending == ".jsonl":
        save(target, to_lines(run))
    else:
        save(target, _parquet(run))


def _parquet(run: Run) -> bytes:
    try:
        import pyarrow  # noqa: PLC0415 - optional
        from pyarrow import parquet  # noqa: PLC0415 - optional
    except ImportError:
        raise UserError("Parquet needs pyarrow: pip install 'latlab[arrow]'; or export to .csv") from None
    content = io.BytesIO()
    parquet.write_table(pyarrow.table(run), content)
    return content.getvalue()
