"""What a probe concluded from its points, read without trust: a run file may hold anything there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from latlab.run.model import Machine
from latlab.units import format_stated

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run

#: No machine has ns, bytes a second or factors outside of these; what is, is damage.
_SMALLEST, _LARGEST = 1e-9, 1e18


def findings(run: Run, probe: str) -> Machine:
    """The conclusions of a probe, for look-ups that never fail; empty when it drew none."""
    for record in reversed(run.records):
        if record.probe == probe and record.kind == "derived" and isinstance(record.findings, dict):
            return found(record)
    return Machine({})


def found(record: Record) -> Machine:
    """A record's own findings, for look-ups that never fail."""
    return Machine(record.findings if isinstance(record.findings, dict) else {})


def positive(found: Machine, path: str) -> float | None:
    """A figure that can be one: above zero and finite; else None."""
    value = found.number(path)
    return value if value is not None and math.isfinite(value) and _SMALLEST <= value <= _LARGEST else None


def ends(found: Machine, path: str) -> tuple[float, float] | None:
    """The 95 % interval of a figure, where both of its ends can be one."""
    estimate = found.estimate(path)
    between = estimate.ends if estimate else None
    return between if between and all(_SMALLEST <= end <= _LARGEST for end in between) else None


def stated(found: Machine, path: str, write: Callable[[float], str] | None = None) -> str:
    """A figure with its 95 % interval: `2.1 (2.0–2.3)`; empty when it can be none."""
    return format_stated(positive(found, path), ends(found, path), write)
