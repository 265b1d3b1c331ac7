"""A run with every probe and figures as a real machine has them; one file a tier.

The machine that it pretends to be (`machine.json`): 4 CPUs of a virtual machine, L1d 48 KiB, L2 1 MiB, a
shared L3 of 32 MiB of which 10 to 14 MiB are effective, huge pages that are 4 KiB in hardware, a clock that
steps by 10 ns. Nothing is random but what the seed makes so: running it twice gives the same bytes.
"""

from __future__ import annotations

from collections import Counter

from . import alloc, clock, cpu, http, kernel, memory, network, noise, python, sharing, storage, vm
from .header import header
from .rounds import rounds_lines
from .tools import JSON, as_figure

__all__ = ["lines", "rounds_lines"]

#: In the order of a run: they share one clock and one sequence of random numbers, so another order is another
#: file.
PARTS = (
    clock.clock_records,
    memory.chase_records,
    memory.poke_records,
    memory.bandwidth_records,
    memory.stride_records,
    memory.parallelism_records,
    memory.prefetch_records,
    memory.alignment_records,
    sharing.loaded_records,
    sharing.core_to_core_records,
    sharing.false_sharing_records,
    vm.fault_records,
    vm.map_records,
    vm.zero_records,
    alloc.malloc_records,
    alloc.node_records,
    alloc.reuse_records,
    python.python_records,
    kernel.kernel_records,
    storage.storage_records,
    network.network_records,
    noise.noise_records,
    http.http_records,
    network.connect_records,
    network.transfer_records,
    network.stream_records,
    network.loaded_records,
    cpu.mix_records,
)


def lines() -> list[JSON]:
    """Every line of the file: its figures are made up, so there are no lines that they are of."""
    figures = [as_figure(record) for part in PARTS for record in part()]
    return [header(), footer(figures)]


def footer(figures: list[JSON]) -> JSON:
    return {
        "line": "footer",
        "ended": "2026-11-21T00:30:34.002+00:00",
        "stopped_by": "completed",
        "totals": {
            "records": dict(Counter(figure["kind"] for figure in figures)),
            "seconds": 21.584,
            "written_bytes": 2_987_654_321,
            "disturbed_blocks": 1,
            "worker_restarts": 0,
        },
        "fold": 1,
        "figures": [{name: value for name, value in one.items() if name != "line"} for one in figures],
    }
