"""A disk from front to back, by block size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from latlab.charts import storage_blocks as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import storage_random
from latlab.topics.disk import (
    PATHS_EXPLAINED,
    commands,
    device_times,
    disk_evidence,
    notices,
    path_name,
    sound,
    timed,
)
from latlab.units import format_bytes, format_ns, format_percent, format_rate, format_seconds, format_stated
from latlab.view.points import Spot
from latlab.view.table import Cell, Column, Listing, Table

_PROBES = (chart.READ, chart.WRITE)
_CAPTION = (
    f"Paths: {PATHS_EXPLAINED}. A point is all bytes over the time of all calls; bands: slowest to fastest"
    " repeat. Rings: the block that has half, and nine tenths, of a path's bandwidth by its fit."
)
_BEATS = "reading beats writing"
_FITS = (
    Column("operation"),
    Column("path"),
    Column("each block", "ns"),
    Column("and beyond that", "bytes_per_s"),
    Column("half from", "bytes"),
    Column("90 % from", "bytes"),
    Column("farthest point", "share"),
    Column("30 GB would take"),
)
#: Two figures of one table that do not come from the same times.
_TITLE = (
    "Time of a block = a start + its bytes at a rate (by the medians of single blocks; 30 GB by all bytes"
    " over all time, slow blocks included)"
)
_RULES = (Column("rule"), Column("here"), Column("figures"))
#: Blocks of which a doubter would ask.
_TRIED = (4096, 1 << 20)
#: A job of everyday size, bytes, and the blocks for which it is told, beside the largest.
_JOB = 30e9
_JOBS = (4096, 64 << 10, 1 << 20)
_DIRECT, _COLD, _WARM, _UNFLUSHED = map(path_name, ("direct", "buffered-cold", "buffered-warm", "buffered"))


def section(run: Run, probes: Probes) -> Section:
    """Curves, the two numbers that make them, and three rules that are said of disks."""
    fits, rules = _fits(run), _rules(run)
    listings = []
    if fits:
        listings.append(Listing(_TITLE, Table(_FITS, tuple(fits))))
    if rules:
        listings.append(Listing("Three rules that are said of disks", Table(_RULES, tuple(rules))))
    doubts = notices(run, *_PROBES)
    return Section(
        id="storage_blocks",
        title=chart.TITLE,
        sentences=_sentences(run) if _all_sound(run) else (),
        listings=(*listings, *device_times(run, *_PROBES)),
        figures=figure(run, chart.ID, _CAPTION),
        notices=doubts,
        evidence=(
            *disk_evidence(run, *_PROBES),
            *commands(_tried(run)),
        ),
        methods=probes.methods_of(*_PROBES),
        absence=chart.absence(run) or "",
    )


def _all_sound(run: Run) -> bool:
    """Whether no rule is broken by any direct reading: the line is fitted through all of them."""
    direct = [record for record in timed(run, chart.READ) if record.point.path == "direct"] or timed(
        run, chart.READ
    )
    return len(sound(run, direct)) == len(direct)


def _sentences(run: Run) -> tuple[str, ...]:
    curves = chart.lines(run, chart.READ)
    for fit in chart.fits(run, chart.READ):
        if path_name(fit.path) != _DIRECT:
            continue
        off = ""
        if fit.worst is not None:
            off = f"; the block farthest from that is {format_percent(abs(fit.worst - 1))} off"
        text = (
            f"A block read past the page cache costs {format_ns(fit.alpha_ns)} and its bytes at"
            f" {format_rate(fit.beta)}: half of that rate from blocks of {format_bytes(fit.half)},"
            f" nine tenths from"
            f" {format_bytes(fit.ninety)}{off}."
        )
        return (text, *_job(curves))
    best = [(spot.value, name, spot.x) for name, curve in curves.items() for spot in curve if name != _WARM]
    if not best:
        return ()
    rate, name, block = max(best)
    return (f"The fastest reading: {format_rate(rate)} in blocks of {format_bytes(block)} ({name}).",)


def _job(curves: Mapping[str, Sequence[Spot]]) -> tuple[str, ...]:
    """What 30 GB would take: by the smallest and the largest block, and as most programs read."""
    direct = [spot for spot in curves.get(_DIRECT, ()) if spot.x >= _JOBS[0]]
    cold = curves.get(_COLD)
    if len(direct) < 2:  # noqa: PLR2004 - nothing to compare
        return ()
    told = [f"{_seconds(spot)} in blocks of {format_bytes(spot.x)}" for spot in (direct[0], direct[-1])]
    text = f"At these rates reading 30 GB would take {' and '.join(told)}"
    if cold:
        best = max(cold, key=lambda spot: spot.value)
        text += f", through an empty page cache {_seconds(best)} in blocks of {format_bytes(best.x)}"
    return (f"{text}; in brackets the fastest and the slowest repeat.",)


def _seconds(spot: Spot) -> str:
    ends = (_JOB / spot.high, _JOB / spot.low) if spot.low < spot.high else None
    return format_stated(_JOB / spot.value, ends, format_seconds)


def _fits(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for probe, verb in chart.PANELS.items():
        found = {path_name(fit.path): fit for fit in chart.fits(run, probe)}
        for name, curve in chart.lines(run, probe).items():
            fit = found.get(name)
            line: tuple[Cell, ...] = (None,) * 5
            if fit is not None:
                off = None if fit.worst is None else abs(fit.worst - 1)
                line = (fit.alpha_ns, fit.beta, fit.half, fit.ninety, off)
            rows.append((verb, name, *line, _thirty(run, name, curve)))
    return rows


def _thirty(run: Run, name: str, curve: Sequence[Spot]) -> str:
    """By block size; nothing where memory answers that does not hold so much."""
    if name == _UNFLUSHED:
        return "the disk is not waited for"
    if name == _WARM and (run.machine.number("memory.total_bytes") or 0.0) < _JOB:
        return "more than memory holds"
    told = [spot for spot in curve if spot.x in _JOBS or spot is curve[-1]]
    return "; ".join(f"{format_bytes(spot.x)}: {format_seconds(_JOB / spot.value)}" for spot in told)


def _rules(run: Run) -> list[tuple[Cell, ...]]:
    """A rule that several probes know stands once, decided where one of them could."""
    found: dict[str, tuple[Cell, ...]] = {}
    for probe in (*_PROBES, storage_random.READ):
        for entry in findings(run, probe).sections("rules"):
            rule, verdict = entry.text("rule") or "", entry.text("verdict") or "undecided"
            # Runs of older versions have what each side knew of it alone.
            if rule and rule != _BEATS and (rule not in found or verdict != "undecided"):
                found[rule] = (rule, verdict, entry.text("detail"))
        if probe == chart.WRITE and any(chart.lines(run, own) for own in _PROBES):
            found[_BEATS] = (_BEATS, *reading_beats_writing(run))
    return list(found.values())


def reading_beats_writing(run: Run) -> tuple[str, str]:
    """The verdict with its figures, where both were measured past the page cache in blocks of the same size.

    Of a size, one side is ahead when its slowest repeat is faster than the other's fastest. The rule is true
    or false where at least half of the sizes have the same side ahead and none the other.
    """
    reading, writing = (
        {spot.x: spot for spot in chart.lines(run, probe).get(_DIRECT, [])} for probe in _PROBES
    )
    common = sorted(reading.keys() & writing.keys())
    if not common:
        return "undecided", "not both measured past the page cache in blocks of the same size"
    ahead = sum(reading[size].low > writing[size].high for size in common)
    behind = sum(writing[size].low > reading[size].high for size in common)
    verdict = "undecided"
    if 2 * ahead >= len(common) and not behind:
        verdict = "true"
    elif 2 * behind >= len(common) and not ahead:
        verdict = "false"
    best = max(common, key=lambda size: max(reading[size].value, writing[size].value))
    sides = " and ".join(
        f"{format_rate(side[best].value)} {verb}"
        f" ({format_rate(side[best].low)} to {format_rate(side[best].high)} in single repeats)"
        for side, verb in ((reading, "read"), (writing, "written"))
    )
    return verdict, (
        f"direct, blocks of {format_bytes(best)}: {sides}; beyond the spread of the repeats reading is ahead"
        f" in {ahead} of {len(common)} block sizes, writing in {behind}"
    )


def _tried(run: Run) -> list[Record]:
    best = positive(findings(run, chart.READ), "best_block_bytes")
    blocks = {*_TRIED, int(best or 0)}
    return [
        record
        for probe in _PROBES
        for record in timed(run, probe)
        if record.point.block_bytes in blocks and record.point.path in {"direct", "buffered-fsync-each"}
    ]
