"""A container shares its kernel with others."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when there is no evidence of a container."""
    kind = host.machine.text("virtualisation.container.kind")
    if kind is None:
        return None
    return Finding(
        id="container",
        severity="note",
        title="this is a container" + (f" ({kind})" if kind != "unknown" else ""),
        effect="memory figures are the machine's; the CPUs, caches and load listed are the host's, "
        "and other containers use their share unseen",
        remedy="for files, mount a volume and name it with --dir",
    )
