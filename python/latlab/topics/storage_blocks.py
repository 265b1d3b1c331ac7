"""A disk from front to back by block size: reading and writing, one curve a path, and the line through it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from latlab.run.findings import findings, found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.topics.storage_random import READ as RANDOM
from latlab.units import format_bytes, format_ns, format_percent, format_rate, format_seconds, format_stated
from latlab.view.plot import Axis, Beside, Ends, Mark, Plane, Row, rings, yes_or_no
from latlab.view.points import Spot, drawable, is_disturbed, place_in
from latlab.view.table import Cell, Listing, Table, listed, table_of
from latlab.view.topic import Chart, CurvesOfSeveral, Topic

READ, WRITE = "storage.read.sequential", "storage.write.sequential"
_PANELS: Final = {READ: "reading", WRITE: "writing"}
_BEATS: Final = "reading beats writing"
#: Blocks of which a doubter would ask.
_TRIED: Final = (4096, 1 << 20)
#: A job of everyday size, bytes, and the blocks for which it is told, beside the largest.
_JOB: Final = 30e9
_JOBS: Final = (4096, 64 << 10, 1 << 20)
_DIRECT, _COLD, _WARM, _UNFLUSHED = map(
    disk.path_name, ("direct", "buffered-cold", "buffered-warm", "buffered")
)


class Fit(NamedTuple):
    """T = alpha + block / beta, fitted to the medians of one path."""

    path: str
    #: What a block costs whatever its size.
    alpha_ns: float
    #: Bytes a second beyond that.
    beta: float
    #: Blocks with half and with nine tenths of the bandwidth, bytes.
    half: float
    ninety: float
    #: How far the worst deviation is from it, as a share; absent when not said.
    off: float | None


class Side(NamedTuple):
    """Reading or writing: its curves by path, median calls by path and block, fits by path."""

    curves: Mapping[str, Sequence[Spot]]
    calls: Mapping[tuple[str, int], float | None]
    fits: Mapping[str, Fit]


Sides: TypeAlias = Mapping[str, Side]


def sides(run: Run) -> Sides:
    """What was measured, by probe."""
    found_of = {probe: lines(run, probe) for probe in _PANELS}
    return {probe: _side(run, probe, own) for probe, own in found_of.items() if own}


def _side(run: Run, probe: str, own: Mapping[str, Sequence[Spot]]) -> Side:
    calls = {
        (disk.path_name(r.point.path), r.point.block_bytes or 0): r.value for r in disk.timed(run, probe)
    }
    return Side(own, calls, {fit.path: fit for fit in fits(run, probe)})


def lines(run: Run, probe: str) -> dict[str, list[Spot]]:
    """One curve a path, ascending in block size: all bytes over all calls' time, band over repeats."""
    own: dict[str, list[Spot]] = {}
    for record in disk.timed(run, probe):
        # Not from the median call: most cold reads are answered by what was read ahead, writes by the cache.
        rate = positive(found(record), "bytes_per_s")
        if record.point.block_bytes and rate:
            own.setdefault(record.point.path or "", []).append(_spot(record, rate))
    paths = sorted(own, key=partial(place_in, disk.PATHS))
    return {disk.path_name(path): sorted(own[path], key=lambda spot: spot.x) for path in paths}


def _spot(record: Record, rate: float) -> Spot:
    ends = [rate, *filter(drawable, found(record).numbers("bytes_per_s_between_blocks"))]
    block = record.point.block_bytes or 1
    return Spot(block, rate, min(ends), max(ends), record.samples, is_disturbed(record))


def fits(run: Run, probe: str) -> list[Fit]:
    """The fits that were concluded and can be right."""
    names = ("alpha_ns", "beta_bytes_per_s", "half_bandwidth_block_bytes", "ninety_percent_block_bytes")
    out = []
    for entry in findings(run, probe).sections("fits"):
        path, residuals = entry.text("path"), entry.section("residuals")
        figures = [value for name in names if (value := positive(entry, name)) is not None]
        if path is None or len(figures) < len(names):
            continue
        ratios = [value for name in residuals if (value := positive(residuals, name)) is not None]
        worst = max(ratios, key=lambda value: max(value, 1 / value), default=None)
        alpha, beta, half, ninety = figures
        off = None if worst is None else abs(worst - 1)
        out.append(Fit(disk.path_name(path), alpha, beta, half, ninety, off))
    return out


def _picture(own: Sides) -> Beside:
    """Reading beside writing on the same axes, both logarithmic."""
    planes = [
        Plane(
            x=Axis("block", "bytes", 1.5, 1.5),
            y=Axis("bytes a second", "bytes_per_s"),
            lines=side.curves,
            hover="blocks of {x}: {y}",
            said="{y} in blocks of {x}",
            marks=partial(_marks, side),
            title=_PANELS[probe],
            width=312,
            height=320,
            columns=2,
        )
        for probe, side in own.items()
    ]
    about = "Two line charts, axes logarithmic: bandwidth of the disk against the size of a block."
    reported = ". ".join(f"{plane.title}, {plane.ends}" for plane in planes)
    return Beside(planes, f"{about} {reported}.", own_colours=True)


