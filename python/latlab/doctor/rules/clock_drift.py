"""The counter disagrees with the system's clock, or ran backwards."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding

#: 0.2 s of calibration gave 73 ppm on one machine, and made the causes of outliers wrong after five seconds.
LOOSE_PPM = 50.0


def finding(host: Host) -> Finding | None:
    """Finding, or None when the calibration is tight and no reading ran backwards."""
    clock = host.clock
    if clock is None:
        return None
    if clock.backwards:
        return Finding(
            id="clock-drift",
            severity="warning",
            title=f"the clock ran backwards {clock.backwards:,} times while it was checked",
            effect="a timed region can be far too short or too long; extreme values are meaningless",
            remedy="keep the process on one CPU (--cpu N); look for `unstable` in `dmesg | grep -i tsc`",
        )
    if clock.rate_error_ppm < LOOSE_PPM:
        return None
    return Finding(
        id="clock-drift",
        severity="note",
        title=f"the clock's rate is known only to {clock.rate_error_ppm:.0f} ppm",
        effect=f"a figure may be off by {clock.rate_error_ppm / 1e4:.3g} %; time stamps of outliers "
        f"drift by {clock.rate_error_ppm:.0f} µs per second against other logs",
    )
