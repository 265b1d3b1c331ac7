"""A control group deals out CPU time in slices."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None without a quota that binds."""
    quota = host.machine.number("limits.cgroup.cpu_quota")
    cpus = len(host.allowed_cpus) or host.online_cpus
    if quota is None or (cpus is not None and quota >= cpus):
        return None
    period_ms = (host.machine.number("limits.cgroup.cpu_period_us") or 100_000.0) / 1000
    still = period_ms * max(0.0, 1 - quota) if quota < 1 else None
    pause = (
        f"up to {still:.0f} ms of every {period_ms:.0f}"
        if still
        else f"for the rest of a period of {period_ms:.0f} ms"
    )
    return Finding(
        id="cpu-quota",
        severity="warning" if quota < 1 else "caution",
        title=f"a quota of {quota:g} CPUs is in force",
        effect=f"a process that used its share is stopped {pause}: tails and multi-thread figures "
        "show the quota, not the machine",
        remedy="lift the limit (docker run --cpus, Kubernetes limits.cpu, systemd CPUQuota) for the "
        "measurement",
    )