def _marks(side: Side, ends: Ends) -> list[Mark]:
    rows: list[Row] = []
    for path, fit in side.fits.items():
        for block, share, short in ((fit.half, 0.5, "½"), (fit.ninety, 0.9, "90 %")):
            value = share * fit.beta
            if path in side.curves and drawable(value) and ends.hold(block, value):
                text = f"{path}: {short} of its bandwidth from blocks of {format_bytes(block)}"
                rows.append({"x": block, "value": value, "name": short, "text": text})
    return rings(rows, 150, dy=16, dx=6, align="left")


def _table(own: Sides) -> Table:
    return table_of(
        [
            (probe, path, spot)
            for probe, side in own.items()
            for path, curve in side.curves.items()
            for spot in curve
        ],
        ("operation", "text", lambda at: _PANELS[at[0]]),
        ("path", "text", lambda at: at[1]),
        ("block", "bytes", lambda at: at[2].x),
        ("all bytes over all time", "bytes_per_s", lambda at: at[2].value),
        ("slowest repeat", "bytes_per_s", lambda at: at[2].low),
        ("fastest repeat", "bytes_per_s", lambda at: at[2].high),
        ("median call", "ns", lambda at: own[at[0]].calls.get((at[1], int(at[2].x)))),
        ("blocks", "count", lambda at: at[2].samples),
        ("disturbed", "text", lambda at: yes_or_no(at[2].disturbed)),
    )


def prose(run: Run) -> Iterator[str]:
    """The line through direct readings, and a job by it; without a line, the fastest reading."""
    if not _all_sound(run):
        return
    curves = lines(run, READ)
    fit = next((fit for fit in fits(run, READ) if fit.path == _DIRECT), None)
    if fit is not None:
        off = fit.off
        farthest = "" if off is None else f"; blocks deviate from this line by at most {format_percent(off)}"
        yield (
            f"A block read past the page cache costs {format_ns(fit.alpha_ns)} plus its bytes at "
            f"{format_rate(fit.beta)}: half of that rate from blocks of {format_bytes(fit.half)}, 90 % "
            f"from {format_bytes(fit.ninety)}{farthest}."
        )
        yield from _job(curves)
        return
    best = [(spot.value, name, spot.x) for name, curve in curves.items() for spot in curve if name != _WARM]
    if best:
        rate, name, block = max(best)
        yield f"The fastest reading: {format_rate(rate)} in blocks of {format_bytes(block)} ({name})."


def _all_sound(run: Run) -> bool:
    """Whether no rule is broken by any direct reading: the line is fitted through all of them."""
    own = disk.timed(run, READ)
    direct = [record for record in own if record.point.path == "direct"] or own
    return len(disk.sound(run, direct)) == len(direct)


def _job(curves: Mapping[str, Sequence[Spot]]) -> Iterator[str]:
    """What 30 GB would take: by the smallest and the largest block, and as most programs read."""
    direct = [spot for spot in curves.get(_DIRECT, ()) if spot.x >= _JOBS[0]]
    cold = curves.get(_COLD)
    if len(direct) > 1:
        reported = " and ".join(map(_seconds, (direct[0], direct[-1])))
        best = max(cold, key=lambda spot: spot.value) if cold else None
        empty = f", through an empty page cache {_seconds(best)}" if best else ""
        yield (
            f"At these rates reading 30 GB would take {reported}{empty}; brackets give the fastest and "
            "the slowest repeat."
        )


def _seconds(spot: Spot) -> str:
    ends = (_JOB / spot.high, _JOB / spot.low) if spot.ends else None
    return f"{format_stated(_JOB / spot.value, ends, format_seconds)} in blocks of {format_bytes(spot.x)}"


def _listings(run: Run) -> Iterator[Listing]:
    """The two numbers that make a curve, and three rules that are said of disks."""
    rows = [
        (side.fits.get(path), _PANELS[probe], path, curve)
        for probe, side in sides(run).items()
        for path, curve in side.curves.items()
    ]
    # Two figures of one table that do not come from the same times.
    yield from listed(
        "Time of a block = a start + its bytes at a rate (by the medians of single blocks; 30 GB by all"
        " bytes over all time, slow blocks included)",
        rows,
        ("operation", "text", lambda at: at[1]),
        ("path", "text", lambda at: at[2]),
        ("each block", "ns", lambda at: at[0] and at[0].alpha_ns),
        ("plus bytes at", "bytes_per_s", lambda at: at[0] and at[0].beta),
        ("half from", "bytes", lambda at: at[0] and at[0].half),
        ("90 % from", "bytes", lambda at: at[0] and at[0].ninety),
        ("worst deviation", "share", lambda at: at[0] and at[0].off),
        ("30 GB would take", "text", lambda at: _thirty(run, at[2], at[3])),
    )
    yield from listed(
        "Three common rules about disks",
        _rules(run),
        ("rule", "text", itemgetter(0)),
        ("here", "text", itemgetter(1)),
        ("figures", "text", itemgetter(2)),
    )
    yield from disk.device_times(run, READ, WRITE)


