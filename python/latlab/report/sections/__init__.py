"""The report's sections, in the order of the page. A new section is a file and its line here."""

from __future__ import annotations

from typing import Protocol

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.report.sections import (
    alignment,
    allocation,
    bandwidth,
    clocks,
    core_to_core,
    doctor,
    false_sharing,
    faults,
    hierarchy,
    kernel,
    ladder,
    long_tail,
    machine,
    mappings,
    network_connect,
    network_http,
    network_loaded,
    network_roundtrip,
    network_throughput,
    network_transfer,
    nodes,
    noise,
    parallelism,
    pokes,
    prefetch,
    provenance,
    python,
    reuse,
    stride,
    translation,
    unmeasured,
)
from latlab.report.sections.topic import TopicSection
from latlab.run.run import Run
from latlab.topics import MEMORY, STORAGE


class SectionModule(Protocol):
    """What a section's file offers."""

    def section(self, run: Run, probes: Probes) -> Section:
        """The section for this run; it says why when it has nothing to show."""


SECTIONS: tuple[SectionModule, ...] = (
    ladder,
    hierarchy,
    translation,
    pokes,
    long_tail,
    noise,
    bandwidth,
    stride,
    prefetch,
    parallelism,
    alignment,
    *map(TopicSection, MEMORY),
    core_to_core,
    false_sharing,
    faults,
    mappings,
    allocation,
    nodes,
    reuse,
    python,
    kernel,
    *map(TopicSection, STORAGE),
    network_roundtrip,
    network_throughput,
    network_loaded,
    network_connect,
    network_transfer,
    network_http,
    clocks,
    doctor,
    machine,
    unmeasured,
    provenance,
)
