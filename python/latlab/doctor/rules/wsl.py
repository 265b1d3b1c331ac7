"""Windows Subsystem for Linux."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None outside of WSL."""
    version = host.machine.integer("virtualisation.wsl")
    if version is None:
        return None
    if version == 1:
        return Finding(
            id="wsl",
            severity="warning",
            title="this is WSL1: there is no Linux kernel",
            effect="system calls are translated and /proc is incomplete: its caches, pages and "
            "limits may be wrong",
            remedy="wsl --set-version DISTRIBUTION 2",
        )
    return Finding(
        id="wsl",
        severity="caution",
        title="this is WSL2: a virtual machine inside Windows",
        effect="Windows' own programs share caches and memory unseen; /mnt/c is a network file system, ten or"
        " more times slower than the Linux disk",
        remedy="close programs in Windows; keep --dir inside the Linux file system",
    )
