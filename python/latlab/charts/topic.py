"""A topic's picture as one of the charts, until all of them are topics."""

from __future__ import annotations

from typing import Any

import altair as alt

from latlab.run.run import Run
from latlab.view import vega
from latlab.view.figure import Absent
from latlab.view.table import Table
from latlab.view.topic import Topic


class TopicChart:
    """What a chart module offers."""

    def __init__(self, topic: Topic[Any, Any]) -> None:
        self.ID, self.TITLE, self._topic = topic.id, topic.title, topic

    def absence(self, run: Run) -> str | None:
        """Why there is no chart of this run; None when there is one."""
        found = self._topic.of(run)
        return found.why if isinstance(found, Absent) else None

    def chart(self, run: Run) -> alt.LayerChart | None:
        """The picture, without colours: a theme's configuration adds them."""
        found = self._topic.of(run)
        return None if isinstance(found, Absent) else vega.drawn(self._topic.plot(found))

    def alt_text(self, run: Run) -> str:
        """What the picture shows, in words, with its figures."""
        found = self._topic.of(run)
        return found.why if isinstance(found, Absent) else self._topic.plot(found).words

    def table(self, run: Run) -> Table:
        """The figures behind it."""
        found = self._topic.of(run)
        return Table(()) if isinstance(found, Absent) else self._topic.table(found)
