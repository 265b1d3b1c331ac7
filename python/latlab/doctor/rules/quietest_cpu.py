"""Which CPU is disturbed least."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.disturbances import percent
from latlab.run.model import Finding
from latlab.run.noise import CpuNoise

#: Two short listens to the same CPU differ by as much.
ALIKE = 2.0


def finding(host: Host) -> Finding | None:
    """Finding, or None when the noise of fewer than two was measured."""
    if host.heard is None or len(host.heard.cpus) < 2:  # noqa: PLR2004 - nothing to compare
        return None
    ranked = sorted(host.heard.cpus, key=lambda one: one.lost_share)
    best, worst = ranked[0], ranked[-1]
    of = f"{len(ranked)} of {host.heard.allowed}" if len(ranked) < host.heard.allowed else f"{len(ranked)}"
    alike = worst.lost_share < ALIKE * best.lost_share
    if alike:
        title = f"no CPU is clearly quieter than the others: {_lost(ranked)}"
    else:
        title = f"CPU {host.heard.quietest.cpu} is the quietest of {of}: {_lost(ranked)}"
    return Finding(
        id="quietest-cpu",
        severity="note",
        title=title,
        effect="each was measured briefly; a run uses several CPUs in turn, not only the quietest",
        remedy=None if alike else f"--cpu {host.heard.quietest.cpu} measures on that CPU only",
    )


def _lost(ranked: list[CpuNoise]) -> str:
    """The quietest four, and the loudest."""
    shown = ranked if len(ranked) <= 5 else [*ranked[:4], ranked[-1]]  # noqa: PLR2004 - a line
    return ", ".join(f"CPU {one.cpu} loses {percent(one.lost_share)}" for one in shown)
