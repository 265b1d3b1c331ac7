"""Cores of different kinds."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when all cores are alike, or that is unknown."""
    if host.machine.flag("cpu.hybrid") is not True:
        return None
    return Finding(
        id="hybrid-cpu",
        severity="caution",
        title="this CPU has cores of different kinds",
        effect="caches and clock rates differ between them: each figure holds only for the kind of "
        "CPU on which it was measured",
        remedy="choose with --cpu, and compare one run of each kind",
    )
