"""One CPU only: nothing can run beside the measuring thread."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when two or more CPUs may be used, or that is unknown."""
    allowed = len(host.settings.cpus or host.allowed_cpus)
    if allowed != 1:
        return None
    return Finding(
        id="one-cpu",
        severity="caution",
        title="only one CPU may be used",
        effect="bandwidth of several threads is not measured, and other programs interrupt the "
        "measuring thread: tails are longer by a time slice (1 to 4 ms)",
        remedy="allow more CPUs (taskset, --cpuset-cpus, --cpu)" if (host.online_cpus or 1) > 1 else None,
    )
