"""Every chart of every topic, in the order in which a report shows them, as Vega-Lite.

A chart never invents a figure that the run does not hold, and says why when there is nothing to draw.
"""

from __future__ import annotations

from typing import Any, Final

import altair as alt

from latlab.errors import UserError
from latlab.run.run import Run
from latlab.topics.chapters import TOPICS
from latlab.view import topic, vega
from latlab.view.drawing import AnyChart, unchecked
from latlab.view.figure import Absent
from latlab.view.table import Cell, Column, Quantity, Table
from latlab.view.theme import LIGHT, config

__all__ = ["CHARTS", "Cell", "Chart", "Column", "Quantity", "Table", "named", "shown", "standalone"]


class Chart:
    """A topic's chart, as what is shown of a run: its name, and the question that it answers."""

    def __init__(self, own: topic.Chart[Any]) -> None:
        self.id, self.title, self._own = own.id, own.title, own

    def absence(self, run: Run) -> str | None:
        """Why there is no chart of this run; None when there is one."""
        found = self._own.of(run)
        return found.why if isinstance(found, Absent) else None

    def chart(self, run: Run) -> AnyChart | None:
        """The picture, without colours: a theme's configuration adds them."""
        found = self._own.of(run)
        return None if isinstance(found, Absent) else vega.drawn(self._own.picture(found))

    def alt_text(self, run: Run) -> str:
        """What the picture shows, in words, with its figures."""
        found = self._own.of(run)
        return found.why if isinstance(found, Absent) else self._own.picture(found).words

    def table(self, run: Run) -> Table:
        """The figures behind it."""
        found = self._own.of(run)
        return Table(()) if isinstance(found, Absent) else self._own.table(found)


CHARTS: Final = tuple(Chart(own) for each in TOPICS for own in each.charts)


def named(name: str) -> Chart:
    """The chart of that name.

    Raises:
        UserError: there is none.
    """
    for chart in CHARTS:
        if name == chart.id:
            return chart
    raise UserError(f"there is no chart named {name!r}; charts: {', '.join(chart.id for chart in CHARTS)}")


def shown(name: str, run: Run) -> Chart:
    """The chart of that name, where this run has data for it.

    Raises:
        UserError: there is none of that name, or this run has no data for it.
    """
    chart = named(name)
    absence = chart.absence(run)
    if absence is not None:
        raise UserError(f"no chart {name!r} of this run: {absence or 'it has no data'}")
    return chart


def standalone(name: str, run: Run) -> AnyChart:
    """A chart to show alone, in a notebook or a file: with its title, in the light theme on its own surface.

    Raises:
        UserError: there is no chart of that name, or this run has no data for it.
    """
    definition = shown(name, run)
    with unchecked():
        drawn = definition.chart(run)
    if drawn is None:
        raise UserError(f"no chart {name!r} of this run: it has no data")
    titled = drawn.properties(title=definition.title, description=definition.alt_text(run))
    titled.config = alt.Config(**config(LIGHT, background=True))
    return titled
