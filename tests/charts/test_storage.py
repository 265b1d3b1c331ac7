"""Charts of a disk: what is drawn, what is left out, what is marked."""

from __future__ import annotations

import msgspec
import pytest
from tests.some import some

from latlab.charts import named
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import storage_blocks, storage_files, storage_pokes, storage_random, storage_rate


def test_bandwidth_is_all_bytes_over_all_time_though_most_calls_were_answered_by_what_was_read_ahead(
    run: Run,
) -> None:
    (record,) = run.select("storage.read.sequential", block_bytes=1 << 20, path="buffered-cold")
    # A median call that took a copy's time says nothing of the disk.
    assert record.summary is not None
    quick = msgspec.structs.replace(record.summary, p50=1e5)
    found = {"bytes_per_s": 1e9, "bytes_per_s_between_blocks": [0.8e9, 1.1e9]}
    changed = msgspec.structs.replace(record, summary=quick, findings=found)
    (spot,) = storage_blocks.lines(Run(run.header, [changed]), storage_blocks.READ)["cold cache"]
    assert (spot.low, spot.value, spot.high) == (0.8e9, 1e9, 1.1e9)


@pytest.mark.parametrize("rate", [None, "fast", -1, float("nan")])
def test_a_block_without_a_rate_is_not_drawn(run: Run, rate: object) -> None:
    (record,) = run.select("storage.read.sequential", block_bytes=1 << 20, path="direct")
    changed = msgspec.structs.replace(record, findings={"bytes_per_s": rate})
    assert storage_blocks.lines(Run(run.header, [changed]), storage_blocks.READ) == {}


def test_every_path_is_a_line_and_a_fit_that_cannot_be_is_none(run: Run) -> None:
    assert list(storage_blocks.lines(run, storage_blocks.READ)) == ["direct", "cold cache", "warm cache"]
    assert len(storage_blocks.lines(run, storage_blocks.WRITE)) == 4
    derived = run.select("storage.read.sequential", kind="derived")[0]
    for bad in (None, "fast", [{"path": "direct", "alpha_ns": -1}], [{"path": "direct"}], [7]):
        changed = Run(run.header, [msgspec.structs.replace(derived, findings={"fits": bad})])
        assert storage_blocks.fits(changed, storage_blocks.READ) == []


def test_random_blocks_are_drawn_alone_and_in_company(run: Run) -> None:
    names = ["read, depth 1", "read, depth 32", "write, depth 1", "write, depth 32"]
    assert list(storage_random.distributions(run)) == names


def test_rate_rises_with_depth_and_latency_is_that_of_the_smallest_block(run: Run) -> None:
    reads = storage_random.kinds(run)["read 4 KiB"]
    rates = [storage_random.rate(record) or 0.0 for record in reads]
    assert rates == sorted(rates)
    assert list(storage_random.of_smallest(storage_random.kinds(run))) == ["read 4 KiB", "write 4 KiB"]


@pytest.mark.parametrize("rate", [None, "many", -1, float("inf")])
def test_a_depth_without_a_rate_is_not_drawn(run: Run, rate: object) -> None:
    records = [
        msgspec.structs.replace(record, findings={"rate_per_s": rate})
        for record in run["storage.read.random"]
    ]
    assert named("storage_depth").chart(Run(run.header, records)) is None


def test_service_is_a_part_of_the_response(run: Run) -> None:
    lines = storage_rate.lines(storage_rate.records(run))
    for inner, outer in some(zip(lines["service, median"], lines["response, median"], strict=True)):
        assert inner.value <= outer.value


def test_a_rate_that_was_not_reached_did_not_keep_up(run: Run) -> None:
    record = storage_rate.records(run)[-1]
    late = msgspec.structs.replace(record, findings={"achieved_per_s": 0.5 * (record.point.rate_per_s or 0)})
    assert storage_rate.kept_up(record)
    assert not storage_rate.kept_up(late)


def test_few_random_moments_are_no_nominal_rate_and_whoever_did_all_that_were_due_kept_up(run: Run) -> None:
    record = storage_rate.records(run)[-1]
    rate = record.point.rate_per_s or 0
    few = msgspec.structs.replace(
        record, findings={"offered_per_s": 0.8 * rate, "achieved_per_s": 0.79 * rate}
    )
    assert storage_rate.kept_up(few)
    many = msgspec.structs.replace(record, findings={"offered_per_s": 1.2 * rate, "achieved_per_s": rate})
    assert not storage_rate.kept_up(many)


def test_what_disturbed_a_response_disturbed_the_service_within_it(run: Run) -> None:
    record = storage_rate.records(run)[-1]
    noisy = msgspec.structs.replace(record, flags=("disturbed",))
    lines = storage_rate.lines([noisy])
    assert lines["service, median"][0].disturbed
    assert lines["response, median"][0].disturbed


def test_pokes_stand_from_the_nearest_path_to_the_farthest(run: Run) -> None:
    pokes = storage_pokes.pokes(run)
    assert list(dict.fromkeys(r.point.path for r in pokes)) == ["buffered-warm", "buffered-cold", "direct"]
    assert storage_pokes.stairs(pokes).names == ["empty file (no I/O)", "1 kB", "1 MB", "1 GB"]


def test_phases_add_up_to_the_file(run: Run) -> None:
    for each in some(storage_files.passes(run)):
        assert sum(each.phases.values()) == pytest.approx(each.file_ns)


def test_one_file_is_compared_only_where_there_are_many_too(run: Run) -> None:
    assert list(storage_files.compared(storage_files.passes(run))) == ["write", "read-warm", "read-cold"]
    alone = Run(run.header, run.select("storage.files", files=1))
    assert named("storage_files").chart(alone) is None
    assert named("storage_files").absence(alone) == "one file and many files were not both measured"


def refused(record: Record) -> Record:
    check = msgspec.structs.replace(record.checks[0], ok=False, detail="this directory is in memory")
    return msgspec.structs.replace(record, checks=(check,))


@pytest.mark.parametrize(
    "name",
    ["blocks", "random", "depth", "rate", "pokes", "files"],
)
def test_a_failed_proof_leaves_its_reason_and_no_line(name: str, run: Run) -> None:
    records = [refused(r) if r.checks else r for r in run.records if r.probe.startswith("storage.")]
    records = [record for record in records if record.error is None]
    bad, chart = Run(run.header, records), named(f"storage_{name}")
    assert chart.chart(bad) is None
    assert "this directory is in memory" in (chart.absence(bad) or "")
