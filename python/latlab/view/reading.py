"""Findings of a run with their types: what a file holds that does not fit them is no finding."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from latlab.findings import Found
from latlab.run.model import Record
from latlab.run.run import Run

F = TypeVar("F", bound=Found)


def concluded(run: Run, kind: type[F]) -> F | None:
    """What the probe concluded last from all of its points; None where it did not, or nobody can read it."""
    records = (r for r in reversed(run.records) if r.probe == kind.PROBE and r.kind == "derived")
    return next((found for record in records if (found := details(record, kind)) is not None), None)


def details(record: Record, kind: type[F]) -> F | None:
    """What stands with one record."""
    try:
        return msgspec.convert(record.findings, kind)
    except msgspec.ValidationError:
        return None
