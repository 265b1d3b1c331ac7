"""The ladder's second group: one rung an operation, with what it stands for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from tests.golden.cases import FILES

from latlab.run.ladder import ladder
from latlab.run.model import Check, Record
from latlab.run.operations import operation_rungs
from latlab.run.run import Run, load
from latlab.run.rung import Rung
from latlab.units import format_ns

Change = Callable[..., Run]
Drop = Callable[[Callable[[Record], bool]], Run]
KEYS = [
    "malloc",
    "mutex",
    "python-call",
    "core-to-core",
    "syscall",
    "context-switch",
    "page-fault",
    "wakeup",
    "loopback",
    "loopback-loaded",
    "thread",
    "process",
    "file-poke",
    "file-create",
    "disk-read",
    "disk-sync",
    "packet",
]


def rungs(run: Run) -> dict[str, Rung]:
    return {rung.key: rung for rung in operation_rungs(run)}


def value(rung: Rung) -> float:
    assert rung.latency_p50_ns is not None
    return rung.latency_p50_ns


def p50(run: Run, probe: str, **point: object) -> float:
    (record,) = (r for r in run.select(probe, **point) if r.value is not None)  # type: ignore[arg-type]
    assert record.value is not None
    return record.value


def test_every_operation_has_a_figure_with_an_interval_that_holds_it(run: Run) -> None:
    assert list(rungs(run)) == KEYS
    for rung in rungs(run).values():
        assert rung.interval is not None
        assert rung.interval[0] <= value(rung) <= rung.interval[1], rung.key


def test_operations_stand_after_the_levels_and_are_compared_with_an_l1_hit(run: Run) -> None:
    whole = ladder(run)
    assert [rung.key for rung in whole if rung.group == "operations"] == KEYS
    call = next(rung for rung in whole if rung.key == "syscall")
    assert call.l1_hits == pytest.approx(value(call) / value(whole[0]))


def test_a_page_fault_is_a_first_write_to_a_small_page_with_its_own_tail(run: Run) -> None:
    rung = rungs(run)["page-fault"]
    assert value(rung) == p50(run, "vm.fault", operation="first-write", pages="4k")
    assert rung.tail is not None
    assert (rung.tail.quantile, rung.tail.kind) == ("p99.9", "single accesses")


def test_a_tail_with_too_few_operations_is_the_highest_that_has_enough_and_says_why(run: Run) -> None:
    rung = rungs(run)["thread"]
    assert rung.tail is not None
    assert rung.tail.quantile == "p99"
    assert rung.refused == "p99.9: 600 samples, needs 3,688"


def test_a_switch_is_half_of_the_fastest_way_there_and_back_on_one_cpu(run: Run) -> None:
    trip = p50(run, "kernel.context_switch", operation="futex", placement="same-cpu")
    rung = rungs(run)["context-switch"]
    assert value(rung) == trip / 2
    assert rung.tail is not None
    assert value(rung) <= rung.tail.value_ns < trip
    assert "half of a round trip on one CPU (futex, threads)" in rung.note


def test_a_line_of_another_core_is_the_middle_of_all_pairs_and_shows_their_spread(run: Run) -> None:
    pairs = run.select("memory.core_to_core", kind="batch_mean", operation="compare-and-swap")
    costs = sorted(record.value or 0.0 for record in pairs)
    rung = rungs(run)["core-to-core"]
    assert value(rung) == costs[3]
    assert rung.interval == (costs[0], costs[-1])
    assert rung.interval_kind == "spread over pairs of CPUs"
    assert "back" in rung.level


def test_pairs_that_lie_far_apart_are_a_range(run: Run, changed: Change) -> None:
    def first_pair(record: Record) -> bool:
        return record.probe == "memory.core_to_core" and (record.point.from_cpu, record.point.to_cpu) == (
            0,
            1,
        )

    pair = next(record for record in run.records if first_pair(record))
    assert pair.summary is not None
    far = changed(first_pair, summary=msgspec.structs.replace(pair.summary, p50=240.0))
    assert rungs(far)["core-to-core"].is_range


def test_a_small_allocation_is_the_systems_on_memory_used_before(run: Run) -> None:
    rung = rungs(run)["malloc"]
    expected = p50(
        run, "alloc.malloc", allocator="system", size_bytes=32, state="reused", placement="same-thread"
    )
    assert value(rung) == expected
    assert rung.note == "glibc 2.36"


def test_a_wake_up_says_how_long_the_thread_had_slept(run: Run) -> None:
    rung = rungs(run)["wakeup"]
    assert value(rung) == p50(run, "kernel.wakeup", sleep_ns=1_000_000)
    assert "1 ms" in rung.note


def test_a_round_trip_is_that_between_cpus_and_names_the_other_placements(run: Run) -> None:
    rung = rungs(run)["loopback"]
    trip = {"transport": "tcp", "message_bytes": 64}
    assert value(rung) == p50(run, "network.roundtrip", placement="across-blocking", **trip)
    assert rung.note.startswith("TCP, 64 B, two CPUs, both sleep; 15.3 µs on one CPU; 9.5")
    assert rung.textbook_ns is None, "no table lists it"


def test_a_round_trip_knows_what_a_stream_carries_and_what_it_takes_beside_streams(run: Run) -> None:
    found = rungs(run)
    stream = p50(
        run, "network.throughput", transport="tcp", streams=1, placement="anywhere", message_bytes=128 << 10
    )
    assert found["loopback"].bandwidth == stream
    loaded = found["loopback-loaded"]
    assert value(loaded) == p50(run, "network.loaded", path="loopback", streams=4)
    assert loaded.note.startswith("TCP; other streams: 4, with ")
    assert loaded.note.endswith(" without them")


def test_one_cpu_has_a_round_trip_of_its_own(run: Run) -> None:
    alone = Run(run.header, run.select("network.roundtrip", placement="same-cpu"))
    rung = rungs(alone)["loopback"]
    assert value(rung) == pytest.approx(15_300, rel=0.02)
    assert rung.note == "TCP, 64 B, on one CPU"


def test_only_what_a_published_table_lists_has_a_textbook_figure(run: Run) -> None:
    found = rungs(run)
    assert found["mutex"].textbook_ns == 25.0
    assert {key for key, rung in found.items() if rung.textbook_ns is not None} == {"mutex", "disk-read"}


def test_an_operation_that_was_planned_and_not_reached_says_so(without: Drop) -> None:
    rung = rungs(without(lambda record: record.probe == "kernel.syscall"))["syscall"]
    assert not rung.measured
    assert rung.note == "not measured: the run ended before it"


def test_an_operation_that_nobody_asked_for_has_no_rung(run: Run) -> None:
    header = msgspec.structs.replace(run.header, plan=())
    assert operation_rungs(Run(header, run.select("memory.load.dependent"))) == []


def test_a_figure_whose_proof_failed_is_none_and_the_rung_says_which(changed: Change) -> None:
    failed = (Check(name="faults counted", ok=False, detail="5,999 of 6,000"),)
    rung = rungs(changed(lambda record: record.probe == "vm.fault", checks=failed))["page-fault"]
    assert not rung.measured
    assert "5,999 of 6,000" in rung.note


def test_a_file_is_created_in_the_phase_of_that_name(run: Run) -> None:
    (record,) = run.select("storage.files", operation="write", engine="psync", files=1000)
    rung = rungs(run)["file-create"]
    create = next(channel for channel in record.channels if channel.name == "create")
    assert value(rung) == create.summary.p50
    assert value(rung) < (record.value or 0.0)


@pytest.mark.parametrize(("times", "reported"), [(1.5, True), (0.7, True), (1.02, False)])
def test_first_reads_that_take_another_time_are_reported_beside_the_figure(
    changed: Change, run: Run, times: float, reported: bool
) -> None:
    (record,) = run.select("storage.read.random", block_bytes=4096, queue_depth=1, path="direct")
    first = {"first_reads_ns": times * (record.value or 0.0)}
    rung = rungs(changed(lambda own: own is record, findings=first))["disk-read"]
    assert value(rung) == record.value
    assert rung.note == (
        f"{format_ns(times * value(rung))} for the first reads after other work" if reported else ""
    )


def test_a_write_that_a_cache_absorbed_is_not_called_durable_without_saying_so(run: Run) -> None:
    assert rungs(run)["disk-sync"].note == "fdatasync; the flush: absorbed by a protected cache or the host"


def test_a_disk_whose_figures_break_a_rule_has_no_rung_with_a_figure(run: Run) -> None:
    broken = {"sanity": [{"rule": "random is not faster", "holds": False, "detail": "4 KiB: 1 and 2 GB/s"}]}
    records = [
        msgspec.structs.replace(record, findings=broken)
        if record.kind == "derived" and record.probe == "storage.read.random"
        else record
        for record in run.records
    ]
    rung = rungs(Run(run.header, records, run.footer))["disk-read"]
    assert not rung.measured
    assert rung.note == "not measured: random is not faster: 4 KiB: 1 and 2 GB/s"


@pytest.mark.parametrize(
    ("file", "others"),
    [
        ("standard", set()),
        ("quick", {"wake-up of a sleeping thread after 100 µs", "file, 1-byte poke warm in 100 MB"}),
    ],
)
def test_a_row_that_is_another_experiment_than_usual_says_so_in_its_name(file: str, others: set[str]) -> None:
    rungs = [rung for rung in ladder(load(FILES[file])) if rung.group == "operations" and rung.size_text]
    assert {rung.name for rung in rungs} == {"malloc + free 32 B"} | others
