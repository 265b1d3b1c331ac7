"""What the Rust probes have in common: cells from records, and why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from latlab.lessons.bench import Bench, nothing
from latlab.lessons.figures import Cell, Published, Unit
from latlab.units import ONCE, format_bytes

if TYPE_CHECKING:
    from latlab.run.machine import Machine
    from latlab.run.model import Kind, Record
    from latlab.run.run import Run

#: Blocks in which the plain-Python programs read and write.
PLAIN_BLOCK: Final = 1 << 20


def probed(
    bench: Bench, probes: str, what: str = "", *, profile: str = "quick", **options: float
) -> tuple[Run | None, str]:
    """A run of Rust probes, and why the first of them has no figure, where it has none.

    Args:
        bench: Of the lesson.
        probes: Their ids, as in `latlab measure --only`.
        what: The run in words; by default with the probes' ids.
        profile: Of the run.
        options: Of `latlab.measure`.
    """
    ids = probes.split(",")
    name = what or f"the Rust probe{'s' if len(ids) > 1 else ''} ({', '.join(ids)})"
    run = bench.native(name, probes, profile=profile, **options)
    return run, why_not(run, ids[0], bench.why(name))


def why_not(run: Run | None, probe: str, refused: str) -> str:
    """Why a figure of a probe is missing; `refused` says why there was no run at all, if so."""
    if refused or run is None:
        return refused or "the Rust probe was not run"
    for record in run.absent:
        if record.probe == probe and record.error is not None:
            return record.error.text
    failed = [check.detail for record in run.select(probe) for check in record.checks if not check.ok]
    return f"a proof failed: {failed[0]}" if failed else "the Rust probe did not reach this point in time"


def records(run: Run | None, probe: str, kind: Kind | None = None, **point: object) -> list[Record]:
    """Those that `run.select` finds; none without a run."""
    return [] if run is None else list(run.select(probe, kind=kind, unit=None, **point))


def findings(record: Record) -> Machine:
    """A record's own, for look-ups that never fail."""
    from latlab.run.findings import found  # noqa: PLC0415 - the core is not there everywhere

    return found(record)


def cell_of(record: Record) -> Cell:
    """A record's headline figure with its interval: seconds, or bytes a second."""
    unit: Unit = "bytes_per_s" if record.unit == "bytes_per_s" else "s"
    scale = 1.0 if unit == "bytes_per_s" else 1e-9
    if record.value is None:
        return Cell(unit, why="a proof failed or there were no samples")
    value = record.value * scale
    if record.interval is None:
        return Cell(unit, value, repeats=record.samples, why=f"median, {ONCE}")
    ends = (end * scale for end in record.interval)
    return Cell.within(unit, value, ends, record.samples, why="median with its 95 % interval")


def disk_rate(
    run: Run | None, side: str, path: str, refused: str, *, published: Published | None = None
) -> Cell:
    """What the probe of a side (`read` or `write`) moves over a path, in the blocks nearest to 1 MiB."""
    found = nearest_block(run, side, path)
    if found is None:
        return nothing("bytes_per_s", why_not(run, f"storage.{side}.sequential", refused), published)
    block, rate = found
    return Cell(
        "bytes_per_s",
        rate,
        published=published,
        why=f"{path}, blocks of {format_bytes(block)}, all bytes over the time of all calls",
    )


def nearest_block(run: Run | None, side: str, path: str) -> tuple[int, float] | None:
    """Of the blocks in which it went over a path, the one nearest to 1 MiB: its bytes, and bytes a second."""
    found = []
    for record in records(run, f"storage.{side}.sequential"):
        rate, block = record.finding("bytes_per_s"), record.point.block_bytes
        if record.value is not None and record.point.path == path and block and isinstance(rate, int | float):
            found.append((abs(block - PLAIN_BLOCK), block, float(rate)))
    return min(found)[1:] if found else None
