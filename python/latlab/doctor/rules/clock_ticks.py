"""The counter's ticks are not the core's cycles."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding

#: Two per cent is within what turbo moves during one measurement.
ALIKE = 0.02


def finding(host: Host) -> Finding | None:
    """Finding, or None when the two rates are alike or the core's is not known."""
    if host.clock is None or host.clock.kind != "tsc" or not host.core_ghz:
        return None
    factor = host.core_ghz / host.clock.ticks_per_ns
    if abs(factor - 1) < ALIKE:
        return None
    return Finding(
        id="clock-ticks",
        severity="note",
        title=f"the counter ticks at {host.clock.ticks_per_ns:.2f} GHz, the core ran at "
        f"{host.core_ghz:.2f} GHz",
        effect=f"a program that counts TSC ticks and calls them cycles is off by a factor of {factor:.2f}; "
        "latlab reports core cycles",
    )
