"""What could be saved, by arithmetic on ledgers that were made up."""

from __future__ import annotations

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.explain.beside import bounds_table, judged_lines
from latlab.explain.file_io import FILE_IO
from latlab.explain.judge import judge, wanted
from latlab.explain.limits import Curve, Limits, Speed

GB = 1e9
READS = {
    "read_chars": 400 * GB / 1000,
    "read_calls": 12_500.0,
    "device_read_bytes": 400 * GB / 1000,
    "written_chars": 0.0,
}


def speed(size: float, slow_gb: float, fast_gb: float) -> Speed:
    return Speed(size, size / fast_gb, size / (slow_gb + fast_gb) * 2, size / slow_gb)


MACHINE = Limits(
    {
        "read-memory": Curve("read-memory", (speed(4096, 2, 4), speed(65_536, 8, 10)), "run A"),
        "read-disk": Curve("read-disk", (speed(65_536, 1, 2),), "run B, 9 days old"),
        "fault": Curve("fault", (Speed(0, 900, 1000, 1500),), "run A"),
        "fault-huge": Curve("fault-huge", (Speed(0, 200_000, 250_000, 400_000),), "run A"),
    }
)


def test_a_note_that_the_ledger_has_is_not_said_again() -> None:
    noted = msgspec.structs.replace(ledger({}), notes=("It cannot be kept.",))
    assert judge(noted, Limits(notes=("It cannot be kept.", "No figure."))).notes == ("No figure.",)


def test_a_category_that_were_free_saves_its_share_and_no_more() -> None:
    bound = judge(ledger({"locks": 0.3}), Limits()).free("locks")
    assert bound is not None
    assert (bound.low_s, bound.high_s) == pytest.approx((6.9, 7.1))
    assert (bound.saving_low, bound.saving_high, bound.saving_most) == pytest.approx((0.29, 0.31, 0.31))


def test_file_io_is_the_kernels_work_and_the_waiting() -> None:
    bound = judge(ledger({"storage-wait": 0.3, "file-io-cpu": 0.2}), Limits()).free(*FILE_IO)
    assert bound is not None
    assert bound.name == "file-io"
    # The two intervals add up as independent ones do.
    assert bound.saving_high == pytest.approx(0.5 + 0.01 * 2**0.5)
    assert bound.high_s == pytest.approx(10 * (0.5 + 0.01 * 2**0.5))


def test_the_unexplained_is_nothing_that_could_be_saved() -> None:
    names = {bound.name for bound in judge(ledger({"unexplained": 0.5}), Limits()).bounds}
    assert "unexplained" not in names


def test_with_several_threads_what_the_others_wait_for_may_save_more_than_its_part() -> None:
    # Two threads ran all the time: one allocated in the first half, on the path that the other waited for.
    two = ledger({"allocator": 0.25}, threads={"most": 2, "parallelism": 1.5})
    bound = judge(two, Limits()).free("allocator")
    assert bound is not None
    assert bound.saving_high == pytest.approx(0.26)
    assert bound.saving_most == pytest.approx(0.52)
    assert "wait for" in bound.why


def test_threads_that_hardly_ever_run_together_widen_a_bound_by_no_more_than_they_do() -> None:
    many = ledger({"allocator": 0.25}, threads={"most": 64, "parallelism": 1.02})
    bound = judge(many, Limits()).free("allocator")
    assert bound is not None
    assert bound.saving_most == pytest.approx(0.26 + 0.02)


def test_a_wait_behind_a_running_thread_may_be_what_the_program_waits_for() -> None:
    hidden = ledger(
        {"storage-wait": 0.05, "file-io-cpu": 0.0},
        threads={"most": 2, "parallelism": 1.0, "waits": [{"name": "storage-wait", "seconds": 4.0}]},
    )
    bound = judge(hidden, Limits()).free("storage-wait")
    assert bound is not None
    assert bound.saving_high == pytest.approx(0.06)
    assert bound.saving_most == pytest.approx(0.4)


