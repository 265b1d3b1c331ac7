"""What this machine can do: from its newest runs, else from a calibration of 3 seconds that is kept.

A limit is a time an operation takes, as a range: of a disk and of writing the rates of all bytes over all
time, from the fastest to the slowest block of samples; of reading from memory, where nothing is waited for,
from the 10th to the 90th percentile of single reads; of everything else from the smaller of median and mean
to the larger of mean and 90th percentile. Between two measured sizes it is interpolated on logarithmic axes.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeGuard

import msgspec

from latlab.errors import LatlabError, RunFileError
from latlab.explain.kept import Kept, KeptLimit, day_and_time
from latlab.run import reader
from latlab.run.core import describe
from latlab.run.model import Machine, Point, Record
from latlab.run.run import Run
from latlab.run.store import Store
from latlab.text import clean
from latlab.units import format_seconds

CALIBRATION_S: Final = 3.0
_OLD_DAYS: Final = 3.0
_MOST_RUNS: Final = 200
_MOST_BYTES: Final = 128 << 20
_CALIBRATED_FILE: Final = 16 << 20
"""A smaller file is read before its first second is over: it says nothing of a disk."""


_FEWEST_READS: Final = 100
"""With fewer the 10th and the 90th percentile are single reads."""


class Speed(msgspec.Struct, frozen=True):
    """One operation's time, nanoseconds; `size_bytes` 0 where it has no size."""

    size_bytes: float
    low: float
    mid: float
    high: float

    @property
    def rates(self) -> tuple[float, float]:
        """Bytes a second, slowest and fastest."""
        return 1e9 * self.size_bytes / self.high, 1e9 * self.size_bytes / self.low


class Curve(msgspec.Struct, frozen=True):
    """One kind of operation, by size where it has sizes, and where the figures are from."""

    name: str
    points: tuple[Speed, ...]
    source: str

    def at(self, size_bytes: float = 0) -> Speed:
        """The time at a size. Below the smallest measured a call costs the same, above the largest a byte."""
        first, last = self.points[0], self.points[-1]
        if not size_bytes or (len(self.points) == 1 and not first.size_bytes):
            return first
        if size_bytes <= first.size_bytes:
            return Speed(size_bytes, first.low, first.mid, first.high)
        if size_bytes >= last.size_bytes:
            times = size_bytes / last.size_bytes
            return Speed(size_bytes, last.low * times, last.mid * times, last.high * times)
        right = bisect.bisect_right([point.size_bytes for point in self.points], size_bytes)
        below, above = self.points[right - 1], self.points[right]
        share = math.log(size_bytes / below.size_bytes) / math.log(above.size_bytes / below.size_bytes)

        def between(one: float, other: float) -> float:
            return float(one * (other / one) ** share)

        return Speed(
            size_bytes,
            between(below.low, above.low),
            between(below.mid, above.mid),
            between(below.high, above.high),
        )


class Limits(msgspec.Struct, frozen=True):
    """The curves that were found, by name, and what is to be said about them."""

    curves: dict[str, Curve] = {}
    notes: tuple[str, ...] = ()

    def at(self, name: str, size_bytes: float = 0) -> Speed | None:
        """A limit; `None` where it is not known."""
        curve = self.curves.get(name)
        return None if curve is None else curve.at(size_bytes)

    def source(self, name: str) -> str:
        """Where it is from."""
        return self.curves[name].source


def _by_bytes(record: Record) -> Speed | None:
    """From the rate of all bytes: the median of reads, of which most are copies, says nothing of waiting."""
    size = record.point.block_bytes
    rate, between = record.finding("bytes_per_s"), record.finding("bytes_per_s_between_blocks")
    if not size or not _positive(rate):
        return None
    slow, fast = between if _is_range(between) else (rate, rate)
    return Speed(size, 1e9 * size / max(fast, rate), 1e9 * size / rate, 1e9 * size / min(slow, rate))


def _by_copy(record: Record) -> Speed | None:
    """From single reads: other programs that take the CPU are in few of them, and in every rate."""
    size, buckets = record.point.block_bytes, []
    with contextlib.suppress(RunFileError):
        buckets = record.buckets()
    total = sum(count for _, _, count in buckets)
    if not size or total < _FEWEST_READS:
        return _by_bytes(record)
    ends = list(itertools.accumulate(count for _, _, count in buckets))
    low, mid, high = (
        sum(buckets[bisect.bisect_left(ends, share * total)][:2]) / 2 for share in (0.1, 0.5, 0.9)
    )
    return Speed(size, low, mid, high) if low > 0 else None


