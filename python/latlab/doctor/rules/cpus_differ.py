"""The last run's figures depend on the CPU."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when its CPUs differ within run-to-run variation, or there is no such run."""
    found = host.differing
    if found is None:
        return None
    return Finding(
        id="cpus-differ",
        severity="note",
        title=found.title,
        effect=f"{found.why}; a program that is not pinned may take either time",
        remedy=found.remedy,
    )
