"""Blocks that were read for the first time, and again: how often a reading takes how long."""

from __future__ import annotations

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.disk import timed
from latlab.units import format_bytes
from latlab.view import distribution, stairs
from latlab.view.distribution import thinned
from latlab.view.points import why_absent
from latlab.view.table import Table

ID = "storage_first_touch"
TITLE = "What does it cost to be the first who reads a block?"
PROBE = "storage.first_touch"
_READINGS = ("first", "second")
#: Points of one staircase: the page has room for a few hundred.
_MOST_STEPS = 70
_HEIGHT = 300


def readings(run: Run) -> dict[int, dict[str, Record]]:
    """Both readings by size of block, where both are there."""
    own: dict[int, dict[str, Record]] = {}
    for record in timed(run, PROBE):
        if record.histogram is not None and record.point.operation in _READINGS and record.point.block_bytes:
            own.setdefault(record.point.block_bytes, {})[record.point.operation or ""] = record
    pairs = {size: {word: pair[word] for word in _READINGS if word in pair} for size, pair in own.items()}
    return {size: pair for size, pair in sorted(pairs.items()) if len(pair) == len(_READINGS)}


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if readings(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """One panel a size on the same axes: what moves to the right is slower."""
    panels = {
        f"blocks of {format_bytes(size)}": {
            word: thinned(distribution.steps(record), _MOST_STEPS) for word, record in pair.items()
        }
        for size, pair in readings(run).items()
    }
    return stairs.beside(panels, _READINGS, ("a block takes at least", "share of blocks"), _HEIGHT)


def by_name(run: Run) -> dict[str, Record]:
    """Every record by what it is called in a table."""
    return {
        f"{word}, {format_bytes(size)}": record
        for size, pair in readings(run).items()
        for word, record in pair.items()
    }


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    text = (
        "Staircase charts, both axes logarithmic: share of blocks that take at least a time, first reading"
        " and second. "
    )
    return text + distribution.in_words(by_name(run)) + "."


def table(run: Run) -> Table:
    """Points of every staircase."""
    return distribution.table(by_name(run), "a block takes")