def _by_each(record: Record) -> Speed | None:
    summary = record.summary
    if summary is None or not _positive(record.value):
        return None
    value = float(record.value or 0)
    mean = summary.mean if _positive(summary.mean) and summary.mean else value
    high = summary.p90 if _positive(summary.p90) and summary.p90 else mean
    size = record.point.block_bytes or 0
    return Speed(size, min(value, mean), value, max(value, mean, high))


def _positive(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0


def _is_range(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_positive, value))  # noqa: PLR2004 - two ends


class _Kind(msgspec.Struct, frozen=True):
    probe: str
    wanted: Callable[[Point], bool]
    speed: Callable[[Record], Speed | None]
    of_a_disk: bool = False


_KINDS: Final[Mapping[str, _Kind]] = {
    "read-memory": _Kind("storage.read.sequential", lambda point: point.path == "buffered-warm", _by_copy),
    "read-disk": _Kind(
        "storage.read.sequential", lambda point: point.path == "buffered-cold", _by_bytes, of_a_disk=True
    ),
    "read-random": _Kind(
        "storage.read.random", lambda point: point.queue_depth == 1, _by_each, of_a_disk=True
    ),
    "write-memory": _Kind("storage.write.sequential", lambda point: point.path == "buffered", _by_bytes),
    "fault": _Kind(
        "vm.fault", lambda point: point.operation == "first-write" and point.pages == "4k", _by_each
    ),
    "fault-huge": _Kind(
        "vm.fault", lambda point: point.operation == "first-write" and point.pages == "huge", _by_each
    ),
    "switch": _Kind(
        "kernel.context_switch",
        lambda point: point.operation == "pipe" and point.placement == "same-cpu",
        _by_each,
    ),
    "malloc": _Kind(
        "alloc.malloc",
        lambda point: (
            point.allocator == "system"
            and point.state in {"reused", "fresh"}
            and point.placement == "same-thread"
            and point.size_bytes is not None
            and point.size_bytes <= 256  # noqa: PLR2004 - what most allocations are
        ),
        _by_each,
    ),
}
"""Each limit: the probe's points that give it. `switch` is there and back, two switches."""


def find(
    wanted: Sequence[str],
    *,
    inputs: Sequence[Path] = (),
    run: Run | None = None,
    calibrate: bool = True,
    report: Callable[[str], None] | None = None,
) -> Limits:
    """The limits that are wanted.

    Args:
        wanted: Names.
        inputs: Files that the program reads: their disk counts, and is calibrated by reading them.
        run: Use this run's figures, whatever machine they are from, and nothing else.
        calibrate: Measure what no run has.
        report: Called with a sentence before that.
    """
    names = [name for name in wanted if name in _KINDS]
    if not names:
        return Limits()
    if run is not None:
        return _from_one(run, names, describe().machine)
    store, kept, device = Store(), Kept(), device_of(inputs)
    known = [_kept(kept, name, device) for name in names]
    # What was measured was in no run: only one that was made since may have it.
    since_s = min(0 if limit is None else limit.measured_s for limit in known)
    found = Limits()
    if any(entry.started_s >= since_s for entry in store.entries()):
        found = from_runs(names, store, describe().machine, device=device, since_s=since_s)
    missing = [name for name in names if name not in found.curves]
    if not missing:
        return found
    more = calibrated(missing, kept, inputs, measure=calibrate, report=report)
    return Limits(found.curves | more.curves, (*found.notes, *more.notes))


def from_runs(
    names: Sequence[str],
    store: Store,
    machine: Machine,
    *,
    device: int | None = None,
    since_s: float = 0.0,
    now: datetime | None = None,
) -> Limits:
    """From the newest runs of this machine that have them, made since; each limit from one run."""
    moment = now or datetime.now(UTC)
    curves: dict[str, Curve] = {}

    def missing() -> list[str]:
        return [name for name in names if name not in curves]

    def probes() -> set[str]:
        return {_KINDS[name].probe for name in missing()}

    for run in own_runs(store, machine, probes, since_s=since_s):
        source = _source(run, moment)
        for name in missing():
            if _KINDS[name].of_a_disk and device is not None and _device(run) != device:
                continue
            points = _points(run.records, name)
            if points:
                curves[name] = Curve(name, points, source)
    return Limits(curves)


