from __future__ import annotations

import msgspec

from latlab.charts import named
from latlab.run.run import Run
from latlab.topics import hierarchy


def test_the_three_page_modes_are_three_curves(run: Run) -> None:
    assert list(hierarchy.lines(run)) == list(hierarchy.SERIES.values())


def test_the_shaded_spans_are_the_brackets_that_the_run_found(run: Run) -> None:
    assert hierarchy.brackets(run)["L1"] == (45056, 53248)
    spec = named("hierarchy").chart(run)
    assert spec is not None
    assert "L3 ends" in spec.to_json()


def test_a_disturbed_point_is_marked_and_the_table_says_so(run: Run) -> None:
    marked = [spot for curve in hierarchy.lines(run).values() for spot in curve if spot.disturbed]
    assert len(marked) == 1
    rows = named("hierarchy").table(run).rows
    assert [row[1] for row in rows if row[-1] == "yes"] == [marked[0].x]


def test_several_draws_of_pages_are_one_point_whose_band_covers_them_all(run: Run) -> None:
    draws = run.select(
        "memory.load.dependent", working_set_bytes=1 << 20, pages="4k", order="random"
    ).measured()
    assert len(draws) == 3
    curve = hierarchy.lines(run)["4 KiB pages, random"]
    spot = next(spot for spot in curve if spot.x == 1 << 20)
    medians = sorted(record.value or 0.0 for record in draws)
    assert spot.value == medians[1]
    assert spot.low <= medians[0]
    assert spot.high >= medians[2]


def test_a_record_whose_proof_failed_is_no_point_of_the_curve(run: Run) -> None:
    first = run.select("memory.load.dependent", kind="batch_mean")[0]
    check = msgspec.structs.replace(first.checks[0], ok=False)
    failed = msgspec.structs.replace(first, checks=(check,))
    assert hierarchy.lines(Run(run.header, (failed,))) == {}
    assert "proof of work failed" in (named("hierarchy").absence(Run(run.header, (failed,))) or "")
