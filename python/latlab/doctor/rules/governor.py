"""The frequency governor saves power."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when it asks for full speed, or that is unknown (most virtual machines)."""
    governor = host.machine.text("cpu.governor")
    if governor is None or governor == "performance":
        return None
    return Finding(
        id="governor",
        severity="caution",
        title=f"the frequency governor is `{governor}`",
        effect="an idle core starts at a lower frequency: until it has sped up, cache figures in ns "
        "are longer by the ratio of the frequencies; core cycles are shown beside them",
        remedy="sudo cpupower frequency-set -g performance",
    )
