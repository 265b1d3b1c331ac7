"""The slow end of a disk's operations is split as far as the counters go, and no farther."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from latlab.run import reader
from latlab.run.model import Observed, Record
from latlab.run.tails import split

RUN = reader.read(Path(__file__).resolve().parent.parent / "data" / "run-small.latlab.jsonl")
QUIET = Observed(run_queue_delay_ns=0, steal_ns=0, throttled_ns=0, minor_faults=0, major_faults=0)


def alone(observed: Observed) -> Record:
    record = next(
        r
        for r in RUN.select("storage.read.random")
        if r.point.queue_depth == 1 and r.point.block_bytes == 4096
    )
    return msgspec.structs.replace(record, observed=observed)


def test_a_thread_that_never_waited_leaves_all_of_it_to_the_disk_or_the_unexplained() -> None:
    found = split(alone(QUIET))
    assert found is not None
    assert found.cpu == 0
    assert "at most 0 % was waiting for a CPU" in found.text
    assert "none of it was a first touch" in found.text


def test_waiting_for_a_cpu_bounds_its_share() -> None:
    whole = split(alone(QUIET))
    assert whole is not None
    half = split(alone(msgspec.structs.replace(QUIET, run_queue_delay_ns=int(whole.excess_ns / 2))))
    assert half is not None
    assert half.cpu == pytest.approx(0.5, rel=1e-3)
    more = split(alone(msgspec.structs.replace(QUIET, steal_ns=int(whole.excess_ns * 2))))
    assert more is not None
    assert "nothing is known of the disk's part" in more.text


def test_page_faults_are_said_and_not_priced() -> None:
    found = split(alone(msgspec.structs.replace(QUIET, minor_faults=3)))
    assert found is not None
    assert "for how long is not known" in found.text


def test_what_was_not_counted_or_overlaps_is_not_guessed() -> None:
    assert split(alone(msgspec.structs.replace(QUIET, run_queue_delay_ns=None))) is None
    assert split(msgspec.structs.replace(alone(QUIET), samples=40)) is None
    deep = next(r for r in RUN.select("storage.read.random") if (r.point.queue_depth or 0) > 1)
    assert split(msgspec.structs.replace(deep, observed=QUIET)) is None
