"""A system on which latlab is not proven."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None on Linux."""
    name = host.machine.text("os.name")
    if name in {None, "Linux"}:
        return None
    return Finding(
        id="other-system",
        severity="caution",
        title=f"{name} is supported in part: latlab is proven on Linux only",
        effect="threads are not pinned and page sizes are not verified: tails are longer and huge-page "
        "figures are missing",
    )