def own_runs(
    store: Store,
    machine: Machine,
    missing: Callable[[], Collection[str]],
    *,
    most: int = _MOST_RUNS,
    since_s: float = 0.0,
) -> Iterator[Run]:
    """Runs of this machine, the newest first, that speak of a probe that is still missing; ends when none is.

    Looks at `most` runs and reads 128 MiB at the most.
    """
    left = _MOST_BYTES
    for entry in list(reversed(store.entries()))[:most]:
        probes = missing()
        if not probes or left <= 0 or entry.started_s < since_s:
            return
        left -= entry.size
        if not _mentions(entry.path, probes):
            continue
        try:
            run = reader.read(entry.path)
        except (RunFileError, OSError):
            continue
        if same_machine(run.machine, machine):
            yield run


def _from_one(run: Run, names: Sequence[str], machine: Machine) -> Limits:
    source = f"run {clean(run.id, most=60)}"
    curves = {name: Curve(name, points, source) for name in names if (points := _points(run.records, name))}
    notes = []
    if not same_machine(run.machine, machine):
        notes.append(f"The limits are of another machine or kernel ({source}), not of this one.")
    missing = [name for name in names if name not in curves]
    if missing:
        probes = dict.fromkeys(_KINDS[name].probe for name in missing)
        notes.append(f"The run has no figures of {', '.join(probes)}.")
    return Limits(curves, tuple(notes))


def calibrated(
    names: Sequence[str],
    kept: Kept,
    inputs: Sequence[Path] = (),
    *,
    measure: bool = True,
    report: Callable[[str], None] | None = None,
) -> Limits:
    """What was measured and kept; else it is measured now, in 3 seconds for all.

    One that gave no figure is kept as well: nobody waits for it twice.
    """
    device = device_of(inputs)
    known = {name: limit for name in names if (limit := _kept(kept, name, device)) is not None}
    curves = {
        name: Curve(name, speeds, f"calibration of {day_and_time(limit.measured_s)}")
        for name, limit in known.items()
        if (speeds := tuple(Speed(*point) for point in limit.points))
    }
    missing = [name for name in names if name not in known]
    now = measured(missing, kept, inputs, report=report) if missing and measure else Limits()
    notes = dict.fromkeys(limit.note for limit in known.values() if limit.note)
    return Limits(curves | now.curves, (*notes, *now.notes))


def _kept(kept: Kept, name: str, device: int | None) -> KeptLimit | None:
    """One that holds: for storage of the same file system, and with times that can have been measured."""
    if not _is_of_storage(name):
        device = None
    elif device is None:
        return None
    return next(
        (
            limit
            for limit in kept.limits.get(name, ())
            if limit.device == device
            and all(size >= 0 and 0 < low <= mid <= high for size, low, mid, high in limit.points)
        ),
        None,
    )


