"""The ladder: every level that data passes through, one rung each, as pure data.

A terminal table, the report's first screen and `run.ladder()` are renderings of what :func:`ladder` returns.
Nothing here invents a figure: a level that was not measured has a rung without one, and the rung says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from latlab import units
from latlab.run.findings import findings
from latlab.run.model import Machine
from latlab.run.operations import operation_rungs
from latlab.run.rung import Rung, Tail, TailKind, absence, is_wide, tail_of, with_record, with_textbook

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run

#: Profiles and readers look at the caches through this order: translation is cheap in it, prefetching
#: impossible.
_CACHE_ORDER = "page-local"
_KIB = 1024
_MIB = 1024**2
_GIB = 1024**3
#: A random access to four times a cache's size misses it three times of four, to more of it more often.
_TIMES_BEYOND = 4
#: Half of the accesses to twice a cache's size miss it: the slowest of a thousand are those.
_TAIL_BEYOND = 2
#: A tail of single accesses is the level's own only when it is this far above that of an empty timed region.
_ABOVE_INSTRUMENT = 2.0
#: Ends of a level that lie further apart than this are none: the curve climbs, or sizes between are missing.
_CLIMBS = 4
#: Of a size in its unit: 9.5, but 14.
_DECIMALS_BELOW = 9.95
_SHORTER_THAN_INSTRUMENT = (
    "not measured: single accesses are shorter than the timer overhead, and there was no time for batches"
)
_LEVEL_NAMES = {"L1": "L1 cache", "L2": "L2 cache", "L3": "L3 cache", "L4": "L4 cache"}


@dataclass(frozen=True, slots=True)
class _Level:
    """One plateau of the curve: where it lies and how slow it is."""

    name: str
    latency_ns: float | None
    interval: tuple[float, float] | None
    above: int  # largest size that is still in the level before, bytes
    inside: int | None  # largest size that is surely in this level, bytes; absent for the last one
    flat: int | None  # largest size that is as fast as the others of this level, bytes
    outside: int | None  # size that surely misses it already, bytes: the other end of the bracket
    end: int | None  # size from which the next level answers alone, bytes
    reported: int | None
    note: str
    flags: tuple[str, ...]


def ladder(run: Run) -> list[Rung]:
    """The rungs of a run, nearest to the core first.

    Returns:
        L1, L2, L3, RAM, RAM with a TLB miss, then the pokes that were measured, then operations (locks,
        system calls, page faults, threads ...). A level that the machine has and the run did not measure is
        there without a figure, and so is an operation that was planned.
    """
    curve = curve_findings(run)
    levels = _levels(run, curve)
    rungs = [_cache_rung(run, level) for level in levels]
    rungs += _ram_rungs(run, curve, levels)
    rungs = _with_l1_hits(rungs)
    rest = _poke_rungs(run) + operation_rungs(run)
    return rungs + _with_l1_hits(rest, _l1_ns(rungs))


def curve_findings(run: Run) -> Machine:
    """What was concluded from the latency curve: levels, TLB steps, RAM; empty when nothing was concluded."""
    return findings(run, "memory.load.dependent")


def instrument(run: Run) -> Record | None:
    """The empty poke: what the instrument reads when there is nothing to measure."""
    for record in _pokes(run, "per_op"):
        if record.point.working_set_bytes == 0:
            return record
    return None


# ----------------------------------------------------------------------------------------------------------
# levels


def _levels(run: Run, curve: Machine) -> list[_Level]:
    levels = _found_levels(
        [entry for entry in curve.sections("levels") if str(entry.get("name")) in _LEVEL_NAMES]
    )
    return levels + _nominal_levels(run, {level.name for level in levels}, concluded=bool(curve))


def _validation(validated: object) -> tuple[str, ...]:
    """What to say of a level's end: rounds, each alone, found the same one, did not, or are too few."""
    if validated is True:
        return ()
    if validated is False:
        return ("cache size unconfirmed: the rounds disagree",)
    return ("cache size measured once; unconfirmed",)


def _found_levels(found: list[Machine]) -> list[_Level]:
    levels: list[_Level] = []
    above = 0
    for entry in found:
        latency, end_bytes = entry.estimate("latency_ns"), entry.estimate("end_bytes")
        bracket = end_bytes.ends if end_bytes else None
        inside = int(bracket[0]) if bracket else None
        ends = [
            number
            for number in (_number(entry.get("upper_end_bytes")), bracket[1] if bracket else None)
            if number
        ]
        end = int(max(ends)) if ends else None
        flags = _validation(entry.get("validated"))
        reported = _number(entry.get("reported_bytes"))
        note = str(entry.get("note") or "")
        outside = int(bracket[1]) if bracket else None
        flat = round(_number(entry.get("to_bytes")) or 0) or inside
        if bracket and bracket[1] > _CLIMBS * bracket[0]:
            low, high = map(units.format_bytes, bracket)
            note = f"its end was not found: the curve climbs from {low} to {high}"
            inside, outside = flat, None
        levels.append(
            _Level(
                name=str(entry.get("name", "?")),
                latency_ns=latency.value if latency else None,
                interval=latency.ends if latency else None,
                above=above,
                inside=inside,
                flat=flat,
                outside=outside,
                end=end,
                reported=int(reported) if reported else None,
                note=note,
                flags=flags,
            )
        )
        above = end or inside or above
    return levels


