"""A topic as a section of the report, until all of them are topics."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.view.topic import Topic


class TopicSection:
    """What a section's file offers."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def section(self, run: Run, probes: Probes) -> Section:
        """The section for this run; it says why when it has nothing to show."""
        topic = self._topic
        return Section(
            id=topic.id,
            title=topic.title,
            sentences=tuple(topic.prose(run)),
            listings=tuple(topic.listings(run)),
            figures=tuple(
                own for chart in topic.charts for own in figure(run, chart.id, chart.caption_of(run))
            ),
            points=tuple(topic.points(run)),
            notices=tuple(topic.notices(run)),
            evidence=topic.evidence_of(run),
            methods=probes.methods_of(*topic.probes),
            absence=topic.absence(run),
        )
