"""Something takes the CPU away now."""

from __future__ import annotations

from typing import Literal

from latlab import units
from latlab.doctor.host import Host
from latlab.run import disturbances
from latlab.run.model import Finding

Severity = Literal["note", "caution", "warning"]
#: Ticks alone take a few tenths of a percent, on a virtual machine up to 2 %.
CAUTION_SHARE, WARNING_SHARE = 0.03, 0.1


def finding(host: Host) -> Finding | None:
    """Finding, or None without a noise measurement, or when it found nothing."""
    if host.heard is None:
        return None
    noise = host.heard.quietest
    everything = disturbances.all_gaps(noise)
    if everything is None:
        return None
    lost = noise.lost_share
    severity: Severity = (
        "warning" if lost >= WARNING_SHARE else "caution" if lost >= CAUTION_SHARE else "note"
    )
    longest = max(row.largest_ns for row in noise.causes)
    shares = disturbances.verdict(noise).split(": ", 1)[1].rstrip(".")
    return Finding(
        id="disturbed-cpu",
        severity=severity,
        title=f"CPU {noise.cpu} is interrupted {disturbances.rate(everything.hz)} times a second,"
        f" {disturbances.percent(lost)} of its time",
        effect=f"by time {shares}; the longest in {units.format_seconds(noise.seconds)} took "
        f"{units.format_ns(longest)}; 1 in {units.format_count(everything.one_in(100.0))} operations "
        f"of 100 ns is interrupted, 1 in {units.format_count(everything.one_in(10_000.0))} of 10 µs",
        remedy=None
        if severity == "note"
        else "stop busy programs; latlab noise shows the causes, as root by name",
    )
