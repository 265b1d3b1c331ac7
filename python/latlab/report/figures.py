"""A chart as a figure of the document."""

from __future__ import annotations

from latlab.charts import named
from latlab.report.document import Figure
from latlab.run.run import Run
from latlab.view.drawing import plain_spec, unchecked


def figure(run: Run, name: str, caption: str = "") -> tuple[Figure, ...]:
    """The chart of that name as a figure, or nothing when this run has no data for it."""
    definition = named(name)
    with unchecked():
        drawn = definition.chart(run)
        if drawn is None:
            return ()
        spec = plain_spec(drawn)
    return (Figure(name, definition.title, spec, definition.alt_text(run), caption, definition.table(run)),)
