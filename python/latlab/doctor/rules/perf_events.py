"""Kernel events are kept from this user."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding

#: From 2 on, ordinary users do not see what the kernel does (Documentation/admin-guide/sysctl/kernel.rst).
CLOSED = 2


def finding(host: Host) -> Finding | None:
    """Finding, or None when they may be read, or that is unknown."""
    level = host.machine.integer("limits.perf_event_paranoid")
    able = host.machine.flag("limits.root") or "CAP_PERFMON" in [
        name.upper() for name in host.machine.texts("limits.capabilities")
    ]
    if level is None or level < CLOSED or able:
        return None
    return Finding(
        id="perf-events",
        severity="note",
        title=f"this user cannot read kernel events (perf_event_paranoid = {level})",
        effect="slow outliers are counted and time-stamped, but fewer of them get a cause",
        remedy="sudo sysctl kernel.perf_event_paranoid=1",
    )
