"""The same as `pokes`, for pokes that read, change and write back."""

from __future__ import annotations

import altair as alt

from latlab.charts import pokes
from latlab.run.run import Run
from latlab.view.table import Table

ID = "pokes_read_write"
TITLE = "Is writing back slower than reading alone?"
OPERATION = "read-write"


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return pokes.absence(run, OPERATION)


def chart(run: Run) -> alt.LayerChart | None:
    """One staircase an array size, its normal dashed."""
    return pokes.chart(run, OPERATION)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    return pokes.alt_text(run, OPERATION)


def table(run: Run) -> Table:
    """Points of every staircase."""
    return pokes.table(run, OPERATION)
