"""How often a random block takes how long: reads and writes, alone and with others under way."""

from __future__ import annotations

import altair as alt

from latlab.charts import stairs
from latlab.charts.storage import timed
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.view import curves
from latlab.view.points import why_absent
from latlab.view.table import Table

ID = "storage_random"
TITLE = "How often is a random block of the disk slow?"
READ, WRITE = "storage.read.random", "storage.write.random"
VERBS = {READ: "read", WRITE: "write"}
BLOCK = 4096
#: One request at a time, and what saturates most devices.
DEPTHS = (1, 32)


def distributions(run: Run) -> dict[str, Record]:
    """Records of 4 KiB blocks at the depths that are drawn, by name."""
    found: dict[str, Record] = {}
    for probe, verb in VERBS.items():
        for depth in DEPTHS:
            for record in timed(run, probe):
                point = record.point
                fits = point.block_bytes == BLOCK and (point.queue_depth or 1) == depth
                if fits and record.histogram is not None:
                    found.setdefault(f"{verb}, depth {depth}", record)
    return found


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if distributions(run) else why_absent(run, READ)


def chart(run: Run) -> alt.LayerChart | None:
    """One staircase each, both axes logarithmic."""
    lines = {name: stairs.steps(record) for name, record in distributions(run).items()}
    if not lines:
        return None
    titles = ("a block of 4 KiB takes at least this long", "share of blocks")
    return stairs.panel(lines, list(lines), titles, stairs.span(lines), curves.WIDTH, 320)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    text = "Staircase chart, both axes logarithmic: share of random 4 KiB blocks that take at least a time. "
    return text + stairs.in_words(distributions(run)) + "."


def table(run: Run) -> Table:
    """Points of every staircase."""
    return stairs.table(distributions(run), "a block takes")
