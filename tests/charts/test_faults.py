from __future__ import annotations

import json

import msgspec
import pytest
from tests.some import some

from latlab.charts import named
from latlab.run.run import Run
from latlab.topics import faults


def test_kinds_stand_in_their_order_with_huge_pages_last(run: Run) -> None:
    names = [kind.name for kind in faults.kinds(run)]
    assert names[0] == "first write, 4 KiB"
    assert names[-1] == "first write, 2 MiB"


def test_the_modes_that_were_found_are_marked_with_their_share(run: Run) -> None:
    first = faults.kinds(run)[0]
    assert [round(mode.share, 2) for mode in first.modes] == [0.86, 0.14]
    assert "14 % around 5.40 µs" in named("faults").alt_text(run)


def test_a_quantile_with_too_few_faults_is_not_drawn(run: Run) -> None:
    huge = faults.kinds(run)[-1]
    assert list(faults.quantiles(huge.record)) == ["p50", "p99"]


def test_a_hill_is_highest_where_most_faults_are(run: Run) -> None:
    for kind in some(faults.kinds(run)):
        hills = faults.hills(kind.record)
        highest = max(hills, key=lambda hill: hill[1])
        assert highest[1] == 1.0
        assert kind.record.value is not None
        assert highest[0] == pytest.approx(kind.record.value, rel=0.3)
        assert hills[0][1] == hills[-1][1] == 0.0


def test_no_text_of_a_run_file_reaches_an_expression(run: Run) -> None:
    record = faults.kinds(run)[0].record
    bad = "'];alert(1);['"
    point = msgspec.structs.replace(record.point, pages=bad, size_bytes=None)
    drawn = named("faults").chart(Run(run.header, [msgspec.structs.replace(record, point=point)]))
    assert drawn is not None
    assert "alert" not in json.dumps(drawn.to_dict())


def test_without_conclusions_the_median_is_marked(run: Run) -> None:
    drawn = named("faults").chart(Run(run.header, run.select("vm.fault", kind="per_op")))
    assert drawn is not None
    assert "1.74 µs" in json.dumps(drawn.to_dict(), ensure_ascii=False)


def test_modes_are_those_of_faults_of_the_same_size(run: Run) -> None:
    derived = run.select("vm.fault", kind="derived")[0]
    one = {"operation": "first-write", "pages": "4k", "modes": [{"p50_ns": 9e3, "share": 1.0}]}
    other = msgspec.structs.replace(derived, findings={"kinds": [{**one, "size_bytes": 65536}]})
    changed = Run(run.header, [*run.select("vm.fault", kind="per_op"), other])
    assert faults.kinds(changed)[0].modes == ()
