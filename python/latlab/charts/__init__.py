"""Every chart: one file each, in the order in which a report shows them.

A chart is a module with a question as its title. It never invents a figure that the run does not hold, and
says why when there is nothing to draw.
"""

from __future__ import annotations

from typing import Final, Protocol

import altair as alt

from latlab.charts import (
    long_tail,
    over_time,
    tail_causes,
)
from latlab.charts.topic import charts_of
from latlab.errors import UserError
from latlab.run.run import Run
from latlab.topics import LEVELS, REST
from latlab.view.drawing import AnyChart, unchecked
from latlab.view.table import Cell, Column, Quantity, Table
from latlab.view.theme import LIGHT, config

__all__ = ["CHARTS", "Cell", "Chart", "Column", "Quantity", "Table", "named", "standalone"]


class Chart(Protocol):
    """What a chart module offers."""

    ID: str
    TITLE: str

    def absence(self, run: Run) -> str | None:
        """Why there is no chart of this run; None when there is one."""

    def chart(self, run: Run) -> AnyChart | None:
        """The picture, without colours: a theme's configuration adds them."""

    def alt_text(self, run: Run) -> str:
        """What the picture shows, in words, with its figures."""

    def table(self, run: Run) -> Table:
        """The figures behind it."""


CHARTS: Final[tuple[Chart, ...]] = (
    *charts_of(LEVELS),
    long_tail,
    tail_causes,
    over_time,
    *charts_of(REST),
)


def named(name: str) -> Chart:
    """The chart of that name.

    Raises:
        UserError: there is none.
    """
    for chart in CHARTS:
        if name == chart.ID:
            return chart
    raise UserError(f"there is no chart named {name!r}; there are {', '.join(chart.ID for chart in CHARTS)}")


def standalone(name: str, run: Run) -> AnyChart:
    """A chart to show alone, in a notebook or a file: with its title, in the light theme on its own surface.

    Raises:
        UserError: there is no chart of that name, or this run has no data for it.
    """
    definition = named(name)
    with unchecked():
        drawn = definition.chart(run)
    if drawn is None:
        raise UserError(f"no chart {name!r} of this run: {definition.absence(run) or 'it has no data'}")
    titled = drawn.properties(title=definition.TITLE, description=definition.alt_text(run))
    titled.config = alt.Config(**config(LIGHT, background=True))
    return titled
