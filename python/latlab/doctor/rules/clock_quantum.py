"""The clock advances in steps that are longer than what is to be timed."""

from __future__ import annotations

from latlab import units
from latlab.doctor.host import Host
from latlab.run.model import Finding

#: An L2 hit is 3 to 5 ns on machines of the last ten years: a coarser step cannot tell it from an L1 hit.
COARSE_NS = 3.0


def finding(host: Host) -> Finding | None:
    """Finding, or None when a single L2 hit can be timed."""
    if host.clock is None or host.clock.quantum_ns < COARSE_NS:
        return None
    step = units.format_ns(host.clock.quantum_ns, digits=2)
    return Finding(
        id="clock-quantum",
        severity="caution",
        title=f"the clock steps by {step} here",
        effect="single cache accesses (1 to 15 ns) are timed in batches; percentiles of single accesses "
        f"move in steps of {step}",
        remedy="none in a virtual machine whose host scales the counter; bare metal steps by less than 1 ns"
        if host.is_guest
        else None,
    )