def _thirty(run: Run, name: str, curve: Iterable[Spot]) -> str:
    """By block size; nothing where memory answers that does not hold so much."""
    if name == _UNFLUSHED:
        return "the disk is not waited for"
    if name == _WARM and (run.machine.number("memory.total_bytes") or 0.0) < _JOB:
        return "more than memory holds"
    *others, last = curve
    reported = [*(spot for spot in others if spot.x in _JOBS), last]
    return "; ".join(f"{format_bytes(spot.x)}: {format_seconds(_JOB / spot.value)}" for spot in reported)


def _rules(run: Run) -> list[tuple[Cell, ...]]:
    """A rule that several probes know stands once, decided where one of them could."""
    known: dict[str, tuple[Cell, ...]] = {}
    for probe in (READ, WRITE, RANDOM):
        for entry in findings(run, probe).sections("rules"):
            rule, verdict = entry.text("rule") or "", entry.text("verdict") or "undecided"
            # Runs of older versions have what each side knew of it alone.
            if rule and rule != _BEATS and (rule not in known or verdict != "undecided"):
                known[rule] = (rule, verdict, entry.text("detail"))
        if probe == WRITE and sides(run):
            known[_BEATS] = (_BEATS, *reading_beats_writing(run))
    return list(known.values())


def reading_beats_writing(run: Run) -> tuple[str, str]:
    """The verdict with its figures, where both were measured past the page cache in blocks of the same size.

    Of a size, one side is ahead when its slowest repeat is faster than the other's fastest. The rule is true
    or false where at least half of the sizes have the same side ahead and none the other.
    """
    reading, writing = ({spot.x: spot for spot in lines(run, probe).get(_DIRECT, [])} for probe in _PANELS)
    common = sorted(reading.keys() & writing.keys())
    if not common:
        return "undecided", "not both measured past the page cache with the same block size"
    ahead = sum(reading[size].low > writing[size].high for size in common)
    behind = sum(writing[size].low > reading[size].high for size in common)
    verdict = "undecided"
    if 2 * ahead >= len(common) and not behind:
        verdict = "true"
    elif 2 * behind >= len(common) and not ahead:
        verdict = "false"
    best = max(common, key=lambda size: max(reading[size].value, writing[size].value))
    reported = " and ".join(
        f"{format_rate(side[best].value)} {verb}"
        f" ({format_rate(side[best].low)} to {format_rate(side[best].high)} in single repeats)"
        for side, verb in ((reading, "read"), (writing, "written"))
    )
    return verdict, (
        f"direct, blocks of {format_bytes(best)}: {reported}; reading is faster, beyond the spread of "
        f"the repeats, in {ahead} of {len(common)} block sizes, writing in {behind}"
    )


def _evidence(run: Run) -> Iterator[str]:
    yield from disk.evidence(run, READ, WRITE)
    blocks = {*_TRIED, int(positive(findings(run, READ), "best_block_bytes") or 0)}
    yield from disk.commands(
        record
        for probe in _PANELS
        for record in disk.timed(run, probe)
        if record.point.block_bytes in blocks and record.point.path in {"direct", "buffered-fsync-each"}
    )


TOPIC: Final = Topic(
    Chart(
        id="storage_blocks",
        title="How large should blocks be, and how fast is the disk then?",
        caption=f"Paths: {disk.PATHS_EXPLAINED}. Points: all bytes over the time of all calls. "
        "Bands: slowest to fastest repeat. Rings: the block size with half, and 90 %, of a path's "
        "bandwidth by its fit.",
        probe=READ,
        measured=sides,
        picture=_picture,
        table=_table,
        several=CurvesOfSeveral(
            lambda run: {
                f"{_PANELS[probe]}, {path}": curve
                for probe, side in sides(run).items()
                for path, curve in side.curves.items()
            },
            Axis("block", "bytes", 1.3, 1.3),
            Axis("bytes a second", "bytes_per_s"),
            "block",
            "value",
        ),
    ),
    probes=(READ, WRITE),
    prose=prose,
    listings=_listings,
    notices=lambda run: disk.notices(run, READ, WRITE),
    evidence=_evidence,
)
