"""The rungs of a run: what was measured, what was not, and never anything else."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from tests.some import some

from latlab.run.ladder import ladder
from latlab.run.model import Check, Record
from latlab.run.run import Run
from latlab.run.rung import Rung

Drop = Callable[[Callable[[Record], bool]], Run]
Change = Callable[..., Run]


def rungs(run: Run) -> dict[str, Rung]:
    return {rung.key: rung for rung in ladder(run)}


def is_curve(record: Record) -> bool:
    return record.probe == "memory.load.dependent"


def is_derived(record: Record) -> bool:
    return is_curve(record) and record.kind == "derived"


def test_the_rungs_stand_from_the_core_outwards(run: Run) -> None:
    keys = [rung.key for rung in ladder(run)]
    assert keys[:5] == ["L1", "L2", "L3", "RAM", "RAM+TLB"]
    levels = [rung.key for rung in ladder(run) if rung.group == "levels"]
    assert keys[: len(levels)] == levels
    assert all(key.startswith("poke:") for key in levels[5:])


def test_each_level_has_its_latency_with_an_interval_that_holds_it(run: Run) -> None:
    for rung in some((rung for rung in ladder(run) if rung.measured and rung.interval is not None), 10):
        assert rung.interval is not None
        assert rung.latency_p50_ns is not None
        assert rung.interval[0] <= rung.latency_p50_ns <= rung.interval[1], rung.key


def test_latencies_rise_from_rung_to_rung(run: Run) -> None:
    latencies = [rung.latency_p50_ns or 0.0 for rung in ladder(run)[:5]]
    assert latencies == sorted(latencies)


def test_a_size_that_the_cpu_reports_and_the_curve_confirms_is_shown_alone(run: Run) -> None:
    assert rungs(run)["L1"].size_text == "48 KiB"
    assert rungs(run)["L2"].size_text == "1 MiB"


def test_a_cache_that_answers_for_less_than_it_reports_is_shown_as_a_part_of_it(run: Run) -> None:
    assert rungs(run)["L3"].size_text == "10–14 of 32 MiB"


def test_where_a_level_ends_the_next_one_has_not_begun(run: Run, without: Drop) -> None:
    end = run.levels[0].end_bytes
    assert end is not None
    assert end.high is not None
    curve = [record for record in run.records if is_curve(record) and record.point.order == "page-local"]
    at_end = msgspec.structs.replace(curve[0].point, working_set_bytes=int(end.high))
    left = without(lambda record: is_curve(record) and not is_derived(record))
    found = rungs(Run(run.header, [*left.records, msgspec.structs.replace(curve[0], point=at_end)]))
    assert (found["L1"].path, found["L2"].path) == ("", "")


def test_a_shared_cache_is_a_range_with_its_reason(run: Run) -> None:
    rung = rungs(run)["L3"]
    assert rung.is_range
    assert "shared" in rung.note


def test_a_quantile_of_window_means_is_labelled_as_that(run: Run) -> None:
    tail = rungs(run)["L1"].tail
    assert tail is not None
    assert tail.kind == "window means"
    assert tail.ops_per_sample > 1


def test_window_means_too_few_for_a_rank_give_the_highest_rank_that_they_allow_and_say_why(run: Run) -> None:
    rung = rungs(run)["L1"]
    assert rung.tail is not None
    assert rung.tail.quantile == "p90"
    assert rung.refused == "p99.9: 30 samples, needs 3,688"


def test_a_tail_of_single_accesses_stands_only_where_it_is_above_the_instruments_own(run: Run) -> None:
    found = rungs(run)
    kinds = {key: rung.tail.kind for key, rung in found.items() if rung.tail}
    assert kinds["RAM+TLB"] == "single accesses"
    # A poke of 1 KB reads what an empty region reads: that is the clock, not L1.
    assert kinds["L1"] == "window means"


def test_single_accesses_say_what_the_instrument_added(run: Run) -> None:
    tail = rungs(run)["RAM+TLB"].tail
    assert tail is not None
    assert tail.note == "includes 22 ns of timer overhead"


def test_bandwidth_is_read_at_the_levels_own_size_by_one_thread(run: Run) -> None:
    found = rungs(run)
    assert "24 KiB" in found["L1"].bandwidth_point
    assert "1 thread" in found["L1"].bandwidth_point
    assert "1 GiB" in found["RAM"].bandwidth_point
    assert (found["L1"].bandwidth or 0) > (found["RAM"].bandwidth or 0)


def test_an_amount_that_a_level_cannot_hold_has_no_time_there(run: Run) -> None:
    found = rungs(run)
    assert found["L1"].seconds_1MiB is None
    assert found["L3"].seconds_1MiB is not None
    assert found["L3"].seconds_1GiB is None
    ram = found["RAM"]
    assert ram.bandwidth is not None
    assert ram.seconds_1GiB == pytest.approx(2**30 / ram.bandwidth)


def test_the_cost_in_l1_hits_is_the_ratio_of_latencies(run: Run) -> None:
    found = rungs(run)
    assert found["L1"].l1_hits == 1
    ratio = (found["RAM"].latency_p50_ns or 0) / (found["L1"].latency_p50_ns or 1)
    assert found["RAM"].l1_hits == pytest.approx(ratio)


def test_the_textbook_stands_beside_with_its_source(run: Run) -> None:
    found = rungs(run)
    assert (found["L1"].textbook_ns, found["L2"].textbook_ns, found["RAM"].textbook_ns) == (0.5, 7.0, 100.0)
    assert "2012" in found["L1"].textbook_source
    assert found["L3"].textbook_ns is None
    assert found["L3"].textbook_source == ""


def test_a_run_without_the_curve_has_the_machines_levels_without_figures(without: Drop) -> None:
    found = rungs(without(is_curve))
    for key in ("L1", "L2", "L3", "RAM", "RAM+TLB"):
        assert not found[key].measured
        assert found[key].note == "not measured: the run ended before it"
        assert found[key].bandwidth is None or key == "RAM"
    assert found["L3"].size_text == "32 MiB"


def test_a_run_that_was_cut_short_before_the_levels_were_concluded_says_so(without: Drop) -> None:
    run = without(lambda record: is_derived(record) or (is_curve(record) and record.error is not None))
    rung = rungs(run)["L2"]
    assert not rung.measured
    assert rung.note == "not measured: the latency curve was not finished"


def test_levels_that_another_probe_concluded_are_no_rungs(run: Run) -> None:
    findings = {"levels": [{"name": "L1", "working_set_bytes": 24576, "bytes_per_s": 1.0, "share": 0.5}]}
    own = next(record for record in run.records if is_derived(record))
    other = msgspec.structs.replace(own, probe="memory.bandwidth", findings=findings)
    for records in ([*run.records, other], [other, *run.records]):
        with_other = Run(run.header, records, run.footer)
        assert ladder(with_other) == ladder(run)
        assert with_other.levels == run.levels


def test_a_record_whose_proof_failed_gives_no_figure(changed: Change, run: Run) -> None:
    failed = (Check(name="checksum", ok=False, detail="the sum differs"),)
    before = rungs(run)["RAM"].bandwidth
    changed_run = changed(lambda record: record.probe == "memory.bandwidth", checks=failed)
    assert before is not None
    assert rungs(changed_run)["RAM"].bandwidth is None


@pytest.mark.parametrize("key", ["RAM", "RAM+TLB"])
def test_the_slowest_figure_of_a_small_machine_is_not_called_ram(run: Run, key: str) -> None:
    derived = next(record for record in run.records if is_derived(record))
    caches = [level for level in derived.findings["levels"] if level["name"] in {"L1", "L2", "L3"}]
    figures = {"levels": caches, "ram": {"page_local_ns": 113.0, "random_ns": 182.0}}
    kept = [
        record
        for record in run.records
        if not is_curve(record)
        or (record.kind == "batch_mean" and (record.point.working_set_bytes or 0) <= 32 << 20)
    ]
    small = Run(run.header, [*kept, msgspec.structs.replace(derived, findings=figures)], run.footer)
    rung = rungs(small)[key]
    assert not rung.measured
    assert "the largest working set was 32 MiB" in rung.note


def test_a_plateau_that_was_found_to_be_ram_is_ram_from_where_it_begins(run: Run, changed: Change) -> None:
    findings = next(record.findings for record in run.records if is_derived(record))
    levels = [level for level in findings["levels"] if level["name"] in {"L1", "L2", "L3"}]
    endless = [*levels[:2], {**levels[2], "upper_end_bytes": 1 << 40}]
    assert not rungs(changed(is_derived, findings={**findings, "levels": endless}))["RAM"].measured
    named = [*endless, {"name": "RAM", "from_bytes": 16 << 20}]
    assert rungs(changed(is_derived, findings={**findings, "levels": named}))["RAM"].measured


def test_a_cache_that_is_only_reported_hides_no_bandwidth_of_the_ram_that_the_curve_shows(
    run: Run, changed: Change
) -> None:
    findings = next(record.findings for record in run.records if is_derived(record))
    levels = [level for level in findings["levels"] if level["name"] != "RAM"]
    hosts = [*levels[:2], {**levels[2], "upper_end_bytes": 480 << 20}]
    assert rungs(changed(is_derived, findings={**findings, "levels": hosts}))["RAM"].bandwidth is None
    seen = [*hosts, {"name": "RAM", "from_bytes": 64 << 20}]
    found = rungs(changed(is_derived, findings={**findings, "levels": seen}))["RAM"]
    assert found.bandwidth == rungs(run)["RAM"].bandwidth
    late = [*hosts, {"name": "RAM", "from_bytes": 512 << 20}]
    assert rungs(changed(is_derived, findings={**findings, "levels": late}))["RAM"].bandwidth is None


def between(low: int, high: int) -> dict[str, int]:
    return {"value": low, "low": low, "high": high}


def test_a_curve_that_only_climbs_contradicts_no_reported_size(run: Run, changed: Change) -> None:
    findings = next(record.findings for record in run.records if is_derived(record))
    levels = [dict(level) for level in findings["levels"]]
    levels[1] |= {"end_bytes": between(3 << 20, 24 << 20), "to_bytes": 1 << 20, "upper_end_bytes": 24 << 20}
    found = rungs(changed(is_derived, findings={**findings, "levels": levels}))["L2"]
    assert found.size_text == "1 MiB"
    assert "its end was not found: the curve climbs from 3 MiB to 24 MiB" in found.note


def test_random_accesses_to_little_are_not_called_ram_where_the_time_ran_out(
    run: Run, without: Callable[..., Run]
) -> None:
    def large(record: Record) -> bool:
        return (
            is_curve(record)
            and record.point.order == "random"
            and (record.point.working_set_bytes or 0) > 1 << 20
        )

    found = rungs(without(large))
    assert found["RAM"].measured
    assert not found["RAM+TLB"].measured
    assert "may be answered by the last cache" in found["RAM+TLB"].note


@pytest.mark.parametrize(("flat", "size"), [(3 << 20, "3–12 MiB, not 2 MiB"), (1 << 20, "2 MiB")])
def test_a_cache_that_answers_for_more_than_it_reports_is_not_a_part_of_it_where_it_is_as_fast_there(
    run: Run, changed: Change, flat: int, size: str
) -> None:
    findings = next(record.findings for record in run.records if is_derived(record))
    levels = [dict(level) for level in findings["levels"]]
    levels[1] |= {
        "end_bytes": between(3 << 20, 12 << 20),
        "to_bytes": flat,
        "upper_end_bytes": 16 << 20,
        "reported_bytes": 2 << 20,
    }
    found = rungs(changed(is_derived, findings={**findings, "levels": levels}))
    assert found["L2"].size_text == size


def test_bounds_of_a_cache_are_its_sizes_and_of_ram_the_interval_of_one_median(run: Run) -> None:
    found = rungs(run)
    assert found["L2"].interval_kind == "spread over its sizes"
    assert found["RAM"].interval_kind == "95 % interval"


def test_a_poke_that_the_instrument_drowns_has_a_bound_and_no_tail_of_its_own(run: Run) -> None:
    drowned, clear = (rungs(run)[f"poke:{size}:read"].tail for size in (1000, 10**9))
    assert drowned is not None
    assert drowned.is_bound
    assert clear is not None
    assert not clear.is_bound


def test_a_poke_that_did_not_fit_says_what_it_needs(run: Run) -> None:
    rung = rungs(run)["poke:10000000000:read"]
    assert not rung.measured
    assert "needs 10 GB" in rung.note


def test_the_body_of_a_poke_comes_from_batches_and_its_tail_from_single_ones(run: Run) -> None:
    rung = rungs(run)["poke:1000000000:read"]
    assert rung.ops_per_sample > 1
    assert rung.tail is not None
    assert rung.tail.kind == "single accesses"


def test_a_poke_without_batches_that_is_as_short_as_the_instrument_has_no_figure(
    without: Callable[..., Run],
) -> None:
    run = without(lambda record: record.probe == "memory.poke" and record.kind == "batch_mean")
    short, far = (rungs(run)[f"poke:{size}:read"] for size in (1_000, 1_000_000_000))
    assert not short.measured
    assert "shorter than the timer overhead" in short.note
    assert far.measured, "one that is far above it has"


def test_the_empty_poke_is_named_as_overhead(run: Run) -> None:
    assert "timer overhead" in rungs(run)["poke:0:read"].note


def test_flags_of_the_records_behind_a_rung_are_kept(changed: Change) -> None:
    run = changed(lambda record: is_curve(record) and record.kind == "batch_mean", flags=("disturbed",))
    assert "disturbed" in rungs(run)["L2"].flags


@pytest.mark.parametrize(
    "findings",
    [
        {"levels": "none", "ram": 3},
        {
            "levels": [
                3,
                None,
                {"name": "L1", "end_bytes": {"value": 1.0, "low": "a"}, "latency_ns": "fast"},
            ],
            "ram": [],
        },
        {"levels": [{}], "ram": {"page_local_ns": float("1e400")}},
    ],
)
def test_findings_of_another_shape_are_no_figures(changed: Change, findings: object) -> None:
    for rung in some(ladder(changed(is_derived, findings=findings))):
        assert rung.latency_p50_ns is None or rung.latency_p50_ns > 0
