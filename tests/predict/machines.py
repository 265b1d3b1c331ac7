"""The made-up run as a machine, and the same with some operations slower."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from latlab.run import reader
from latlab.run.model import Record
from latlab.run.run import Run

HERE: Final = reader.read(Path(__file__).parents[1] / "data/run-small.latlab.jsonl")


def machine(
    *, without: str = "", cpus: float | None = None, memory: float | None = None, **slower: float
) -> Run:
    """That run where these probes (`storage__read` for all below it) take so many times as long.

    Args:
        without: It has no figures of this probe.
        cpus: CPUs that may be used.
        memory: Bytes that may be used.
        **slower: Factors.
    """
    limits = {"usable_cpus": cpus, "usable_memory_bytes": memory}
    own = {name: value for name, value in limits.items() if value is not None}
    fields = dict(HERE.machine)
    reported = fields["limits"]
    assert isinstance(reported, dict)
    fields["limits"] = {**reported, **own}
    header = msgspec.structs.replace(HERE.header, machine=type(HERE.machine)(fields))
    factors = {name.replace("__", "."): factor for name, factor in slower.items()}
    return Run(
        header,
        tuple(
            _slower(record, next((f for name, f in factors.items() if record.probe.startswith(name)), 1.0))
            for record in HERE.records
            if not without or record.probe != without
        ),
    )


def _slower(record: Record, factor: float) -> Record:
    summary = record.summary
    if factor == 1.0 or summary is None or summary.p50 is None or summary.mean is None:
        return record
    times = 1 / factor if record.unit == "bytes_per_s" else factor
    ends = {name: tuple(end * times for end in pair) for name, pair in summary.intervals.items()}
    findings = record.findings
    if isinstance(findings, dict) and isinstance(rate := findings.get("bytes_per_s"), float):
        between = findings.get("bytes_per_s_between_blocks")
        both = (
            [end / factor for end in between if isinstance(end, float)] if isinstance(between, list) else None
        )
        findings = {**findings, "bytes_per_s": rate / factor, "bytes_per_s_between_blocks": both}
    return msgspec.structs.replace(
        record,
        summary=msgspec.structs.replace(
            summary, p50=summary.p50 * times, mean=summary.mean * times, intervals=ends
        ),
        findings=findings,
    )
