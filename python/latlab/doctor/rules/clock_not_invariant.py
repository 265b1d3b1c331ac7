"""Nobody promises that the counter's rate is constant."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when the rate is promised or the counter is not used."""
    clock = host.clock
    if clock is None or clock.kind != "tsc" or clock.invariant:
        return None
    return Finding(
        id="clock-not-invariant",
        severity="caution",
        title="the CPU does not guarantee a counter with a constant rate",
        effect=f"if the rate follows the core's frequency, all figures of a run are off by that factor; "
        f"calibration saw an error of at most {clock.rate_error_ppm:.1f} ppm",
        remedy="measure with the governor `performance`, or compare two runs",
    )