def test_reading_at_a_limit_takes_its_bytes_over_the_rate_at_its_own_block_size() -> None:
    cold = ledger({"storage-wait": 0.3, "file-io-cpu": 0.1}, counters=READS, width=0.0)
    # 32 KiB lies three quarters of the way from 4 to 64 KiB on a logarithmic axis.
    at = MACHINE.at("read-memory", 32_000)
    assert at is not None
    bound = judge(cold, MACHINE).limit("read-memory")
    assert bound is not None
    assert bound.low_s == pytest.approx(6 + 12_500 * at.low / 1e9)
    assert bound.high_s == pytest.approx(6 + 12_500 * at.high / 1e9)
    assert 6 < bound.low_s < bound.high_s < 6.3
    # All of it came from the disk, which gives 1 to 2 GB/s at 64 KiB; below, a call costs as much as there.
    from_disk = judge(cold, MACHINE).limit("read-disk")
    assert from_disk is not None
    assert from_disk.low_s == pytest.approx(6 + 12_500 * 32_768e-9)
    assert from_disk.saving_high < bound.saving_high


def test_waiting_for_the_disk_is_saved_whole_even_where_the_limit_is_slower_than_the_calls() -> None:
    # 12,500 calls at 8 to 10 GB/s take 40 to 51 ms; on the CPU they took 10.
    cold = ledger({"storage-wait": 0.3, "file-io-cpu": 0.001}, counters=READS, width=0.0)
    bound = judge(cold, MACHINE).limit("read-memory")
    assert bound is not None
    assert (bound.saving_low, bound.saving_high) == pytest.approx((0.3, 0.3))


MAPPED = {"read_chars": 4096.0, "read_calls": 4.0, "device_read_bytes": 65_536 * 6250 + 4096.0}


def test_pages_of_mappings_are_there_without_reading_and_their_first_touch_may_be_cheaper() -> None:
    cold = ledger(
        {"storage-wait": 0.3, "file-io-cpu": 0.1, "interrupts-for-others": 0.01},
        counters=MAPPED,
        width=0.0,
        parts={"storage-wait": {"page fault": 0.3}, "file-io-cpu": {"reading for page faults": 0.1}},
    )
    judged = judge(cold, MACHINE)
    bound = judged.limit("read-memory")
    assert bound is not None
    # 6,250 blocks of 64 KiB, at most 65.536 us from the disk, at least 6.5536 from memory; and interrupts:
    # between none and all of it.
    assert judged.beside_reading == pytest.approx(6250 * 58.9824e-6 / 10 + 0.01)
    assert bound.saving_low == pytest.approx(0.4)
    assert bound.saving_high == pytest.approx(0.4 + judged.beside_reading, abs=1e-6)
    assert "first touches" in bound.why
    assert judged.judged == ()
    # Where neither is known it may be all of what touches them.
    assert judge(cold, Limits()).beside_reading == pytest.approx(0.59 + 0.01, rel=1e-4)


def test_what_was_in_memory_costs_nothing_beside_its_reading() -> None:
    warm = ledger(
        {"file-io-cpu": 0.4, "interrupts-for-others": 0.1}, counters=READS | {"device_read_bytes": 0.0}
    )
    assert judge(warm, MACHINE).beside_reading == 0


def test_what_watching_cost_is_in_the_rows_and_may_be_gone() -> None:
    cold = ledger({"storage-wait": 0.3, "file-io-cpu": 0.1}, counters=READS, width=0.0)
    watched = msgspec.structs.replace(cold, observer=msgspec.structs.replace(cold.observer, share=0.02))
    plain, bound = (judge(each, MACHINE).limit("read-memory") for each in (cold, watched))
    assert plain is not None
    assert bound is not None
    assert bound.saving_low == plain.saving_low
    assert bound.saving_high == pytest.approx(plain.saving_high + 0.02)


def test_who_is_faster_than_the_limit_saves_nothing() -> None:
    quick = ledger({"page-faults": 0.05}, counters={"minor_faults": 1e6}, width=0.0)
    bound = judge(quick, MACHINE).limit("fault")
    assert bound is not None
    assert (bound.saving_low, bound.saving_high) == (0, 0)
    assert bound.low_s == bound.high_s == pytest.approx(10)
    table = bounds_table(judge(quick, MACHINE))
    assert any("nothing" in line for line in table)


def test_huge_pages_are_as_many_fewer_as_they_are_larger() -> None:
    faults = ledger({"page-faults": 0.5}, counters={"minor_faults": 512_000}, width=0.0)
    bound = judge(faults, MACHINE).limit("fault-huge")
    assert bound is not None
    assert bound.low_s == pytest.approx(5 + 1000 * 200e-6)
    assert bound.high_s == pytest.approx(5 + 1000 * 400e-6)


