"""A topic as a section of the report, until all of them are topics."""

from __future__ import annotations

from typing import Any

from latlab.report.document import Section, sentence
from latlab.report.evidence import evidence
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.view.figure import Absent
from latlab.view.topic import Topic


class TopicSection:
    """What a section's file offers."""

    def __init__(self, topic: Topic[Any, Any]) -> None:
        self._topic = topic

    def section(self, run: Run, probes: Probes) -> Section:
        """The section for this run; it says why when it has nothing to show."""
        topic, found = self._topic, self._topic.of(run)
        return Section(
            id=topic.id,
            title=topic.title,
            sentences=() if isinstance(found, Absent) else topic.prose(found).sentences,
            figures=figure(run, topic.id, topic.caption),
            evidence=(*map(sentence, topic.notes_of(run)), *evidence(run, topic.reads.PROBE)),
            methods=probes.methods_of(topic.reads.PROBE),
            absence=found.why if isinstance(found, Absent) else "",
        )
