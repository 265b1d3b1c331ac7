"""A topic's pictures as charts, until all of them are topics'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from latlab.run.run import Run
from latlab.view import topic, vega
from latlab.view.drawing import AnyChart
from latlab.view.figure import Absent
from latlab.view.table import Table


class TopicChart:
    """What a chart module offers."""

    def __init__(self, chart: topic.Chart[Any]) -> None:
        self.ID, self.TITLE, self.own = chart.id, chart.title, chart

    def absence(self, run: Run) -> str | None:
        """Why there is no chart of this run; None when there is one."""
        found = self.own.of(run)
        return found.why if isinstance(found, Absent) else None

    def chart(self, run: Run) -> AnyChart | None:
        """The picture, without colours: a theme's configuration adds them."""
        found = self.own.of(run)
        return None if isinstance(found, Absent) else vega.drawn(self.own.picture(found))

    def alt_text(self, run: Run) -> str:
        """What the picture shows, in words, with its figures."""
        found = self.own.of(run)
        return found.why if isinstance(found, Absent) else self.own.picture(found).words

    def table(self, run: Run) -> Table:
        """The figures behind it."""
        found = self.own.of(run)
        return Table(()) if isinstance(found, Absent) else self.own.table(found)


def charts_of(topics: Iterable[topic.Topic]) -> Iterator[TopicChart]:
    """Their charts, in order."""
    return (TopicChart(chart) for each in topics for chart in each.charts)
