"""Charts of many unlike costs: kernel and Python; of ways to get memory; of chains, prefetching and reuse."""

from __future__ import annotations

import msgspec
import pytest
from tests.some import some

from latlab.charts import named
from latlab.run.run import Run
from latlab.topics import allocation, kernel, nodes, parallelism, prefetch, python, reuse


def test_every_operation_of_the_kernel_has_a_name_of_its_own(run: Run) -> None:
    names = [row.name for row in kernel.lines(run)]
    assert len(names) == len(set(names))
    assert "pipe: the calls of both sides, no switch" in names
    assert names.index("nanosleep of 1 µs: how late") < names.index("nanosleep of 1 ms: how late")
    assert "nanosleep of 1 µs: how late" in names
    assert "mutex, lock and unlock, 1 thread" in names


def test_only_what_was_timed_one_by_one_has_a_slow_end(run: Run) -> None:
    rows = {row.name: row for row in kernel.lines(run)}
    assert rows["system call: getppid"].tail is None
    assert rows["thread: started and joined"].tail_name == "p99"
    assert rows["process: forked, ended, waited for"].tail_name == "p90"


def test_an_operation_that_this_version_does_not_know_keeps_its_own_name(run: Run) -> None:
    record = run.select("python.object", operation="call")[0]
    strange = msgspec.structs.replace(record, point=msgspec.structs.replace(record.point, operation="walrus"))
    assert [row.name for row in python.lines(Run(run.header, [strange, record]))] == [
        "call a function",
        "walrus",
    ]


def test_a_row_of_many_elements_says_how_many(run: Run) -> None:
    names = [row.name for row in python.lines(run)]
    assert "list by append, 1,000 elements" in names
    assert "look up in a dict, 1,000 entries" in names


def test_misses_under_way_are_one_chains_time_over_the_best(run: Run) -> None:
    curve = parallelism.lines(run)["1 GiB"]
    best = parallelism.overlapped(curve)
    assert best is not None
    assert best[0] == pytest.approx(curve[0].value / min(spot.value for spot in curve))
    assert parallelism.overlapped(curve[1:]) is None


def test_the_threshold_of_an_allocator_is_named_with_its_library(run: Run) -> None:
    assert allocation.thresholds(run) == {"glibc 2.36 maps each from 128 KiB": 128 * 1024}
    assert next(iter(allocation.lines(run))) == "glibc 2.36, memory used before"


def test_memory_freed_by_another_thread_is_not_part_of_the_curves(run: Run) -> None:
    assert [spot.x for spot in allocation.of(run, "system", "reused", "across-threads")] == [32, 1024]
    assert len(allocation.of(run, "system", "reused")) == 10


def test_the_part_in_page_faults_is_a_part_of_the_whole(run: Run) -> None:
    for variant in some(nodes.lines(run)):
        assert variant.faults_ns is not None
        assert 0 <= variant.faults_ns < variant.value


@pytest.mark.parametrize("share", [None, "half", -1, 7.0, True])
def test_a_share_that_cannot_be_one_is_unknown(run: Run, share: object) -> None:
    record = run.select("alloc.nodes", operation="malloc")[0]
    changed = Run(run.header, [msgspec.structs.replace(record, findings={"fault_share": share})])
    assert nodes.lines(changed)[0].fault_share is None
    assert named("nodes").chart(changed) is not None


def test_a_part_that_builds_no_list_is_no_way_to_build_one(run: Run) -> None:
    record = run.select("alloc.nodes", operation="malloc")[0]
    part = msgspec.structs.replace(record, point=msgspec.structs.replace(record.point, operation="stores"))
    assert [way.operation for way in nodes.lines(Run(run.header, [part, record]))] == ["malloc"]


def test_a_walk_begins_without_asking_ahead(run: Run) -> None:
    for walk in some(prefetch.distances(run).values()):
        assert walk[0].x == 0


def test_reuse_is_compared_where_both_ways_were_measured(run: Run) -> None:
    fresh_only = Run(run.header, run.select("alloc.reuse", operation="fresh"))
    assert reuse.ratios(fresh_only) == []
    assert all(fresh > swapped for _, fresh, swapped in reuse.ratios(run))
