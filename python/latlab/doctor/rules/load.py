"""Other programs are busy now."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding

#: Half a busy thread for four CPUs moved L3 figures on a machine with a shared L3.
QUIET_SHARE = 0.125


def finding(host: Host) -> Finding | None:
    """Finding, or None when the machine is quiet, or that is unknown."""
    cpus = host.online_cpus or 1
    if host.load is None or host.load < QUIET_SHARE * cpus:
        return None
    busy = host.load >= cpus
    return Finding(
        id="load",
        severity="warning" if busy else "caution",
        title=f"about {host.load:.1f} threads were busy here during the last minute ({cpus} CPUs)",
        effect="they use L3, RAM bandwidth and CPU time: L3 and RAM figures can be several times "
        "off, tails reach a time slice (4 ms)",
        remedy="wait until they are done, or use --gentle if they must not be slowed down",
    )
