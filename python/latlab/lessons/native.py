"""What the native arms have in common: cells from records, and why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latlab.lessons.model import Cell, Published, Unit

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run


def why_not(run: Run | None, probe: str, refused: str) -> str:
    """Why a figure of a probe is missing.

    Args:
        run: The native arm's run.
        probe: Its id.
        refused: Why there was no native arm at all; empty when there was one.
    """
    if refused or run is None:
        return refused or "the native arm was not run"
    for record in run.absent:
        if record.probe == probe and record.error is not None:
            return record.error.text
    failed = [check.detail for record in run.select(probe) for check in record.checks if not check.ok]
    return f"a proof failed: {failed[0]}" if failed else "the native arm has no such point in its time"


def cell_of(record: Record, *, published: Published | None = None) -> Cell:
    """A record's headline figure with its interval: seconds, or bytes a second."""
    unit: Unit = "bytes_per_s" if record.unit == "bytes_per_s" else "s"
    scale = 1.0 if unit == "bytes_per_s" else 1e-9
    if record.value is None:
        return Cell(unit, published=published, why="a proof failed or there were no samples")
    low, high = record.interval or (record.value, record.value)
    value = record.value * scale
    return Cell(
        unit,
        value,
        min(low * scale, value),
        max(high * scale, value),
        record.samples,
        published,
        "median with its 95 % interval",
    )
