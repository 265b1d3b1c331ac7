"""Everything that is shown of one question, in the order of a page: a new one is a file and its name here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from latlab.topics import (
    alignment,
    allocation,
    bandwidth,
    clocks,
    core_to_core,
    cpu_mix,
    false_sharing,
    faults,
    hierarchy,
    kernel,
    ladder,
    loaded,
    long_tail,
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
    python,
    reuse,
    storage_blocks,
    storage_files,
    storage_first_touch,
    storage_pokes,
    storage_random,
    storage_rate,
    storage_reread,
    storage_steady,
    storage_sync,
    stride,
    translation,
)
from latlab.view.topic import Topic


@dataclass(frozen=True, slots=True)
class Chapter:
    """What a reader looks for together; the first topic that has figures answers for the chapter."""

    id: str
    title: str
    group: str
    topics: tuple[Topic, ...]


#: In the order of the page.
CHAPTERS: Final = (
    Chapter(
        "caches-and-ram",
        "Caches and RAM",
        "Memory",
        (hierarchy.TOPIC, ladder.TOPIC, translation.TOPIC, stride.TOPIC, prefetch.TOPIC, alignment.TOPIC),
    ),
    Chapter(
        "memory-bandwidth",
        "Memory bandwidth",
        "Memory",
        (bandwidth.TOPIC, loaded.TOPIC, parallelism.TOPIC),
    ),
    Chapter(
        "new-memory",
        "New memory: page faults and allocation",
        "Memory",
        (faults.TOPIC, allocation.TOPIC, nodes.TOPIC, mappings.TOPIC, reuse.TOPIC, python.TOPIC),
    ),
    Chapter(
        "cores-and-kernel",
        "Kernel, cores and clocks",
        "CPU and kernel",
        (kernel.TOPIC, core_to_core.TOPIC, false_sharing.TOPIC, cpu_mix.TOPIC, clocks.TOPIC),
    ),
    Chapter(
        "disk-reads",
        "Disk: reading and writing",
        "Disk",
        (
            storage_blocks.TOPIC,
            storage_random.TOPIC,
            storage_rate.TOPIC,
            storage_steady.TOPIC,
            storage_first_touch.TOPIC,
        ),
    ),
    Chapter(
        "files",
        "Files: durable writes, many small files, the page cache",
        "Disk",
        (storage_pokes.TOPIC, storage_sync.TOPIC, storage_files.TOPIC, storage_reread.TOPIC),
    ),
    Chapter(
        "network-paths",
        "Network",
        "Network",
        (
            network_roundtrip.TOPIC,
            network_throughput.TOPIC,
            network_loaded.TOPIC,
            network_connect.TOPIC,
            network_transfer.TOPIC,
            network_http.TOPIC,
        ),
    ),
    Chapter(
        "slow-operations",
        "Slow operations and their causes",
        "Trust",
        (pokes.TOPIC, long_tail.TOPIC, noise.TOPIC),
    ),
)

TOPICS: Final = tuple(topic for chapter in CHAPTERS for topic in chapter.topics)
