"""The machine runs on its battery."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None on mains power, or when that is unknown."""
    if host.machine.text("cpu.power_source") != "battery":
        return None
    return Finding(
        id="battery",
        severity="caution",
        title="this machine runs on battery",
        effect="firmware caps the core's frequency and may slow the memory: figures differ from "
        "those on mains power",
        remedy="plug it in",
    )
