from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.some import some

from latlab.charts import named
from latlab.run.run import Run
from latlab.topics import poke_histogram, pokes
from latlab.view import distribution
from latlab.view.distribution import normal_share, single_pokes, size_name, slower_than, survival, thinned


def test_a_staircase_begins_with_all_pokes_and_ends_with_the_slowest_one(run: Run) -> None:
    for record in some(single_pokes(run)):
        steps = survival(record)
        assert steps[0][1] == 1.0
        assert record.summary is not None
        assert steps[-1][0] == record.summary.max
        assert steps[-1][1] * record.samples < 1.5


def test_a_staircase_only_goes_down_and_to_the_right(run: Run) -> None:
    for record in some(single_pokes(run)):
        steps = survival(record)
        assert steps == sorted(steps)
        assert [share for _, share in steps] == sorted((share for _, share in steps), reverse=True)


@given(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=3000, unique=True), st.integers(2, 400))
def test_thinning_keeps_both_ends_and_never_invents_a_step(times: list[float], most: int) -> None:
    ordered = sorted(times)
    steps = [(at, (len(ordered) - place) / len(ordered)) for place, at in enumerate(ordered)]
    kept = thinned(steps, most)
    assert len(kept) <= max(most, 2)
    assert kept[0] == steps[0]
    assert kept[-1] == steps[-1]
    assert set(kept) <= set(steps)


def test_the_sizes_are_named_as_the_notebook_names_them(run: Run) -> None:
    assert [size_name(record) for record in single_pokes(run, "read")] == [
        "empty poke",
        "1 kB",
        "1 MB",
        "1 GB",
    ]


def test_half_of_a_normal_lies_above_its_mean(run: Run) -> None:
    record = single_pokes(run)[0]
    assert record.summary is not None
    assert record.summary.mean is not None
    assert normal_share(record, record.summary.mean) == 0.5


def test_a_sixth_of_a_normal_lies_a_deviation_above_its_mean(run: Run) -> None:
    record = single_pokes(run, "read")[-1]
    assert record.summary is not None
    assert record.summary.mean is not None
    assert record.summary.std is not None
    assert normal_share(record, record.summary.mean + record.summary.std) == pytest.approx(0.158655, rel=1e-5)


def test_the_normal_denies_the_slow_pokes_that_were_seen(run: Run) -> None:
    record = single_pokes(run, "read")[-1]
    assert slower_than(record, 10_000) > 0
    assert normal_share(record, 10_000) == 0


def test_the_grey_zone_is_what_an_empty_poke_reads(run: Run) -> None:
    empty = single_pokes(run, "read")[0]
    assert empty.summary is not None
    assert pokes.blind_zone_ns(run) == empty.summary.p99


def test_the_summary_has_the_notebooks_columns_for_both_operations(run: Run) -> None:
    (listing,) = pokes.TOPIC.listings(run)
    table = listing.table
    titles = [column.title for column in table.columns]
    assert titles[:6] == ["array", "operation", "pokes", "mean", "std. deviation", "fraction of zeros"]
    assert len(table.rows) == 8


def test_the_histograms_two_panels_hold_every_poke_once(run: Run) -> None:
    record = poke_histogram.record_of(run)
    assert record is not None
    bins = [*poke_histogram.body_bins(record), *poke_histogram.tail_bins(record)]
    assert sum(inside for _, _, inside, _ in bins) == record.samples


def test_the_histograms_bins_are_whole_steps_of_the_clock(run: Run) -> None:
    record = poke_histogram.record_of(run)
    assert record is not None
    assert record.resolution_ns is not None
    for start, end, _, _ in poke_histogram.body_bins(record):
        steps = (end - start) / record.resolution_ns
        assert abs(steps - round(steps)) < 1e-6


def test_a_histogram_of_pokes_of_no_length_at_all_is_still_drawn(run: Run) -> None:
    empty_pokes = [record for record in run.records if record.point.working_set_bytes == 0]
    assert named("poke_histogram").chart(Run(run.header, empty_pokes)) is not None


def test_pokes_that_took_no_step_of_a_coarse_clock_stand_at_half_a_step(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution, "counts", lambda record: [(0.0005, 900), (1000.0, 100)])
    first = single_pokes(run, "read")[0]
    summary = msgspec.structs.replace(first.summary, p50=0.0, max=1000.0) if first.summary else None
    coarse = msgspec.structs.replace(first, resolution_ns=1000.0, summary=summary)
    assert survival(coarse) == [(500.0, 1.0), (1000.0, 0.1)]
    assert named("pokes").chart(Run(run.header, [coarse])) is not None
