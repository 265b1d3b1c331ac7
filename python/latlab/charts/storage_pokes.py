"""Pokes at a file: how often reading and writing one byte takes how long, by file size and path."""

from __future__ import annotations

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.disk import PATHS, file_name, path_name, timed
from latlab.view import distribution, stairs
from latlab.view.points import why_absent
from latlab.view.table import Table

ID = "storage_pokes"
TITLE = "What does it cost to poke at a file?"
PROBE = "storage.poke"
_MOST_SIZES = 6
_HEIGHT = 320


def pokes(run: Run) -> dict[str, list[Record]]:
    """Records with their distribution by path, smallest file first."""
    known = list(PATHS)
    records = [r for r in timed(run, PROBE) if r.histogram is not None and r.point.file_bytes is not None]
    sizes = sorted({r.point.file_bytes or 0 for r in records})[:_MOST_SIZES]
    records = [r for r in records if r.point.file_bytes in sizes]
    paths = {r.point.path or "" for r in records}
    # Warm, cold, direct: from the nearest to the farthest.
    order = ["buffered-warm", "buffered-cold", "direct"]
    return {
        path: sorted((r for r in records if (r.point.path or "") == path), key=_bytes)
        for path in sorted(
            paths, key=lambda path: order.index(path) if path in order else len(known) + len(path)
        )
    }  # fmt: skip


def _bytes(record: Record) -> int:
    return record.point.file_bytes or 0


def names(run: Run) -> list[str]:
    """The files, smallest first."""
    sizes = sorted({r.point.file_bytes or 0 for own in pokes(run).values() for r in own})
    return [file_name(size) for size in sizes]


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if pokes(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """One panel a path on the same axes: what moves to the right is slower."""
    panels = {
        path_name(path): {file_name(r.point.file_bytes): distribution.steps(r) for r in own}
        for path, own in pokes(run).items()
    }
    return stairs.beside(panels, names(run), ("a poke takes at least", "share of pokes"), _HEIGHT)


def by_name(run: Run) -> dict[str, Record]:
    """Every record by what it is called in a table."""
    return {
        f"{file_name(r.point.file_bytes)}, {path_name(path)}": r
        for path, own in pokes(run).items()
        for r in own
    }


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    text = (
        "Staircase charts, both axes logarithmic: share of pokes that take at least a time, by file"
        " and path. "
    )
    return text + distribution.in_words(by_name(run)) + "."


def table(run: Run) -> Table:
    """Points of every staircase."""
    return distribution.table(by_name(run), "a poke takes")
