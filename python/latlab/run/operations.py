"""The ladder's second group: what a program asks of kernel, allocator, interpreter, other CPUs and disk.

An operation that was not part of the run has no rung; one that was planned and has no figure says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from latlab import units
from latlab.run.distance import USUAL_NS
from latlab.run.findings import findings, found, positive
from latlab.run.rung import Rung, TailKind, absence, is_wide, tail_of, with_record, with_textbook
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.run.model import Point, Record
    from latlab.run.run import Run

#: What most allocations of programs are like; the size in every table of allocators.
_SMALL_BYTES = 32
#: A thread that waits for the next event of a busy program: long enough for its CPU to rest.
_SLEPT_NS = 1_000_000
_BLOCK_BYTES = 4096
#: A file that a program pokes at: larger than any buffer, small enough to stay in the page cache.
_POKED_BYTES = 1_000_000
#: So many small files are made one after another.
_FILES = 1000
#: What most tools hand over at once to a stream.
_STREAM_BYTES = 128 << 10
#: A message that costs nothing itself.
_MESSAGE_BYTES = 64
#: Where the two sides of an exchange are, by the point's `placement`, the usual one first.
PLACEMENTS: Mapping[str, str] = MappingProxyType(
    {
        "across-blocking": "two CPUs, both sleep",
        "same-cpu": "on one CPU",
        "across-polling": "two CPUs, both poll",
    }
)
#: What the textbook's last line is about.
PACKET = "packet, London to California and back"
#: The instrument's own time is worth a word from this share of a figure on.
_WORTH_SAYING = 0.01
#: From this difference of logarithms on two figures are told beside each other.
_ANOTHER = 0.05


@dataclass(frozen=True, slots=True)
class _Operation:
    """One rung to be: which records it may be made of, and how it is made of them."""

    key: str
    level: str
    probe: str
    wanted: Callable[[Point], bool]
    make: Callable[[Rung, list[Record]], Rung]
    textbook: str = ""


def operation_rungs(run: Run) -> list[Rung]:
    """The operations, roughly from the cheapest to the dearest."""
    rungs = []
    rules = run.broken
    for operation in _OPERATIONS:
        rung = Rung(operation.key, operation.level, group="operations")
        records = [
            record
            for record in run.records
            if record.probe == operation.probe and operation.wanted(record.point)
        ]
        measured = [record for record in records if record.value is not None and record.unit == "ns"]
        stop = next((rule for rule in rules if any(rule.concerns(record) for record in measured)), None)
        sound = [record for record in measured if not any(rule.concerns(record) for rule in rules)]
        if stop is not None and not sound:
            rungs.append(replace(rung, note=f"not measured: {clean(stop.text, most=200)}"))
            continue
        measured = sound
        if measured:
            made = operation.make(rung, measured)
            if operation.probe == "storage.sync":
                made = _with_verdict(made, run)
            if operation.key == "loopback":
                made = _with_stream(made, run)
            rungs.append(with_textbook(made, operation.textbook) if operation.textbook else made)
            continue
        if operation.key == "packet" and not _has_path(run):
            continue
        known = any(record.probe == operation.probe for record in run.records)
        if known or any(entry.id == operation.probe for entry in run.header.plan):
            rungs.append(replace(rung, note=f"not measured: {_why(run, operation.probe, records)}"))
    return rungs


def _has_path(run: Run) -> bool:
    """Whether a path was asked for; without one no packet goes further than this machine."""
    settings = run.header.settings
    return not (settings.delay_ms is None and settings.rate_mbit is None and settings.distance is None)


def _why(run: Run, probe: str, records: list[Record]) -> str:
    for record in records:
        if record.error is not None and record.error.text:
            return record.error.text
        failed = next((check for check in record.checks if not check.ok), None)
        if failed is not None:
            return f"a proof of work failed: {failed.detail}"
    return absence(run, probe) or "its point was not reached"


# ---------------------------------------------------------------------------------------------- making a rung


def _of(rung: Rung, record: Record, *, parts: int = 1) -> Rung:
    """The rung of one record; its figures divided by `parts` where an operation is one of several."""
    kind: TailKind = "single accesses" if record.kind == "per_op" else "window means"
    tail = tail_of(record, kind)
    refused = record.summary.refused.get("p999", "") if record.summary else ""
    if tail is not None:
        tail = replace(tail, value_ns=tail.value_ns / parts, note=_instrument_note(record))
    interval = record.interval
    value = (record.value or 0.0) / parts
    return replace(
        with_record(rung, record),
        latency_p50_ns=value,
        interval=(interval[0] / parts, interval[1] / parts) if interval else None,
        by_cpu=tuple(msgspec.structs.replace(own, p50=own.p50 / parts) for own in record.apart),
        tail=tail,
        refused=f"p99.9: {refused}" if refused and (tail is None or tail.quantile != "p99.9") else "",
    )


def _instrument_note(record: Record) -> str:
    overhead, value = record.overhead, record.value
    if record.kind != "per_op" or overhead is None or not value:
        return ""
    own = overhead.region_ns
    return f"includes {own:.0f} ns of timer overhead" if own > _WORTH_SAYING * value else ""


def _first(rung: Rung, records: list[Record]) -> Rung:
    return _of(rung, records[0])


def _nearest(records: list[Record], field: str, target: float) -> Record:
    """The one whose field of the point is nearest to `target` on a log scale."""

    def far(record: Record) -> float:
        value = getattr(record.point, field)
        return abs(math.log(value / target)) if value else math.inf

    return min(records, key=far)


def _malloc(rung: Rung, records: list[Record]) -> Rung:
    chosen = _nearest(records, "size_bytes", _SMALL_BYTES)
    size = units.format_bytes(chosen.point.size_bytes)
    return replace(_of(rung, chosen), size_text=size, note=(chosen.engine or "").partition(" (")[0])


def _switch(rung: Rung, records: list[Record]) -> Rung:
    """The fastest way there and back on one CPU is two switches and the least of anything else."""
    best = min(records, key=lambda record: record.value or math.inf)
    how = ", ".join(part for part in (best.point.operation, best.point.between) if part)
    return replace(_of(rung, best, parts=2), note=f"half of a round trip on one CPU ({how})")


def _line(rung: Rung, records: list[Record]) -> Rung:
    """Over all pairs: their middle, and how far they lie apart."""
    swaps = [record for record in records if record.point.operation == "compare-and-swap"] or records
    pairs = sorted(swaps, key=lambda record: record.value or 0.0)
    middle = pairs[len(pairs) // 2]
    made = _of(rung, middle)
    if len(pairs) == 1:
        return replace(made, note="one pair of CPUs")
    ends = (pairs[0].value or 0.0, pairs[-1].value or 0.0)
    made = replace(made, interval=ends, interval_kind="spread over pairs of CPUs")
    return replace(made, is_range=is_wide(made), note=f"{len(pairs)} pairs of CPUs; the range is over them")


def _wakeup(rung: Rung, records: list[Record]) -> Rung:
    chosen = _nearest(records, "sleep_ns", _SLEPT_NS)
    slept = f"after {units.format_ns_as_asked(chosen.point.sleep_ns)}"
    usual = chosen.point.sleep_ns == _SLEPT_NS
    return replace(
        _of(rung, chosen), size_text="" if usual else slept, note=f"{slept} asleep, on another CPU"
    )


def _loopback(rung: Rung, records: list[Record]) -> Rung:
    """As most programs have it, the server on another CPU and both asleep; the others lie far from it."""
    order = [place for place in PLACEMENTS if any(r.point.placement == place for r in records)]
    by = {record.point.placement: record for record in records}
    if not order:
        return replace(rung, note="not measured: its point does not describe the two sides")
    others = [f"{units.format_ns(by[place].value)} {PLACEMENTS[place]}" for place in order[1:]]
    note = f"TCP, {_MESSAGE_BYTES} B, {PLACEMENTS[order[0]]}"
    usual = order[0] == next(iter(PLACEMENTS))
    how = "" if usual else PLACEMENTS[order[0]]
    return replace(_of(rung, by[order[0]]), size_text=how, note="; ".join([note, *others]))


def _with_stream(rung: Rung, run: Run) -> Rung:
    """With what one stream carries to the other side, where that was measured."""
    rates = [
        record
        for record in run.records
        if record.probe == "network.throughput"
        and record.value
        and (record.point.transport, record.point.streams, record.point.placement) == ("tcp", 1, "anywhere")
    ]
    usual = [record for record in rates if record.point.message_bytes == _STREAM_BYTES]
    if not usual or not usual[0].value:
        return rung
    rate = usual[0].value
    where = f"one TCP stream, {usual[0].point.label()}; counted at the receiver"
    made = replace(rung, bandwidth=rate, bandwidth_point=where)
    return replace(made, seconds_1MiB=2**20 / rate, seconds_1GiB=2**30 / rate)


def _beside_streams(rung: Rung, records: list[Record]) -> Rung:
    """Beside the most streams that were measured, and what the same takes without them."""
    most = max(records, key=lambda record: record.point.streams or 0)
    streams = most.point.streams or 0
    if not streams:
        return replace(rung, note="not measured: its points have no streams")
    idle = next((record for record in records if record.point.streams == 0), None)
    carried = positive(found(most), "load_bytes_per_s")
    note = f"TCP; other streams: {streams}"
    note += f", with {units.format_rate(carried)}" if carried else ""
    note += f"; {units.format_ns(idle.value)} without them" if idle else ""
    return replace(_of(rung, most), note=note)


def _packet(rung: Rung, records: list[Record]) -> Rung:
    """Named by how long the path was to be; the flag of the record says by what and how long it was."""
    record = records[0]
    asked = positive(found(record), "route.rtt_ns")
    named = asked is not None and math.isclose(asked, USUAL_NS)
    level = PACKET if named else f"packet over a path of {units.format_ns_as_asked(asked)}"
    return replace(_of(rung, record), level=level)


def _poke(rung: Rung, records: list[Record]) -> Rung:
    chosen = _nearest([r for r in records if r.point.file_bytes] or records, "file_bytes", _POKED_BYTES)
    size = units.format_bytes_as_asked(chosen.point.file_bytes)
    note = f"read and written, in a file of {size} in the page cache"
    usual = chosen.point.file_bytes == _POKED_BYTES
    return replace(_of(rung, chosen), size_text="" if usual else f"in {size}", note=note)


def _read(rung: Rung, records: list[Record]) -> Rung:
    """With what the first reads after other work took, where that is another figure."""
    record = records[0]
    first = positive(found(record), "first_reads_ns")
    made = _of(rung, record)
    if first is None or not record.value or abs(math.log(first / record.value)) <= _ANOTHER:
        return made
    return replace(made, note=f"{units.format_ns(first)} for the first reads after other work")


def _with_verdict(rung: Rung, run: Run) -> Rung:
    """With what the probe thinks of the flush: absorbed by a cache, it is not what its name says."""
    verdict = clean(findings(run, "storage.sync").text("verdict") or "", most=80)
    return replace(rung, note=f"fdatasync; the flush: {verdict}" if verdict else "fdatasync")


def _create(rung: Rung, records: list[Record]) -> Rung:
    """The phase in which a file is made, of the point with the most files."""
    most = max(records, key=lambda record: record.point.files or 0)
    channel = next((each for each in most.channels if each.name == "create"), None)
    if channel is None or channel.summary.p50 is None:
        return replace(rung, note="not measured: its point has no phase of that name")
    own = msgspec.structs.replace(
        most, samples=channel.samples, summary=channel.summary, histogram=channel.histogram, spread=None
    )
    among = "" if most.point.files == _FILES else f"of {most.point.files}"
    return replace(
        _of(rung, own), size_text=among, note="open with O_CREAT, without writing, closing or flushing"
    )


def _is(**fields: object) -> Callable[[Point], bool]:
    """Whether a point has these values; a field that a point does not have is no objection."""
    return lambda point: all(getattr(point, name) in {None, value} for name, value in fields.items())


_OPERATIONS: tuple[_Operation, ...] = (
    _Operation(
        "malloc",
        "malloc + free",
        "alloc.malloc",
        _is(allocator="system", state="reused", placement="same-thread"),
        _malloc,
    ),
    _Operation("mutex", "mutex, lock + unlock", "kernel.mutex", _is(threads=1), _first, textbook="mutex"),
    _Operation("python-call", "Python function call", "python.object", _is(operation="call"), _first),
    _Operation("core-to-core", "line to another core and back", "memory.core_to_core", lambda _: True, _line),
    _Operation("syscall", "system call (getppid)", "kernel.syscall", _is(operation="getppid"), _first),
    _Operation(
        "context-switch",
        "context switch, one way",
        "kernel.context_switch",
        # Without two sides it is the calls alone, which the probe measures too.
        lambda point: point.placement == "same-cpu" and point.between is not None,
        _switch,
    ),
    _Operation(
        "page-fault",
        "page fault, first write (4 KiB)",
        "vm.fault",
        _is(operation="first-write", pages="4k"),
        _first,
    ),
    _Operation("wakeup", "wake-up of a sleeping thread", "kernel.wakeup", lambda _: True, _wakeup),
    _Operation(
        "loopback",
        "round trip on loopback",
        "network.roundtrip",
        _is(transport="tcp", message_bytes=_MESSAGE_BYTES),
        _loopback,
    ),
    _Operation(
        "loopback-loaded",
        "round trip on loopback, loaded",
        "network.loaded",
        _is(path="loopback"),
        _beside_streams,
    ),
    _Operation("thread", "thread, start to join", "kernel.spawn", _is(operation="thread"), _first),
    _Operation("process", "process, fork to wait", "kernel.spawn", _is(operation="fork-exit"), _first),
    _Operation(
        "file-poke",
        "file, 1-byte poke warm",
        "storage.poke",
        lambda point: point.path == "buffered-warm",
        _poke,
    ),
    _Operation(
        "file-create",
        "create a small file",
        "storage.files",
        lambda point: (
            point.operation == "write"
            and point.engine != "python"
            and point.sync is None
            and (point.files or 0) > 1
        ),
        _create,
    ),
    _Operation(
        "disk-read",
        "disk, random 4 KiB read",
        "storage.read.random",
        lambda point: point.block_bytes == _BLOCK_BYTES and point.queue_depth == 1 and point.path == "direct",
        _read,
        textbook="ssd_random_4k",
    ),
    _Operation(
        "disk-sync",
        "disk, durable 4 KiB write",
        "storage.sync",
        lambda point: point.operation == "overwrite" and point.sync == "fdatasync",
        _first,
    ),
    _Operation(
        "packet",
        "packet over the emulated path",
        "network.connect",
        lambda point: point.operation == "tcp" and point.path == "emulated",
        _packet,
    ),
)
