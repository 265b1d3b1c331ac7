"""Too little memory for the largest working sets."""

from __future__ import annotations

from latlab import units
from latlab.doctor.host import Host
from latlab.run.model import Finding

#: Four of these are asked for: probes may hold a quarter of the memory.
ENOUGH_BYTES = 2**30

BOUNDS = {
    "cgroup": "the control group's limit",
    "address-space": "ulimit -v",
    "address_space": "ulimit -v",
    "data": "ulimit -d",
    "commit": "strict overcommit",
    "available": "free memory",
}


def finding(host: Host) -> Finding | None:
    """Finding, or None when a quarter of what may be used reaches 1 GiB, or that is unknown."""
    usable = host.machine.integer("limits.usable_memory_bytes")
    if usable is None or usable // 4 >= ENOUGH_BYTES:
        return None
    bound = BOUNDS.get(host.machine.text("limits.usable_memory_bound") or "", "")
    quarter = units.format_bytes(usable // 4)
    cache = host.last_cache_bytes
    reached = cache is None or usable // 4 >= 4 * cache
    effect = f"working sets are limited to a quarter of it, {quarter}, instead of 1 GiB"
    if not reached:
        effect += f"; RAM may not be reached: the last-level cache has {units.format_bytes(cache)}"
    return Finding(
        id="memory-limit",
        severity="caution" if reached else "warning",
        title=f"only {units.format_bytes(usable)} of memory may be used" + (f" ({bound})" if bound else ""),
        effect=effect,
        remedy="raise the limit, or free memory, to 4 GiB",
    )
