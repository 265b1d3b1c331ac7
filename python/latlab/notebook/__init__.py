"""What a notebook shows: runs, records, progress. Functions only, called when a notebook asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latlab.notebook.progress import CellProgress
    from latlab.run.model import Record
    from latlab.run.run import Records, Run

__all__ = ["progress_listener", "record_html", "records_html", "run_html"]


def run_html(run: Run) -> str:
    """The ladder of a run, as a small table with bars."""
    from latlab.notebook import display  # noqa: PLC0415 - only when it is shown

    return display.run_html(run)


def record_html(record: Record) -> str:
    """One record with its figures and proofs."""
    from latlab.notebook import display  # noqa: PLC0415 - as above

    return display.record_html(record)


def records_html(records: Records) -> str:
    """Some records, a line each."""
    from latlab.notebook import display  # noqa: PLC0415 - as above

    return display.records_html(records)


def progress_listener() -> CellProgress | None:
    """Progress in the cell that is running; None where there is no cell."""
    from latlab.notebook import progress  # noqa: PLC0415 - as above

    return progress.in_this_cell()
