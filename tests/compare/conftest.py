"""Runs of one machine that differ as runs do, made of a kept one."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import msgspec
import pytest
from tests.golden.cases import FILES

from latlab.run.model import Record
from latlab.run.run import Run, load

#: Returns a run whose figures differ from another's by chance, and by what an argument says of a record.
Made = Callable[..., Run]


@cache
def kept() -> Run:
    """A standard run, of which nothing was disturbed."""
    whole = load(FILES["standard"])
    records = [msgspec.structs.replace(record, flags=[]) for record in whole.records]
    return Run(whole.header, records, whole.footer)


def scaled(record: Record, factor: float) -> Record:
    """The record with its figure and the interval of it times a factor."""
    summary = record.summary
    if summary is None or summary.p50 is None:
        return record
    ends = summary.intervals.get("p50")
    intervals = summary.intervals | ({"p50": (ends[0] * factor, ends[1] * factor)} if ends else {})
    p99 = None if summary.p99 is None else summary.p99 * factor
    return msgspec.structs.replace(
        record,
        summary=msgspec.structs.replace(summary, p50=summary.p50 * factor, p99=p99, intervals=intervals),
    )


@pytest.fixture
def made() -> Made:
    """`made(seed, between=0.02, change=lambda record: 1.0)`."""

    def run(
        seed: int,
        between: float = 0.02,
        change: Callable[[Record], float] = lambda _: 1.0,
        *,
        sure: bool = True,
    ) -> Run:
        dice = random.Random(seed)
        whole = kept()
        records = [
            scaled(record, change(record) * dice.lognormvariate(0.0, between)) for record in whole.records
        ]
        if sure:
            # Of its own precision a run says nothing here: what runs differ by is the test's.
            records = [_silent(record) for record in records]
        header = msgspec.structs.replace(whole.header, id=f"run-{seed}")
        return Run(header, records, whole.footer)

    return run


def _silent(record: Record) -> Record:
    if record.summary is None:
        return record
    return msgspec.structs.replace(record, summary=msgspec.structs.replace(record.summary, intervals={}))
