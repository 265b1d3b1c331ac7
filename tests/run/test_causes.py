"""What a tail is made of is told from evidence only, with what stays unexplained."""

from __future__ import annotations

from latlab.run.causes import slow_causes
from latlab.run.model import Record, TailCauses, TailSample


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
