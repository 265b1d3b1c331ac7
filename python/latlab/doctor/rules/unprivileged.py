"""An ordinary user."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None for the superuser, or when that is unknown."""
    if host.machine.flag("limits.root") is not False:
        return None
    return Finding(
        id="unprivileged",
        severity="note",
        title="running as an ordinary user",
        effect="memory figures are not affected; only root can use kernel tracepoints, so fewer slow "
        "operations get a named cause",
    )
