"""What probes concluded, with its types: the Rust types `Findings` and `Details` as structs of msgspec.

A run file may hold anything there. What does not fit is no finding, and a field that is not known is left
out. Whether a number can be a figure is asked where it is shown.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

import msgspec

from latlab.run.model import Estimate, Record
from latlab.run.run import Run


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What all of them have in common."""

    PROBE: ClassVar[str]


class LoadedDetails(Found, frozen=True, kw_only=True):
    """`memory.loaded`, of a point: traffic while the chain was timed."""

    PROBE = "memory.loaded"

    load_bytes_per_s: Estimate | float


class LoadedKnee(msgspec.Struct, frozen=True, kw_only=True):
    """Where latency crosses 1.5 times the idle latency."""

    load_bytes_per_s: Estimate | float
    latency_ns: Estimate | float


class LoadedCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Latency over the load of so many threads of one mix; `note` says why there is no knee."""

    read_percent: int
    threads: int
    idle_ns: float | None = None
    saturated_ns: float | None = None
    peak_bytes_per_s: Estimate | float | None = None
    knee: LoadedKnee | None = None
    note: str | None = None


class Loaded(Found, frozen=True, kw_only=True):
    """`memory.loaded`, of all points; most threads and most reading first."""

    PROBE = "memory.loaded"

    curves: tuple[LoadedCurve, ...] = ()


F = TypeVar("F", bound=Found)


def concluded(run: Run, kind: type[F]) -> F | None:
    """What the probe concluded last from all of its points; None where it did not, or nobody can read it."""
    records = (r for r in reversed(run.records) if r.probe == kind.PROBE and r.kind == "derived")
    return next((found for record in records if (found := of(record, kind)) is not None), None)


def of(record: Record, kind: type[F]) -> F | None:
    """What stands with one record."""
    try:
        return msgspec.convert(record.findings, kind)
    except msgspec.ValidationError:
        return None
