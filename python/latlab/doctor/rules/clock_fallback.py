"""The operating system's clock stands in for the CPU's counter."""

from __future__ import annotations

from latlab import units
from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when the CPU's counter is the clock."""
    clock = host.clock
    if clock is None or clock.kind != "os":
        return None
    why = clock.why_not_hardware or "the reason is unknown"
    return Finding(
        id="clock-fallback",
        severity="caution",
        title="the operating system's clock is used, not the CPU's counter",
        effect=f"{why}; an empty timed region reads {units.format_ns(clock.overhead_ns.mean)}, which "
        "times of single accesses include",
        remedy="if the counter is known to be stable, boot with tsc=reliable"
        if "kernel keeps time" in why
        else None,
    )
