"""What interrupts every program as regularly as a clock."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run import disturbances
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None without a noise measurement, or when nothing comes regularly."""
    if host.heard is None:
        return None
    standing = disturbances.standing_causes(host.heard.quietest)
    if not standing:
        return None
    named = " and ".join(
        f"{disturbances.cause_name(one.cause)} ({disturbances.rate(one.hz)} a second)" for one in standing
    )
    effects = "; ".join(
        f"{disturbances.effect(one)}, {disturbances.effect_on_windows(one)}" for one in standing
    )
    own = any(one.cause == "timer-tick" for one in standing)
    return Finding(
        id="standing-causes",
        severity="note",
        title=f"every program here is interrupted by {named}",
        effect=effects,
        remedy="isolate a CPU at boot (isolcpus, nohz_full): it has no timer tick" if own else None,
    )
