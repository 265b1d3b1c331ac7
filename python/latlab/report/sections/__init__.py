"""The report's sections, in the order of the page. A new section is a file and its line here."""

from __future__ import annotations

from typing import Final, Protocol

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.report.sections import (
    doctor,
    ladder,
    long_tail,
    machine,
    noise,
    provenance,
    unmeasured,
)
from latlab.report.sections.topic import TopicSection
from latlab.run.run import Run
from latlab.topics import (
    STORAGE,
    alignment,
    allocation,
    bandwidth,
    clocks,
    core_to_core,
    false_sharing,
    faults,
    hierarchy,
    kernel,
    loaded,
    mappings,
    network_connect,
    network_http,
    network_loaded,
    network_roundtrip,
    network_throughput,
    network_transfer,
    nodes,
    parallelism,
    pokes,
    prefetch,
    python,
    reuse,
    stride,
    translation,
)
from latlab.view.topic import Topic


class SectionModule(Protocol):
    """What a section's file offers."""

    def section(self, run: Run, probes: Probes) -> Section:
        """The section for this run; it says why when it has nothing to show."""


#: Modules of a section, and topics.
_PARTS: Final[tuple[SectionModule | Topic, ...]] = (
    ladder,
    hierarchy.TOPIC,
    translation.TOPIC,
    pokes.TOPIC,
    long_tail,
    noise,
    bandwidth.TOPIC,
    stride.TOPIC,
    prefetch.TOPIC,
    parallelism.TOPIC,
    alignment.TOPIC,
    loaded.TOPIC,
    core_to_core.TOPIC,
    false_sharing.TOPIC,
    faults.TOPIC,
    mappings.TOPIC,
    allocation.TOPIC,
    nodes.TOPIC,
    reuse.TOPIC,
    python.TOPIC,
    kernel.TOPIC,
    *STORAGE,
    network_roundtrip.TOPIC,
    network_throughput.TOPIC,
    network_loaded.TOPIC,
    network_connect.TOPIC,
    network_transfer.TOPIC,
    network_http.TOPIC,
    clocks.TOPIC,
    doctor,
    machine,
    unmeasured,
    provenance,
)
SECTIONS: Final[tuple[SectionModule, ...]] = tuple(
    TopicSection(part) if isinstance(part, Topic) else part for part in _PARTS
)
