"""`latlab runs`: the kept runs, their labels, and removing them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from latlab.cli.terminal.screen import say, say_json, screen_of, talk
from latlab.errors import RunFileError, UserError
from latlab.text import clean

if TYPE_CHECKING:
    from pathlib import Path

    from latlab.run.store import Entry, Store


@click.group("runs", invoke_without_command=True)
@click.option("--machine", metavar="TEXT", default="", help="Only runs of machines with TEXT in their name.")
@click.option("--label", metavar="TEXT", default="", help="Only runs with TEXT in their label.")
@click.option("--since", metavar="DATE", help="Only runs from DATE on: 2026-11-01.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def command(context: click.Context, *, machine: str, label: str, since: str | None, as_json: bool) -> None:
    """List the kept runs, the newest last; label and remove them.

    \b
    Examples:
      latlab runs --since 2026-11-01
      latlab runs label last 'after the update'
      latlab compare @before last        all runs with the label "before", and the newest run
      latlab runs rm 2026-11-21T0030
    """
    if context.invoked_subcommand is not None:
        if machine or label or since or as_json:
            raise UserError(f"latlab runs {context.invoked_subcommand} takes no options before its name")
        return
    start = _instant(since) if since else 0.0
    from latlab.run.store import Store  # noqa: PLC0415 - not needed for --help

    store = Store()
    labels = _labels(store, needed=bool(label))
    rows = [
        row
        for entry in store.entries()
        if entry.started_s >= start and label.casefold() in labels.get(entry.id, "").casefold()
        if (row := _row(entry, labels)) and machine.casefold() in row["machine"].casefold()
    ]
    if as_json:
        say_json(rows)
        return
    from latlab.cli.terminal.runs_table import runs_lines  # noqa: PLC0415 - for people only

    say(runs_lines(rows, screen_of(sys.stdout)))


@command.command("label")
@click.argument("run")
@click.argument("text")
def label_command(run: str, text: str) -> None:
    """Label RUN; an empty TEXT removes the label. The run file does not change.

    \b
    Examples:
      latlab runs label last before
      latlab runs label last ''
    """
    from latlab.run.labels import checked_label, keep_labels  # noqa: PLC0415 - not needed for --help
    from latlab.run.store import Store  # noqa: PLC0415 - see above

    label = checked_label(text)
    store = Store()
    keep_labels(store, {_kept(store, run).id: label})


@command.command("rm")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm_command(runs: tuple[str, ...], *, yes: bool) -> None:
    """Remove the files of kept runs. Other files are refused.

    \b
    Examples:
      latlab runs rm last
      latlab runs rm 2026-11-21T0030 2026-11-22 --yes
    """
    from latlab.run.store import Store  # noqa: PLC0415 - not needed for --help

    store = Store()
    entries = list({(entry := _kept(store, run)).path: entry for run in runs}.values())
    for entry in entries:
        talk(f"{'removing' if yes else 'would remove'} {entry.path}")
    if not yes and not _agreed(len(entries)):
        raise click.Abort
    _remove(store, entries)


def _agreed(count: int) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was removed: add --yes, or run it on a terminal to be asked")
    return click.confirm(f"Remove {'this run' if count == 1 else f'these {count} runs'}?", err=True)


def _remove(store: Store, entries: list[Entry]) -> None:
    from latlab.run.labels import keep_labels, labels  # noqa: PLC0415 - not needed for --help

    # A damaged file of labels is said before anything is removed.
    labelled = labels(store)
    gone = {}
    try:
        for entry in entries:
            entry.path.unlink(missing_ok=True)
            gone[entry.id] = ""
    except OSError as error:
        reason = clean(error.strerror or error)
        raise UserError(f"cannot remove {clean(entry.path, most=300)}: {reason}") from None
    finally:
        if labelled.keys() & gone:
            keep_labels(store, gone)


def _kept(store: Store, name: str) -> Entry:
    """The kept run of that name; as a path only where it is in the folder of runs.

    Raises:
        UserError: there is none.
    """
    path = store.resolve(name)
    for entry in store.entries():
        if _place(entry.path) == _place(path):
            return entry
    raise UserError(f"{clean(path, most=300)} is not among the kept runs: `latlab runs` lists them")


def _place(path: Path) -> Path:
    """Where a file is: a link is itself, not what it points to."""
    return path.parent.resolve() / path.name


def _labels(store: Store, *, needed: bool) -> dict[str, str]:
    """All labels; where they cannot be read, why is said and the runs are listed without."""
    from latlab.run.labels import labels  # noqa: PLC0415 - not needed for --help

    try:
        return labels(store)
    except UserError as error:
        if needed:
            raise
        talk(f"latlab: labels are not shown: {error}")
        return {}


def _row(entry: Entry, labels: dict[str, str]) -> dict[str, Any]:
    """A run as `--json` has it; empty where its header is damaged."""
    from latlab.cli.terminal.header import machine_parts  # noqa: PLC0415 - not needed for --help
    from latlab.run.store import head  # noqa: PLC0415 - see above

    try:
        own = head(entry.path)
    except RunFileError:
        return {}
    return {
        "id": entry.id,
        "started": own.started,
        "machine": ", ".join(machine_parts(own.machine)[:3]),
        "profile": own.settings.profile,
        "only": own.settings.only,
        "skip": own.settings.skip,
        "label": labels.get(entry.id, ""),
        "bytes": entry.size,
        "path": str(entry.path),
    }


def _instant(text: str) -> float:
    """Seconds since 1970 at the start of a local day, or at a moment."""
    from datetime import datetime  # noqa: PLC0415 - not needed for --help

    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise UserError(f"--since: {text!r} is not a date such as 2026-11-01") from None
