"""The process may run on some of the CPUs only."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when all CPUs are allowed, one is (that has its own rule), or that is unknown."""
    allowed, online = len(host.allowed_cpus), host.online_cpus
    if online is None or allowed < 2 or allowed >= online:  # noqa: PLR2004 - one CPU is another rule
        return None
    return Finding(
        id="affinity",
        severity="note",
        title=f"{allowed} of {online} CPUs may be used",
        effect=f"bandwidth is measured with up to {allowed} threads; the whole machine may reach more",
        remedy="taskset -c 0-" + str(online - 1) + " latlab, or a larger cpuset",
    )
