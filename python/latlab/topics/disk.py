"""What the topics of a disk have in common: paths, proofs, engines, rules that were broken, fio."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from latlab.run import fio
from latlab.run.causes import slow_parts
from latlab.run.findings import found, positive
from latlab.run.model import Point, Record
from latlab.run.run import Run
from latlab.run.sanity import Broken, broken_rules, stopped
from latlab.text import clean
from latlab.units import format_bytes, format_count
from latlab.view import evidence as of_any
from latlab.view.points import Spot, drawable, is_disturbed, with_figures
from latlab.view.prose import Notice, sentence
from latlab.view.table import Listing, listed

#: How a block travels, by the point's `path`: the word on a chart.
PATHS = {
    "direct": "direct",
    "buffered-cold": "cold cache",
    "buffered-warm": "warm cache",
    "buffered-fsync-each": "fsync each",
    "buffered-fsync-end": "fsync at the end",
    "buffered": "never flushed",
}
#: What a reader who does not know these words is told.
PATHS_EXPLAINED = (
    "direct: bypasses the page cache; cold: through an empty page cache; warm: from the page cache; "
    "fsync: made durable after each block, or once at the end"
)


def timed(run: Run, probe: str) -> list[Record]:
    """The probe's records with a figure in ns, one by one or in windows."""
    records = [*with_figures(run, probe, "per_op"), *with_figures(run, probe, "batch_mean")]
    return [record for record in records if record.unit == "ns"]


def path_name(path: str | None) -> str:
    """A path as charts call it."""
    return PATHS.get(path or "", path or "?")


def latency(record: Record, x: float, quantile: str = "p50") -> Spot | None:
    """One quantile of a record as a point of a curve, ns; nothing when it had too few samples."""
    if record.summary is None:
        return None
    value = getattr(record.summary, quantile)
    if not drawable(value):
        return None
    own = record.interval if quantile == "p50" else record.summary.intervals.get(quantile)
    ends = [value, *filter(drawable, own or ())]
    return Spot(x, value, min(ends), max(ends), record.samples, is_disturbed(record))


def file_name(size: int | None) -> str:
    """A file by its size, decimal where it was asked for so: `1 GB`."""
    if not size:
        return "empty file (no I/O)"
    return format_bytes(size, decimal=size % 1000 == 0)


#: Proofs of which the words say more than that they held.
_REPORTED = ("extents written", "evicted", "direct", "counted by the kernel", "device counted")


def evidence(run: Run, *probes: str) -> tuple[str, ...]:
    """Samples and proofs of the probes, in the proofs' own words, and which engine moved the bytes."""
    lines: list[str] = []
    for probe in probes:
        lines += [f"{probe}: {line}" if len(probes) > 1 else line for line in of_any.evidence(run, probe)]
    records = [record for probe in probes for record in timed(run, probe)]
    reported: dict[str, str] = {}
    for record in records:
        for check in record.checks:
            if check.ok and check.name in _REPORTED:
                reported.setdefault(check.name, check.detail)
    lines += [_reported(name, reported[name]) for name in _REPORTED if name in reported]
    engines: dict[str, int] = {}
    for record in records:
        if engine := record.engine or record.point.engine:
            engines[engine] = engines.get(engine, 0) + 1
    if engines:
        named = ", ".join(
            f"{name} ({format_count(count)} point{'s' if count > 1 else ''})"
            for name, count in engines.items()
        )
        lines.append(f"Engine: {named}.")
    return (*lines, *device_words(run, *probes))


def _reported(name: str, detail: str) -> str:
    start = "" if detail.startswith(name) else f"{name}: "
    text = start + detail
    return sentence(text[:1].upper() + text[1:])


def notices(run: Run, *probes: str) -> tuple[Notice, ...]:
    """The figures break this plausibility rule: they are shown, but no conclusion is drawn from them."""
    return tuple(
        Notice(
            "warning",
            "One point cannot be the disk's alone"
            if rule.point
            else "These figures cannot be the disk's alone",
            sentence(": ".join((*_whose(rule, probes), rule.text))),
        )
        for rule in broken_rules(run, *probes)
    )


def _whose(rule: Broken, probes: tuple[str, ...]) -> tuple[str, ...]:
    """The probe, where a section has several, and the point that breaks the rule."""
    words = [rule.probe] if len(probes) > 1 else []
    words += [_point(rule.point)] if rule.point else []
    return (" · ".join(words),) if words else ()


def _point(fields: tuple[tuple[str, int | str], ...]) -> str:
    """A point that a rule names, as tables name it; its raw fields where this version does not know them."""
    try:
        return msgspec.convert(dict(fields), Point).label()
    except msgspec.ValidationError:
        return ", ".join(f"{name} {value}" for name, value in fields)


def sound(run: Run, records: Iterable[Record]) -> list[Record]:
    """Those of which no rule is broken: what a headline may be made of."""
    kept = list(records)
    rules = stopped(run, kept)
    return [record for record in kept if not any(rule.concerns(record) for rule in rules)]


def tail_words(record: Record | None) -> tuple[str, ...]:
    """One sentence on who had a part in a record's slowest operations; none where that is not known."""
    parts = None if record is None else slow_parts([record])
    return () if parts is None else (parts.text,)


_COUNTED = (
    "The kernel counts the device's time from an operation's request to its completion, including "
    "the block layer's queue and the interrupt. The rest is the software before and the wake-up "
    "after."
)


def device_times(run: Run, *probes: str) -> tuple[Listing, ...]:
    """How much of an operation's mean time its requests were with the device, where that is counted."""
    several = len(probes) > 1
    every = [
        (record, found(record).section("device_time")) for probe in probes for record in timed(run, probe)
    ]
    return listed(
        "Where the time of an operation goes",
        [
            (record, own, whole, device)
            for record, own in every
            if (whole := positive(own, "operation_mean_ns")) is not None
            and (device := positive(own, "device_mean_ns")) is not None
        ],
        ("operation", "text", lambda at: (f"{at[0].probe} " if several else "") + at[0].point.label()),
        ("mean", "ns", lambda at: at[2]),
        ("of it the device", "ns", lambda at: at[3]),
        ("plus or minus", "ns", lambda at: positive(at[1], "error_ns")),
        ("software and wake-up", "ns", lambda at: max(at[2] - at[3], 0.0)),
        ("requests for each", "number", lambda at: at[1].number("requests_per_operation")),
    )


def device_words(run: Run, *probes: str) -> tuple[str, ...]:
    """What the device's time is, and of how many points it is unknown and why."""
    owns = [found(record).section("device_time") for probe in probes for record in timed(run, probe)]
    lines = [_COUNTED] if any(positive(own, "device_mean_ns") for own in owns) else []
    reasons = Counter(reason for own in owns if (reason := own.text("not_told")))
    for reason, count in reasons.most_common(3):
        points = f"{format_count(count)} point{'' if count == 1 else 's'}"
        lines.append(sentence(f"No device time for {points}: {clean(reason, most=160)}"))
    return tuple(lines)


def commands(records: Iterable[Record]) -> tuple[str, ...]:
    """`The same with fio (storage.rate · ...): fio --name=...` of the records that have a command."""
    lines = []
    for record in records:
        command = fio.command(record.probe, record.point)
        if command is not None:
            lines.append(f"The same with fio ({record.label}): {command}")
    return tuple(dict.fromkeys(lines))
