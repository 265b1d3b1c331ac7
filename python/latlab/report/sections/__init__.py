"""The report's sections, in the order of the page: the topics, then what holds for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

from latlab.report.document import Chapter, Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.report.sections import doctor, machine, provenance, unmeasured
from latlab.run.run import Run
from latlab.topics.chapters import CHAPTERS
from latlab.view.topic import Topic


def chapters(run: Run, probes: Probes) -> Iterator[Chapter]:
    """Each section says why when it has nothing to show."""
    for chapter in CHAPTERS:
        sections = tuple(of_topic(topic, run, probes) for topic in chapter.topics)
        # An answer with a chart, an answer, a chart.
        kinds = [(bool(section.sentences), bool(section.figures)) for section in sections]
        yield Chapter(chapter.id, chapter.title, chapter.group, sections, kinds.index(max(kinds)))
    whole = (
        doctor.section(run),
        machine.section(run),
        unmeasured.section(run, probes),
        provenance.section(run),
    )
    yield Chapter("this-run", "This machine and this run", "Trust", whole)


def of_topic(topic: Topic, run: Run, probes: Probes) -> Section:
    """A topic as a section."""
    charts = (own for chart in topic.charts for own in figure(run, chart.id, chart.caption_of(run)))
    return Section(
        id=topic.id,
        title=topic.title,
        sentences=tuple(topic.prose(run)),
        listings=tuple(topic.listings(run)),
        figures=tuple(charts),
        notices=tuple(topic.notices(run)),
        evidence=topic.evidence_of(run),
        methods=probes.methods_of(*topic.probes),
        absence=topic.absence(run),
        statements=tuple(topic.statements(run)),
    )
