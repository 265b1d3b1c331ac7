"""Memory was swapped out."""

from __future__ import annotations

from latlab import units
from latlab.doctor.host import Host
from latlab.run.model import Finding

#: Less than this is what a kernel puts away in a quiet hour.
MATTERS_BYTES = 64 * 2**20


def finding(host: Host) -> Finding | None:
    """Finding, or None when little or no swap is in use."""
    used = host.machine.integer("memory.swap_used_bytes")
    if used is None or used < MATTERS_BYTES:
        return None
    return Finding(
        id="swap",
        severity="caution",
        title=f"{units.format_bytes(used)} are swapped out",
        effect="memory is short: a page may be written to disk during a measurement, which takes "
        "milliseconds, not nanoseconds",
        remedy="close programs first; records with major page faults are marked",
    )
