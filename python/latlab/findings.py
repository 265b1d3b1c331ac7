"""The types of what probes conclude and keep with a point; made by tools/findings.py.

A run file may hold anything there: `latlab.view.reading` finds what fits. A list that is not there is empty.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from latlab.run.model import Estimate


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What stands with a record of one probe."""

    PROBE: ClassVar[str]


class MemoryLoadedDetails(Found, frozen=True, kw_only=True):
    """`memory.loaded`, of a point."""

    PROBE = "memory.loaded"

    chase_bytes_per_s: float | None = None
    #: Of all load threads together.
    load_bytes_per_s: Estimate | float
    #: Of the windows' means; from the samples, when there are enough of them.
    p99_ns: float | None = None
    per_thread_bytes_per_s: tuple[float | None, ...] = ()


class MemoryLoadedCurveKnee(msgspec.Struct, frozen=True, kw_only=True):
    """Part of what `memory.loaded` found."""

    latency_ns: Estimate | float
    load_bytes_per_s: Estimate | float


class MemoryLoadedCurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Part of what `memory.loaded` found."""

    delay_steps: int | None = None
    disturbed: bool
    latency_ns: float
    load_bytes_per_s: Estimate | float
    p99_ns: float | None = None


class MemoryLoadedCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Latency over the load of so many threads of one mix."""

    idle_ns: float | None = None
    knee: MemoryLoadedCurveKnee | None = None
    #: Why there is no knee.
    note: str | None = None
    peak_bytes_per_s: Estimate | float | None = None
    #: By their load.
    points: tuple[MemoryLoadedCurvePoint, ...] = ()
    read_percent: int
    #: Without delay.
    saturated_ns: float | None = None
    threads: int


class MemoryLoaded(Found, frozen=True, kw_only=True):
    """`memory.loaded`, of all points."""

    PROBE = "memory.loaded"

    curves: tuple[MemoryLoadedCurve, ...] = ()
