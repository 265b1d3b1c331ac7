"""Why a host may be slow: what its description says that those of its peers do not, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from latlab.compare.sides import value_at
from latlab.fleet.host import Host

#: What may make a host of the same hardware slow: where its description has it, its name, what to do.
_CAUSES: Final = (
    ("limits.cgroup.cpu_quota", "CPU quota", "raise or remove the quota of its cgroup"),
    ("limits.cgroup.memory_limit_bytes", "memory limit", "raise or remove the limit of its cgroup"),
    ("limits.usable_cpus", "CPUs that may be used", "allow it more CPUs"),
    ("clock_source.current", "clock source", "find out why the kernel distrusts the CPU's clock"),
    ("cpu.governor", "frequency governor", "set the same governor as on its peers"),
    ("cpu.boost", "frequency boost", "set boost as on its peers"),
    ("cpu.energy_preference", "energy preference", "set the same preference as on its peers"),
    (
        "memory.thp.enabled",
        "transparent huge pages",
        "set /sys/kernel/mm/transparent_hugepage/enabled as on its peers",
    ),
    ("memory.numa_balancing", "NUMA balancing", "set kernel.numa_balancing as on its peers"),
    ("memory.swap_used_bytes", "swap in use", "find out what uses its memory"),
    ("dir.file_system.options", "mount options", "mount it with the same options as on its peers"),
    ("virtualisation.hypervisor", "hypervisor", "find out on which kind of host it runs"),
    ("virtualisation.container", "container", "compare inside containers only, or outside only"),
    ("boot.mitigations", "mitigations of CPU faults", "compare the boot options"),
    ("kernel.preemption", "preemption of the kernel", "compare the boot options"),
)
#: What most of the peers must share before a host can differ from it.
_MOST: Final = 0.75


def differences(host: Host, peers: Sequence[Host]) -> Iterator[str]:
    """What distinguishes a host from most of its peers, in words, each with what to do.

    Args:
        host: One host.
        peers: The others of its class.
    """
    for at, name, cure in _CAUSES:
        common, count = Counter(value_at(peer.machine, at) for peer in peers).most_common(1)[0]
        own = value_at(host.machine, at)
        if own != common and count >= _MOST * len(peers):
            shown = "" if at == "boot.mitigations" else f" {own}, peers {common}"
            yield f"{name}{':' if shown else ' differ'}{shown}: {cure}"
