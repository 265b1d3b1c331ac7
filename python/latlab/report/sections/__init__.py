"""The report's sections, in the order of the page. A new section is a file and its line here."""

from __future__ import annotations

from typing import Final, Protocol

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.report.sections import (
    doctor,
    long_tail,
    machine,
    provenance,
    unmeasured,
)
from latlab.report.sections.topic import TopicSection
from latlab.run.run import Run
from latlab.topics import LEVELS, REST


class SectionModule(Protocol):
    """What a section's file offers."""

    def section(self, run: Run, probes: Probes) -> Section:
        """The section for this run; it says why when it has nothing to show."""


SECTIONS: Final[tuple[SectionModule, ...]] = (
    *map(TopicSection, LEVELS),
    long_tail,
    *map(TopicSection, REST),
    doctor,
    machine,
    unmeasured,
    provenance,
)