def _nominal_levels(run: Run, known: set[str], *, concluded: bool) -> list[_Level]:
    """Caches that the CPU reports and the curve did not show, without a figure and with the reason."""
    if concluded:
        reason = "no separate level was found in the curve"
    else:
        reason = absence(run, "memory.load.dependent") or "the latency curve was not finished"
    levels = []
    for name, size in reported_caches(run).items():
        if name not in known:
            levels.append(_Level(name, None, None, 0, None, None, None, None, size, reason, ()))
    return levels


def reported_caches(run: Run) -> dict[str, int]:
    """Sizes of the data and unified caches as the CPU reports them, bytes, by name (`L1`), L1 first."""
    sizes: dict[str, int] = {}
    for cache in run.machine.sections("caches"):
        level, size = cache.integer("level"), cache.integer("size_bytes")
        if cache.text("kind") != "instruction" and level and size:
            sizes.setdefault(f"L{level}", size)
    return dict(sorted(sizes.items()))


# -----------------------------------------------------------------------------------------------------------
# rungs


def _cache_rung(run: Run, level: _Level) -> Rung:
    rung = with_textbook(Rung(level.name, _LEVEL_NAMES.get(level.name, level.name)), level.name)
    if level.latency_ns is None:
        size = units.format_bytes(level.reported) if level.reported else ""
        return replace(rung, size_text=size, note=f"not measured: {level.note}")
    curve = _curve(run, _CACHE_ORDER)
    record = _inside(curve, level)
    rung = replace(
        rung,
        size_text=_size_text(level),
        latency_p50_ns=level.latency_ns,
        interval=level.interval,
        interval_kind="spread over its sizes",
    )
    wide = is_wide(rung)
    rung = replace(rung, is_range=wide, note=_cache_note(run, level, wide=wide), flags=level.flags)
    rung = with_record(rung, record)
    rung = _with_tail(rung, run, record, _poke_inside(run, level))
    return _with_bandwidth(rung, _inside(_reads(run), level), capacity=level.inside)


def _ram_rungs(run: Run, curve: Machine, levels: list[_Level]) -> list[Rung]:
    """RAM is what answers four times beyond the last cache, or from where the curve's last plateau begins.

    The slowest figure of a run is not RAM by that alone: with little memory, or a large cache, it is a cache.
    """
    beyond = max([level.end or level.reported or 0 for level in levels], default=0)
    plateau = next((entry for entry in curve.sections("levels") if entry.get("name") == "RAM"), None)
    begins = _number(plateau.get("from_bytes")) if plateau else None
    least = _TIMES_BEYOND * beyond if begins is None else round(begins)
    # Where the curve shows RAM, a cache that is only reported does not count: a host's may be others'.
    least_read = _TIMES_BEYOND * (beyond if begins is None else round(begins))
    figures = {name: _number(value) for name, value in curve.section("ram").items()}
    local = _ram_rung(run, ("RAM", "RAM"), _CACHE_ORDER, least, figures.get("page_local_ns"))
    local = _with_bandwidth(with_textbook(local, "RAM"), _farthest(_reads(run), least_read), capacity=None)
    random = _ram_rung(run, ("RAM+TLB", "… + TLB miss"), "random", least, figures.get("random_ns"))
    pokes = [r for r in _pokes(run, "per_op", "read") if beyond and _bytes(r) >= _TAIL_BEYOND * beyond]
    if random.measured and pokes:
        random = _with_tail(random, run, _farthest(_curve(run, "random"), least), pokes[-1])
    return [local, random]


def _ram_rung(run: Run, names: tuple[str, str], order: str, least: int, concluded_ns: float | None) -> Rung:
    key, level = names
    record = _farthest(_curve(run, order), least)
    if record is None:
        return Rung(key, level, note=f"not measured: {_why_no_ram(run, order, least)}")
    low, high = record.interval or (0.0, math.inf)
    value = concluded_ns if concluded_ns is not None and low <= concluded_ns <= high else record.value
    over = f"over {units.format_bytes(record.point.working_set_bytes)}" if order == "random" else ""
    rung = Rung(key, level, over, value, record.interval)
    rung = with_record(rung, record)
    return _with_tail(rung, run, record, None)


