"""Huge pages that are small in hardware, as the last run here found."""

from __future__ import annotations

from latlab import units
from latlab.doctor.host import Host
from latlab.run.model import Finding

#: The smallest huge page of x86-64 and of aarch64 with 4 KiB pages.
HUGE_BYTES = 2 * 2**20


def finding(host: Host) -> Finding | None:
    """Finding, or None when the last run saw huge pages work, or there was none."""
    effective = host.effective_page_bytes
    if effective is None or effective >= HUGE_BYTES:
        return None
    size = units.format_bytes(effective)
    return Finding(
        id="effective-pages",
        severity="caution",
        title=f"huge pages are {size} in hardware here (last run)",
        effect="the host maps this guest's memory in small pages, so the TLB costs of huge pages are those "
        "of small ones",
        remedy="back the guest's memory with huge pages on the host",
    )
