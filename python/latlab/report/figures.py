"""A chart as a figure of a report."""

from __future__ import annotations

from latlab.charts import Chart, named
from latlab.report.document import Figure
from latlab.run.run import Run
from latlab.view.drawing import plain_spec, unchecked


def figure(run: Run, chart: str | Chart, caption: str = "", title: str = "") -> tuple[Figure, ...]:
    """The chart, or the one of that name, as a figure; nothing when this run has no data for it."""
    definition = named(chart) if isinstance(chart, str) else chart
    with unchecked():
        drawn = definition.chart(run)
        if drawn is None:
            return ()
        spec = plain_spec(drawn)
    words, table = definition.alt_text(run), definition.table(run)
    return (Figure(definition.id, title or definition.title, spec, words, caption, table),)
