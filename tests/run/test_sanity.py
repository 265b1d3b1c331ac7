"""Rules of plain sense across the probes of a disk: kept by a sound run, each broken by a planted figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from latlab.run import reader
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.run.sanity import Broken, broken, link

Change = Callable[[Record], Record]
READ, RANDOM = "storage.read.sequential", "storage.read.random"
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def run() -> Run:
    """The synthetic run, in which every figure is sound."""
    return reader.read(Path(__file__).resolve().parent.parent / "data" / "run-small.latlab.jsonl")


def changed(run: Run, wanted: Callable[[Record], bool], change: Change) -> Run:
    records = [change(record) if wanted(record) else record for record in run.records]
    return Run(run.header, records, run.footer)


def is_alone(probe: str, *sizes: int) -> Callable[[Record], bool]:
    return lambda record: (
        record.probe == probe
        and record.summary is not None
        and record.point.path == "direct"
        and record.point.queue_depth in {None, 1}
        and (not sizes or record.point.block_bytes in sizes)
    )


def times(factor: float) -> Change:
    def change(record: Record) -> Record:
        summary = record.summary
        assert summary is not None
        assert summary.p50 is not None
        ends = {name: (low * factor, high * factor) for name, (low, high) in summary.intervals.items()}
        between = tuple(end * factor for end in summary.between_blocks or ()) or None
        own = msgspec.structs.replace(
            summary, p50=summary.p50 * factor, intervals=ends, between_blocks=between
        )
        return msgspec.structs.replace(record, summary=own)

    return change


def found(**fields: object) -> Change:
    def change(record: Record) -> Record:
        return msgspec.structs.replace(record, findings={**(record.findings or {}), **fields})

    return change


def on(run: Run, *, hypervisor: str | None = None, **disk: object) -> Run:
    """The run as if it had measured a disk like this."""
    machine = dict(run.header.machine)
    machine["virtualisation"] = {"hypervisor": hypervisor}
    machine["dir"] = {"file_system": {"disk": "sda"}}
    machine["disks"] = [
        {"name": "sda", "partitions": [{"name": "sda1"}], **disk},
        {"name": "sdb", "partitions": [], "link": "SATA 3.0 Gbps", "link_bytes_per_s": 300_000_000},
    ]
    header = msgspec.structs.replace(run.header, machine=type(run.header.machine)(machine))
    return Run(header, run.records, run.footer)


def rules(run: Run) -> set[tuple[str, str]]:
    return {(rule.probe, rule.rule) for rule in broken(run)}


def test_a_sound_run_breaks_none(run: Run) -> None:
    assert broken(run) == ()


def test_random_reads_that_beat_sequential_ones_stop_both(run: Run) -> None:
    rule = "random reads are not faster than sequential ones"
    faster = changed(run, is_alone(RANDOM, 4 * KIB), times(0.2))
    assert rules(faster) == {(RANDOM, rule), (READ, rule)}
    alone = next(record for record in faster.records if is_alone(RANDOM, 4 * KIB)(record))
    deep = next(r for r in faster.records if r.probe == RANDOM and (r.point.queue_depth or 0) > 1)
    stops = [stop for stop in broken(faster) if stop.probe == RANDOM]
    assert all(stop.concerns(alone) and not stop.concerns(deep) for stop in stops)


@pytest.mark.parametrize("factor", [1.0, 0.8])
def test_noise_between_the_two_breaks_nothing(run: Run, factor: float) -> None:
    assert broken(changed(run, is_alone(RANDOM, 4 * KIB), times(factor))) == ()


def test_many_random_reads_at_once_may_do_more_than_one_at_a_time(run: Run) -> None:
    deep = changed(
        run, lambda r: r.probe == RANDOM and (r.point.queue_depth or 0) > 1, found(bytes_per_s=2.5e9)
    )
    assert broken(deep) == ()


def test_a_direct_median_below_what_a_device_needs_stops_its_point(run: Run) -> None:
    fast = changed(run, lambda r: is_alone(RANDOM)(r) or is_alone(READ)(r), times(0.01))
    reported = [rule for rule in broken(fast) if rule.rule == "a direct transfer takes device time"]
    assert {rule.probe for rule in reported} == {RANDOM, READ}
    assert all(rule.point for rule in reported)


def test_a_disk_is_not_faster_than_its_link(run: Run) -> None:
    rule = "the disk is not faster than its link"
    slow_link = on(run, link="SATA 6.0 Gbps", link_bytes_per_s=600_000_000)
    assert (READ, rule) in rules(slow_link)
    assert all(stop.point for stop in broken(slow_link) if stop.rule == rule)
    fast_link = on(run, link="PCIe 16.0 GT/s PCIe x4", link_bytes_per_s=7_876_923_077)
    assert rules(fast_link) == set()


def test_a_link_that_is_not_known_or_only_emulated_breaks_nothing(run: Run) -> None:
    assert link(on(run)) is None
    emulated = on(run, hypervisor="KVM", link="SATA 1.5 Gbps", link_bytes_per_s=150_000_000)
    assert link(emulated) is None
    assert broken(emulated) == ()


def test_links_of_a_device_made_of_others_add_up_when_all_are_known(run: Run) -> None:
    assert link(on(run, made_of=["sdb", "sdb"])) == ("SATA 3.0 Gbps", 600_000_000)
    assert link(on(run, made_of=["sdb", "sdc"])) is None
    assert link(on(run, made_of=["sda1"])) is None, "a circle"


def test_a_disk_is_not_faster_than_memory(run: Run) -> None:
    rule = "the disk is not faster than memory"
    absurd = changed(run, is_alone(READ, MIB), found(bytes_per_s=1e12))
    assert rules(absurd) == {(READ, rule)}


def test_bandwidth_that_is_operations_times_block_size_everywhere_is_one_figure(run: Run) -> None:
    rule = "bandwidth and operations a second are two measurements"
    sizes = (4 * KIB, 64 * KIB, MIB)
    records: dict[int, float] = {size: 1e9 / (55e3 + size) for size in sizes}

    def derive(record: Record) -> Record:
        rate = records[record.point.block_bytes or 0]
        name, value = (
            ("rate_per_s", rate)
            if record.probe == RANDOM
            else ("bytes_per_s", rate * (record.point.block_bytes or 0))
        )
        return found(**{name: value})(record)

    def both(record: Record) -> bool:
        return is_alone(RANDOM, *sizes)(record) or is_alone(READ, *sizes)(record)

    assert rules(changed(run, both, derive)) == {(RANDOM, rule), (READ, rule)}
    near = changed(
        changed(run, both, derive), is_alone(READ, 4 * KIB), found(bytes_per_s=records[4 * KIB] * 4097)
    )
    assert broken(near) == ()


def test_a_point_whose_first_repeats_are_unlike_its_last_stops_itself_only(run: Run) -> None:
    def drift(record: Record) -> Record:
        half = len(record.blocks) // 2
        slower = tuple(
            block if place < half else msgspec.structs.replace(block, p50=block.p50 * 3)
            for place, block in enumerate(record.blocks)
        )
        return msgspec.structs.replace(record, blocks=slower)

    def wanted(record: Record) -> bool:
        point = record.point
        return record.probe == RANDOM and (point.queue_depth, point.block_bytes) == (8, 4 * KIB)

    assert any(wanted(record) for record in run.records)
    (stop,) = broken(changed(run, wanted, drift))
    assert (stop.probe, stop.rule) == (RANDOM, "the first run is like the second")
    assert dict(stop.point)["queue_depth"] == 8


def test_a_rule_that_a_probe_itself_found_broken_names_its_point_or_stops_all(run: Run) -> None:
    point: dict[str, int | str] = {
        "block_bytes": 4 * KIB,
        "queue_depth": 1,
        "path": "direct",
        "engine": "psync",
    }
    entries = [
        {"rule": "one", "holds": False, "detail": "a", "point": point},
        {"rule": "two", "holds": False, "detail": "b"},
        {"rule": "three", "holds": True, "detail": "c"},
    ]
    planted = changed(run, lambda r: r.kind == "derived" and r.probe == RANDOM, found(sanity=entries))
    assert broken(planted) == (
        Broken(RANDOM, "one", "a", tuple(sorted(point.items()))),
        Broken(RANDOM, "two", "b"),
    )
