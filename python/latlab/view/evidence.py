"""Why a probe's figures can be believed, in a few lines."""

from __future__ import annotations

from collections import Counter

from latlab.run.causes import slow_causes, slow_parts
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_ns
from latlab.view.points import is_disturbed

#: A finer resolution than a femtosecond says nothing.
_FINEST_NS = 1e-6
#: What keeps a thread from its work is all that this probe is about: its section tells more of it.
_ITS_OWN_CAUSES = "kernel.noise"


def evidence(run: Run, probe: str) -> tuple[str, ...]:
    """Points, samples, proofs, resolution and disturbance of a probe's records; nothing when it has none."""
    records = [
        record for record in run.records if record.probe == probe and record.kind in {"batch_mean", "per_op"}
    ]
    if not records:
        return ()
    lines = [_samples(records, "batch_mean"), _samples(records, "per_op"), _checks(records)]
    if probe != _ITS_OWN_CAUSES:
        lines += _slow(records)
    disturbed = sum(is_disturbed(record) for record in records)
    if disturbed:
        lines.append(
            f"{format_count(disturbed)} of {format_count(len(records))} points were disturbed and are marked."
        )
    degraded = sorted({flag for record in records for flag in record.flags if flag.startswith("degraded")})
    lines += [f"{flag[:1].upper()}{flag[1:]}." for flag in degraded[:3]]
    return tuple(line for line in lines if line)


def _samples(records: list[Record], kind: str) -> str:
    chosen = [record for record in records if record.kind == kind]
    if not chosen:
        return ""
    total = format_count(sum(record.samples for record in chosen))
    points = f"{format_count(len(chosen))} point{'' if len(chosen) == 1 else 's'}"
    steps = [record.resolution_ns for record in chosen if record.resolution_ns and record.unit == "ns"]
    resolution = (
        f"; coarsest resolution: {format_ns(max(steps), digits=2)}"
        if steps and max(steps) >= _FINEST_NS
        else ""
    )
    if kind == "per_op":
        return f"{points}, {total} operations timed one by one{resolution}."
    sizes = [record.ops_per_sample for record in chosen if record.ops_per_sample]
    many = format_count(min(sizes)) if sizes else ""
    if sizes and max(sizes) != min(sizes):
        many += f" to {format_count(max(sizes))}"
    each = f" of {many} operation{'' if many == '1' else 's'} each" if many else ""
    return f"{points}, {total} means over windows{each}{resolution}."


def _checks(records: list[Record]) -> str:
    names = Counter(check.name for record in records for check in record.checks)
    failed = [check for record in records for check in record.checks if not check.ok]
    if not names:
        return ""
    listed = ", ".join(f"{name} ({format_count(count)})" for name, count in names.items())
    if failed:
        return (
            f"Proof of work: {listed}; {format_count(len(failed))} failed ({failed[0].detail}) and"
            " give no figure."
        )
    return f"Proof of work, all passed: {listed}."


def _slow(records: list[Record]) -> list[str]:
    """What the slow operations were made of: their number by cause, or their time by part where they wait."""
    lines = []
    waiting = slow_parts(records)
    if waiting is not None:
        lines.append(waiting.text)
    # What waits has parts, or nothing slow.
    others = [record for record in records if record.tail_causes is not None and not record.tail_causes.parts]
    causes = slow_causes(others, 0.0)
    if causes is not None:
        lines.append(
            f"Causes of {format_count(causes.samples)} slow operations: {causes.shares()}."
            f" Available evidence: {causes.level}. A cause is named where an event or a period accounts"
            " for it; the rest is unexplained."
        )
    return lines
