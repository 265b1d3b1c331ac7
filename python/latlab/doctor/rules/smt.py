"""Two hardware threads share a core and its caches."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None without SMT, or when that is unknown."""
    threads = host.machine.integer("cpu.threads_per_core")
    if threads is None or threads < 2:  # noqa: PLR2004 - two threads are what SMT is
        return None
    return Finding(
        id="smt",
        severity="note",
        title=f"each core has {threads} hardware threads",
        effect="a busy sibling thread uses part of L1, L2 and their bandwidth: figures of one CPU "
        "can change by a factor of two",
        remedy="keep the machine quiet, or name one CPU of each core with --cpu",
    )
