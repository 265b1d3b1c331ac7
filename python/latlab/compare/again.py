"""Measuring some probes of a run once more, in new processes, as they were measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from latlab.compare.sides import is_like
from latlab.errors import UserError
from latlab.run.core import describe
from latlab.run.measure import measure
from latlab.run.reader import SUFFIX
from latlab.run.store import Store, new_id

if TYPE_CHECKING:
    from latlab.run.run import Run


def measured_again(run: Run, probes: Iterable[str]) -> Run:
    """A run of these probes with the settings of another; its file is kept beside runs, and is never `last`.

    Raises:
        UserError: this is not the machine of the run, or some of its settings no longer exist.
        WorkerError: nothing could be measured.
        KeyboardInterrupt: it was interrupted.
    """
    settings = run.settings
    if not is_like(describe(settings.dir).machine, run.machine):
        raise UserError("the run was measured on another machine")
    place = Store().beside()
    if place is None:
        raise UserError("no writable folder to keep the run in")
    folder = place / "again"
    folder.mkdir(exist_ok=True)
    again = measure(
        only=probes,
        profile=settings.profile,
        dir=settings.dir,
        file=settings.file,
        max_bytes=settings.max_bytes,
        cpus=settings.cpus,
        gentle=settings.gentle,
        delay_ms=settings.delay_ms,
        rate_mbit=settings.rate_mbit,
        distance=settings.distance,
        url=settings.url,
        secret_file=settings.secret_file,
        requests_per_s=settings.requests_per_s,
        out=folder / f"{new_id()}{SUFFIX}",
    )
    if again.stopped_by == "interrupted":
        raise KeyboardInterrupt
    return again