def test_waiting_for_a_disk_that_read_other_things_is_no_reading() -> None:
    # Folders came from the disk, 100 MB of them, and one small file was read.
    names = ledger(
        {"storage-wait": 0.5, "file-io-cpu": 0.2},
        counters={"read_chars": 1e4, "read_calls": 16.0, "device_read_bytes": 1e8},
        parts={"storage-wait": {"reading and writing": 0.5}},
    )
    assert judge(names, MACHINE).judged == ()


def test_who_writes_to_the_disk_what_memory_gave_waits_for_writing() -> None:
    copies = {"read_chars": 1e8, "read_calls": 1e3, "written_chars": 1e8, "write_calls": 1e3}
    direct = ledger({"storage-wait": 0.8}, counters=copies | {"device_written_bytes": 1e8})
    assert [each.name for each in judge(direct, MACHINE).judged] == ["writing"]


def test_reads_and_writes_are_distinguished_by_the_parts_of_the_ledger() -> None:
    both = ledger(
        {"file-io-cpu": 0.4},
        counters=READS | {"written_chars": 4e9, "write_calls": 1e5},
        parts={"file-io-cpu": {"reading": 0.1, "writing": 0.3}},
    )
    judged = {each.name: each for each in judge(both, MACHINE).judged}
    assert judged["reading"].seconds == pytest.approx(1.0)
    assert judged["writing"].seconds == pytest.approx(3.0)
    # The row is 0.40 with an interval from 0.39 to 0.41, and so is its part.
    assert judged["reading"].bytes_per_s == pytest.approx((0.4e9 * 40 / 41, 0.4e9 * 40 / 39))


def test_a_few_bytes_read_get_none_of_the_time_of_a_large_write() -> None:
    # One write of 200 MB had to wait for the disk; 8 KiB of the program itself came from there.
    writer = ledger(
        {"storage-wait": 0.2, "file-io-cpu": 0.2},
        counters={
            "read_chars": 45_000.0,
            "read_calls": 41.0,
            "device_read_bytes": 8192.0,
            "written_chars": 2e8,
            "write_calls": 1.0,
            "device_written_bytes": 2e8,
        },
    )
    judgement = judge(writer, MACHINE)
    assert [each.name for each in judgement.judged] == ["writing"]
    (writing,) = judgement.judged
    assert writing.seconds == pytest.approx(4.0, rel=1e-3)
    assert "in 1 call, at" in writing.says
    assert "not distinguished" not in writing.says


def test_reads_and_writes_that_nobody_distinguished_are_said_to_be_so() -> None:
    copy = {"read_chars": 1e9, "read_calls": 1e4, "written_chars": 1e9, "write_calls": 1e4}
    judged = judge(ledger({"file-io-cpu": 0.4}, counters=copy), MACHINE).judged
    assert {each.name for each in judged} == {"reading", "writing"}
    assert all("not distinguished" in each.says for each in judged)


def test_a_sentence_names_the_programs_figure_the_limit_and_where_it_is_from() -> None:
    cold = ledger({"storage-wait": 0.3, "file-io-cpu": 0.1}, counters=READS)
    said = " ".join(judged_lines(judge(cold, MACHINE)))
    assert "12,500 calls" in said
    assert "96.6–104 MB/s while it was reading" in said
    assert "(run A)" in said
    assert "(run B, 9 days old)" in said


def test_what_a_program_hardly_does_is_not_judged() -> None:
    idle = ledger({"sleep": 0.97, "file-io-cpu": 0.01}, counters=READS)
    assert wanted(idle) == []
    assert judge(idle, MACHINE).judged == ()
    # Of the time in which it did not wait for a CPU, two percent of all are four.
    busy = ledger({"page-faults": 0.02, "run-queue-wait": 0.5}, counters={"minor_faults": 9.0})
    assert wanted(busy) == ["fault", "fault-huge"]
    assert wanted(ledger({"page-faults": 0.2}, counters={"minor_faults": 9.0})) == ["fault", "fault-huge"]


def test_below_the_kernel_a_level_that_sees_no_user_code_says_between_none_and_all() -> None:
    bound = judge(ledger({"user-cpu": 0.9, "page-faults": 0.1}), Limits()).free("allocator")
    assert bound is not None
    assert bound.saving_low == 0
    assert bound.saving_high == pytest.approx(0.91)
