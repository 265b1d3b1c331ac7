"""Mitigations of CPU vulnerabilities that slow system calls."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding

#: States that add work to every entry into the kernel: page table isolation, buffer clearing, branch
#: barriers. Enhanced IBRS is switched on once and adds none.
SLOW = ("PTI", "Clear CPU buffers", "Mitigation: IBRS", "Retpoline", "Clear Registers")


def finding(host: Host) -> Finding | None:
    """Finding, or None when no such mitigation is known to be in force."""
    slow = []
    for entry in host.machine.sections("boot.mitigations"):
        state = entry.text("state") or ""
        if any(mark in state for mark in SLOW):
            slow.append(entry.text("name") or "?")
    if not slow:
        return None
    return Finding(
        id="mitigations",
        severity="note",
        title=f"CPU mitigations slow down kernel entry ({', '.join(slow)})",
        effect="each system call, interrupt and page fault costs 0.05 to 1 µs more on most CPUs; "
        "memory figures are not affected",
    )
