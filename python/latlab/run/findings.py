"""What a probe concluded from its points, read without trust: a run file may hold anything there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from latlab.run.model import Machine

if TYPE_CHECKING:
    from latlab.run.run import Run

#: No machine has ns, bytes a second or factors outside of these; what is, is damage.
_SMALLEST, _LARGEST = 1e-9, 1e18


def findings(run: Run, probe: str) -> Machine:
    """The conclusions of a probe, for look-ups that never fail; empty when it drew none."""
    for record in reversed(run.records):
        if record.probe == probe and record.kind == "derived" and isinstance(record.findings, dict):
            return Machine(record.findings)
    return Machine({})


def positive(found: Machine, path: str) -> float | None:
    """A figure that can be one: above zero and finite; else None."""
    value = found.number(path)
    return value if value is not None and math.isfinite(value) and _SMALLEST <= value <= _LARGEST else None
