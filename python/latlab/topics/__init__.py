"""Everything that is shown of one question, in the order of a page: a new one is a file and its name here."""

from __future__ import annotations

from typing import Final

from latlab.topics import (
    alignment,
    allocation,
    bandwidth,
    clocks,
    core_to_core,
    false_sharing,
    faults,
    hierarchy,
    kernel,
    ladder,
    loaded,
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

LEVELS: Final = (ladder.TOPIC, hierarchy.TOPIC, translation.TOPIC, pokes.TOPIC)
MEMORY: Final = (
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
)
STORAGE: Final = (
    storage_blocks.TOPIC,
    storage_random.TOPIC,
    storage_rate.TOPIC,
    storage_pokes.TOPIC,
    storage_sync.TOPIC,
    storage_files.TOPIC,
    storage_reread.TOPIC,
    storage_first_touch.TOPIC,
    storage_steady.TOPIC,
)
NETWORK: Final = (
    network_roundtrip.TOPIC,
    network_throughput.TOPIC,
    network_loaded.TOPIC,
    network_connect.TOPIC,
    network_transfer.TOPIC,
    network_http.TOPIC,
)
#: What comes after slow operations, which are no topic yet.
REST: Final = (noise.TOPIC, *MEMORY, kernel.TOPIC, *STORAGE, *NETWORK, clocks.TOPIC)
TOPICS: Final = (*LEVELS, *REST)