def measured(
    names: Sequence[str],
    kept: Kept,
    inputs: Sequence[Path] = (),
    *,
    report: Callable[[str], None] | None = None,
) -> Limits:
    """Measures what is wanted and keeps it. A disk by reading the largest input; nothing else is written."""
    from latlab.run.conduct import Conductor  # noqa: PLC0415 - only where no run has the figures
    from latlab.run.settings import make_settings  # noqa: PLC0415 - see above

    disk = [name for name in names if _is_of_storage(name)]
    file = max((path for path in inputs if _size(path) >= _CALIBRATED_FILE), key=_size, default=None)
    notes = []
    if disk and file is None:
        names = [name for name in names if name not in disk]
        notes.append(
            "No run of this machine has its disk at the program's block sizes: `latlab measure "
            "--only storage` measures it."
        )
    elif "write-memory" in names:
        names = [name for name in names if name != "write-memory"]
    probes = list(dict.fromkeys(_KINDS[name].probe for name in names))
    if not probes:
        return Limits({}, tuple(notes))
    if report is not None:
        report(
            f"no run of this machine has {', '.join(probes)}: measuring for {format_seconds(CALIBRATION_S)}"
            ", once"
        )
    source = "calibration of 3 s just now"
    try:
        settings = make_settings(only=probes, profile="quick", budget=CALIBRATION_S, file=file)
        run = Conductor(settings).run()
    except (LatlabError, OSError, KeyboardInterrupt) as error:
        reason = clean(error, most=200) or "interrupted"
        notes.append(f"This machine's limits could not be measured: {reason}.")
        return Limits({}, tuple(notes))
    curves = {name: Curve(name, points, source) for name in names if (points := _points(run.records, name))}
    reasons = {name: _no_figure(run, name) for name in names if name not in curves}
    device = device_of([] if file is None else [file])
    now = int(time.time())

    def to_keep(name: str) -> KeptLimit:
        points = curves[name].points if name in curves else ()
        times = tuple((point.size_bytes, point.low, point.mid, point.high) for point in points)
        return KeptLimit(now, times, device if _is_of_storage(name) else None, reasons.get(name, ""))

    # Probes share the time. One without any figure may have had none of it; the first had the most.
    tried = {probes[0], *(_KINDS[name].probe for name in curves)}
    kept.keep_limits({name: to_keep(name) for name in names if _KINDS[name].probe in tried})
    return Limits(curves, (*notes, *dict.fromkeys(reasons.values()), *([kept.notice] if kept.notice else [])))


def _no_figure(run: Run, name: str) -> str:
    """Why a calibration does not have a limit."""
    probe = _KINDS[name].probe
    errors = [record.error.text for record in run.records if record.probe == probe and record.error]
    return f"{probe} gave no figure: {clean(errors[0] if errors else 'no time', most=200)}."


def _is_of_storage(name: str) -> bool:
    return _KINDS[name].probe.startswith("storage.")


def same_machine(one: Machine, other: Machine) -> bool:
    """Whether two descriptions are of one machine with one kernel; one without a host name is nobody's."""
    fields = (
        "os.host_name",
        "os.kernel_release",
        "cpu.model_name",
        "cpu.logical_cpus",
        "virtualisation.hypervisor",
    )
    if not one.text("os.host_name"):
        return False
    return all(one.at(field) == other.at(field) for field in fields)


def device_of(paths: Iterable[Path]) -> int | None:
    """The file system that holds most of these files' bytes; `None` without files."""
    sizes: dict[int, int] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            about = path.stat()
            sizes[about.st_dev] = sizes.get(about.st_dev, 0) + about.st_size
    return max(sizes, key=lambda device: sizes[device], default=None)


def _points(records: Iterable[Record], name: str) -> tuple[Speed, ...]:
    kind = _KINDS[name]
    speeds = [
        speed
        for record in records
        if record.probe == kind.probe
        and record.proved
        and kind.wanted(record.point)
        and (speed := kind.speed(record)) is not None
    ]
    by_size: dict[float, Speed] = {}
    for speed in speeds:
        known = by_size.get(speed.size_bytes)
        # Several variants of one size: the range covers them all.
        by_size[speed.size_bytes] = (
            speed
            if known is None
            else Speed(
                speed.size_bytes,
                min(known.low, speed.low),
                min(known.mid, speed.mid),
                max(known.high, speed.high),
            )
        )
    return tuple(by_size[size] for size in sorted(by_size))


def _source(run: Run, now: datetime) -> str:
    name = f"run {clean(run.id, most=60)}"
    try:
        days = (now - datetime.fromisoformat(run.header.started)).total_seconds() / 86_400
    except (ValueError, TypeError):
        return name
    return f"{name}, {days:.0f} days old" if days >= _OLD_DAYS else name


def _mentions(path: Path, probes: Collection[str]) -> bool:
    """Whether a file speaks of one of these probes, which is fast to see; compressed ones may."""
    if path.suffix == ".zst":
        return True
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:
        return False
    return any(f'"probe":"{probe}"'.encode() in data for probe in probes)


def _device(run: Run) -> int | None:
    place = run.settings.file or run.machine.text("dir.path")
    if place is None:
        return None
    # The folder may be gone; the file system that held it is asked for then.
    for path in (place, run.machine.text("dir.file_system.mount_point")):
        with contextlib.suppress(OSError, ValueError):
            if path:
                return os.stat(path).st_dev  # noqa: PTH116 - of a text from a file
    return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
