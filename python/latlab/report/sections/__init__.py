"""The report's sections, in the order of the page: the topics, then what holds for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.report.sections import doctor, machine, provenance, unmeasured
from latlab.run.run import Run
from latlab.topics import TOPICS
from latlab.view.topic import Topic


def sections(run: Run, probes: Probes) -> Iterator[Section]:
    """Each says why when it has nothing to show."""
    for topic in TOPICS:
        yield of_topic(topic, run, probes)
    yield doctor.section(run)
    yield machine.section(run)
    yield unmeasured.section(run, probes)
    yield provenance.section(run)


def of_topic(topic: Topic, run: Run, probes: Probes) -> Section:
    """A topic as a section."""
    charts = (own for chart in topic.charts for own in figure(run, chart.id, chart.caption_of(run)))
    return Section(
        id=topic.id,
        title=topic.title,
        sentences=tuple(topic.prose(run)),
        listings=tuple(topic.listings(run)),
        figures=tuple(charts),
        points=tuple(topic.points(run)),
        notices=tuple(topic.notices(run)),
        evidence=topic.evidence_of(run),
        methods=probes.methods_of(*topic.probes),
        absence=topic.absence(run),
    )
