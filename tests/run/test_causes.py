"""What a tail is made of is told from evidence only, with what stays unexplained."""

from __future__ import annotations

import pytest

from latlab.run.causes import slow_causes, slow_parts
from latlab.run.model import Record, TailCause, TailCauses, TailPart, TailSample


def poked(causes: dict[str | None, int], value: float = 20_000.0, level: str = "tracepoints") -> Record:
    tail = [
        TailSample(at_ns=1e6 * at, value=value, cause=cause)
        for cause, count in causes.items()
        for at in range(count)
    ]
    return Record(
        probe="memory.poke",
        method=1,
        unit="ns",
        kind="per_op",
        stopped_by="planned",
        tail=tuple(tail),
        tail_causes=TailCauses(level=level, threshold_ns=1_000.0, causes=()),
    )


def test_shares_are_of_all_slow_samples_and_the_unexplained_come_last() -> None:
    records = [poked({None: 13, "timer-tick": 61, "host-tick": 25, "context-switch": 1})]
    causes = slow_causes(records, 10_000.0)
    assert causes is not None
    assert causes.shares() == "61 % timer tick, 25 % host tick, 1.0 % context switch, 13 % unexplained"


def test_abbreviations_of_files_are_written_out() -> None:
    causes = slow_causes([poked({"ipi": 6, "interrupt": 4})], 10_000.0)
    assert causes is not None
    assert causes.shares() == "60 % interrupt from another CPU, 40 % some interrupt, 0 % unexplained"


def test_that_nothing_stays_unexplained_is_said_too() -> None:
    causes = slow_causes([poked({"timer-tick": 10})], 10_000.0)
    assert causes is not None
    assert causes.shares() == "100 % timer tick, 0 % unexplained"


def test_faster_samples_are_not_in_it() -> None:
    causes = slow_causes([poked({"timer-tick": 10}), poked({None: 50}, value=9_999.0)], 10_000.0)
    assert causes is not None
    assert causes.samples == 10


def test_a_record_without_evidence_has_no_shares_nor_have_a_few_samples() -> None:
    old = Record(probe="memory.poke", method=1, unit="ns", kind="per_op", stopped_by="planned")
    assert slow_causes([poked({"timer-tick": 10}), old], 10_000.0) is None
    assert slow_causes([poked({"timer-tick": 9})], 10_000.0) is None
    assert slow_causes([], 10_000.0) is None


def test_the_level_is_the_least_of_all_records() -> None:
    records = [poked({"timer-tick": 10}), poked({"host-tick": 10}, level="time stamps")]
    causes = slow_causes(records, 0.0)
    assert causes is not None
    assert causes.level == "time stamps"


def waited(
    *parts: TailPart, probe: str = "storage.sync", count: int = 10, level: str = "perf records"
) -> Record:
    row = TailCause(cause="waiting", count=count, ns=1e7, explained_ns=9e6)
    causes = TailCauses(level=level, threshold_ns=1e6, causes=(row,), parts=parts)
    return Record(
        probe=probe,
        method=1,
        unit="ns",
        kind="per_op",
        stopped_by="planned",
        samples=1_000,
        tail_causes=causes,
    )


DISK = TailPart(cause="waiting", ns=7e6)
LATE = TailPart(cause="run-queue-delay", ns=2e6)


def test_the_time_of_what_waits_is_split_and_the_rest_stays_unexplained() -> None:
    parts = slow_parts([waited(DISK, LATE)])
    assert parts is not None
    assert parts.text == (
        "The slowest 10 of 1,000 took 1.00 ms or longer; of their time: 70 % the disk, 20 % waiting for a"
        " CPU, 0 % first touch of memory, 10 % own work or unexplained (seen by perf records); the "
        "disk's part could not be divided into device and path."
    )


def test_where_requests_were_recorded_the_device_is_distinguished_from_the_way_to_it() -> None:
    device, way = TailPart(cause="device", ns=3e6), TailPart(cause="way", ns=1e6)
    parts = slow_parts([waited(device, way), waited(DISK)])
    assert parts is not None
    assert "of their time: 55 % the disk, 0 % waiting for a CPU" in parts.text
    reported = "where requests were recorded, 75 % was the device and 25 % the path to it and back."
    assert parts.text.endswith(reported)


def test_what_only_a_counter_of_all_knows_is_a_bound() -> None:
    parts = slow_parts([waited(DISK, TailPart(cause="run-queue-delay", ns=0, at_most_more_ns=3e6))])
    assert parts is not None
    assert "; up to 30 % more of it was waiting for a CPU (seen by" in parts.text


def test_parts_of_several_records_are_added_and_the_least_that_was_seen_is_said() -> None:
    parts = slow_parts([waited(DISK), waited(LATE, level="counters")])
    assert parts is not None
    assert (parts.samples, parts.of) == (20, 2_000)
    # Each point has a threshold of its own: none of them holds for all operations.
    assert parts.text.startswith("The slowest of each of 2 points, 20 of 2,000 operations; of their time: ")
    assert parts.total_ns == pytest.approx(2e7)
    assert parts.unexplained_ns == pytest.approx(1.1e7)
    assert "counters" in parts.text


def test_what_sleeps_without_a_disk_does_not_wait_for_one() -> None:
    parts = slow_parts([waited(DISK, probe="kernel.timer")])
    assert parts is not None
    assert "disk" not in parts.text
    assert "asleep until" in parts.text


def test_a_few_slow_operations_have_no_parts_worth_telling() -> None:
    assert slow_parts([waited(DISK, count=9)]) is None
    assert slow_parts([]) is None
    assert slow_parts([poked({"timer-tick": 10})]) is None