def _why_no_ram(run: Run, order: str, least: int) -> str:
    reason = absence(run, "memory.load.dependent")
    largest = max((_bytes(record) for record in _curve(run, order)), default=0)
    if reason or not largest:
        return reason or "no point of this order was measured"
    return (
        f"the largest working set was {units.format_bytes(largest)}; less than {units.format_bytes(least)} "
        "may be answered by the last cache"
    )


def _poke_rungs(run: Run) -> list[Rung]:
    rungs = []
    for record in sorted(_pokes(run, "per_op") + _pokes(run, "absent"), key=_bytes):
        size, operation = record.point.working_set_bytes or 0, record.point.operation or "read"
        name = (
            f"poke {units.format_bytes_as_asked(size)}, {operation}" if size else f"empty poke, {operation}"
        )
        key = f"poke:{size}:{operation}"
        if record.value is None:
            rungs.append(
                Rung(key, name, note=f"not measured: {record.error.text if record.error else 'no figure'}")
            )
            continue
        body = _batch_twin(run, record) if size else record
        if size and body is record and _is_instrument(record, instrument(run)):
            rungs.append(Rung(key, name, note=_SHORTER_THAN_INSTRUMENT))
            continue
        rung = Rung(key, name, "", body.value, body.interval)
        rung = with_record(rung, body)
        if not size:
            rung = replace(rung, note="timer overhead: an empty timed region")
        rungs.append(_with_tail(rung, run, body, record, own=True))
    return rungs


def _is_instrument(record: Record, empty: Record | None) -> bool:
    """Whether single pokes took hardly longer than an empty timed region: then that is all that they say."""
    if record.kind != "per_op" or empty is None or not empty.value:
        return False
    return (record.value or 0.0) < _ABOVE_INSTRUMENT * empty.value


def _batch_twin(run: Run, record: Record) -> Record:
    """The batch means of the same poke: free of the instrument's own time and of the clock's steps.

    The record itself where there are none.
    """
    for other in _pokes(run, "batch_mean", record.point.operation):
        if other.point.working_set_bytes == record.point.working_set_bytes and other.value:
            return other
    return record


# ----------------------------------------------------------------------------------------------------------
# parts of a rung


def _with_tail(
    rung: Rung, run: Run, windows: Record | None, pokes: Record | None, *, own: bool = False
) -> Rung:
    """Single accesses where they stand out from the instrument, else window means, labelled as such."""
    empty = instrument(run)
    if pokes is not None:
        tail = tail_of(pokes, "single accesses")
        if tail is not None and (own or _is_above(tail, empty)):
            bound = _bytes(pokes) > 0 and not _is_above(tail, empty)
            tail = replace(tail, note=_instrument_note(run, pokes), is_bound=bound)
            return replace(rung, tail=tail, refused="")
    if windows is None or windows.summary is None:
        return rung
    kind: TailKind = "single accesses" if windows.kind == "per_op" else "window means"
    tail = tail_of(windows, kind)
    refused = windows.summary.refused.get("p999", "")
    return replace(
        rung,
        tail=tail,
        refused=f"p99.9: {refused}" if refused and (tail is None or tail.quantile != "p99.9") else "",
    )


def _is_above(tail: Tail, empty: Record | None) -> bool:
    if empty is None:
        return False
    floor = tail_of(empty, "single accesses")
    return (
        floor is not None
        and floor.quantile == tail.quantile
        and tail.value_ns > _ABOVE_INSTRUMENT * floor.value_ns
    )


def _instrument_note(run: Run, record: Record) -> str:
    own_ns = record.overhead.region_ns if record.overhead else run.header.clock.overhead_ns.mean
    return f"includes {own_ns:.0f} ns of timer overhead"


def _with_bandwidth(rung: Rung, record: Record | None, capacity: int | None) -> Rung:
    rate = record.value if record else None
    if record is None or not rate:
        return rung
    convention = record.work.convention or "each byte read counts once"
    return replace(
        rung,
        bandwidth=rate,
        bandwidth_ends=record.interval,
        bandwidth_point=f"{record.point.label()}; {convention}",
        seconds_1MiB=_MIB / rate if capacity is None or capacity >= _MIB else None,
        seconds_1GiB=_GIB / rate if capacity is None or capacity >= _GIB else None,
    )


def _with_l1_hits(rungs: list[Rung], l1_ns: float | None = None) -> list[Rung]:
    l1_ns = l1_ns or _l1_ns(rungs)
    if not l1_ns:
        return rungs
    return [
        replace(r, l1_hits=r.latency_p50_ns / l1_ns) if r.latency_p50_ns is not None else r for r in rungs
    ]


def _l1_ns(rungs: list[Rung]) -> float | None:
    return next((rung.latency_p50_ns for rung in rungs if rung.key == "L1"), None)


def _size_text(level: _Level) -> str:
    """`48 KiB` where the curve agrees with the CPU, `10–14 of 32 MiB` where it does not."""
    low, high, reported = level.inside, level.outside, level.reported
    # Only sizes that are as fast as the rest of the level contradict a smaller one.
    surely = min(low or 0, level.flat or 0)
    agrees = reported and low and level.end and surely <= reported <= level.end
    if agrees or low is None or high is None:
        return units.format_bytes(reported) if reported else ""
    unit, name = next((u for u in ((_GIB, "GiB"), (_MIB, "MiB")) if high >= u[0]), (_KIB, "KiB"))
    found = f"{_short(low / unit)}–{_short(high / unit)}"
    if reported is None:
        return f"{found} {name}"
    if reported < low:
        return f"{found} {name}, not {units.format_bytes(reported)}"
    if reported % unit == 0:
        return f"{found} of {_short(reported / unit)} {name}"
    return f"{found} {name} of {units.format_bytes(reported)}"


def _cache_note(run: Run, level: _Level, *, wide: bool) -> str:
    notes = []
    if level.note:
        notes.append(level.note)
    elif wide and level.name not in {"L1", "L2"}:
        virtual = run.machine.text("virtualisation.hypervisor")
        neighbours = "the host's other guests" if virtual else "other CPUs"
        notes.append(f"a range, because this cache is shared with {neighbours}")
    elif wide:
        notes.append("a range, because its sizes differ this much")
    early = level.inside and level.reported and level.inside < 0.8 * level.reported
    if early and level.end and level.reported and level.reported <= level.end and not level.note:
        notes.append(f"misses start at {units.format_bytes(level.inside or 0)}")
    return "; ".join(notes)


# ----------------------------------------------------------------------------------------------------------
# choosing records


def _curve(run: Run, order: str) -> list[Record]:
    pages = str(curve_findings(run).get("curve_pages") or "4k")
    return [
        record
        for record in run.records
        if record.probe == "memory.load.dependent"
        and record.kind == "batch_mean"
        and record.point.order == order
        and record.point.pages == pages
        and _has_median(record)
    ]


def _reads(run: Run) -> list[Record]:
    return [
        record
        for record in run.records
        if record.probe == "memory.bandwidth"
        and record.point.operation == "read"
        and record.point.threads in {None, 1}
        and _has_median(record)
    ]


def _pokes(run: Run, kind: str, operation: str | None = None) -> list[Record]:
    records = [
        record
        for record in run.records
        if record.probe == "memory.poke"
        and record.kind == kind
        and record.point.working_set_bytes is not None
        and operation in {None, record.point.operation}
    ]
    return sorted(records, key=lambda record: (_bytes(record), record.point.operation or ""))


def _fitting(records: list[Record], level: _Level) -> list[Record]:
    """Those whose size lies surely on a level's plateau."""
    return [record for record in records if level.above < _bytes(record) <= (level.inside or 0)]


def _inside(records: list[Record], level: _Level) -> Record | None:
    """The record in the middle of a level's plateau; of several page draws there, the median one.

    Where the plateau reaches the middle of the size that the CPU reports, it is that one. It is the same in
    every run, so runs are compared at one point; the end that a run finds differs from run to run.
    """
    fitting = _fitting(records, level)
    if not fitting or level.inside is None:
        return None
    middle = _middle(level, level.reported or level.inside)
    if not 0 < middle <= level.inside:
        middle = _middle(level, level.inside)
    best = min((_bytes(record) for record in fitting), key=lambda size: abs(math.log(size / middle)))
    draws = sorted((record for record in fitting if _bytes(record) == best), key=_median)
    return draws[len(draws) // 2]


def _middle(level: _Level, size: float) -> float:
    return math.sqrt(max(level.above, size / 4) * size)


def _poke_inside(run: Run, level: _Level) -> Record | None:
    fitting = [r for r in _pokes(run, "per_op", "read") if level.above < _bytes(r) <= (level.inside or 0)]
    return fitting[-1] if fitting else None


def _farthest(records: list[Record], least: int) -> Record | None:
    """The largest working set, if it has at least so many bytes; of several page draws, the median one."""
    largest = max((_bytes(record) for record in records), default=0)
    if largest < least or not largest:
        return None
    draws = sorted((record for record in records if _bytes(record) == largest), key=_median)
    return draws[len(draws) // 2]


def _bytes(record: Record) -> int:
    return record.point.working_set_bytes or 0


def _has_median(record: Record) -> bool:
    return record.value is not None


def _median(record: Record) -> float:
    return record.value or 0.0


def _number(value: object) -> float | None:
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        else None
    )


def _short(number: float) -> str:
    """`14`, `1.5`: one decimal where it is not zero and still says something."""
    return f"{number:.1f}".removesuffix(".0") if number < _DECIMALS_BELOW else f"{number:.0f}"
