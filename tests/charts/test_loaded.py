from __future__ import annotations

import msgspec

from latlab.charts import loaded
from latlab.run.run import Run


def test_every_line_begins_idle_and_ascends_in_load(run: Run) -> None:
    found = loaded.lines(run)
    assert list(found) == ["100 % reads, 3 threads", "75 % reads, 3 threads", "50 % reads, 3 threads"]
    for curve in found.values():
        assert curve[0].load == 0
        assert [point.load for point in curve] == sorted(point.load for point in curve)
        assert loaded.idle_ns(run) == curve[0].value


def test_the_99th_percentile_stands_where_there_are_windows_enough(run: Run) -> None:
    points = next(iter(loaded.lines(run).values()))
    assert points[0].p99 is None
    assert all(point.p99 is not None and point.p99 > point.value for point in points[1:])


def test_a_99th_percentile_below_the_median_is_none(run: Run) -> None:
    low = [
        msgspec.structs.replace(record, summary=msgspec.structs.replace(record.summary, p99=0.5))
        for record in run.select("memory.loaded", kind="batch_mean")
        if record.summary is not None
    ]
    curves = loaded.lines(Run(run.header, low))
    assert {point.p99 for curve in curves.values() for point in curve} == {None}


def test_a_load_that_is_not_known_is_no_point(run: Run) -> None:
    records = [
        msgspec.structs.replace(record, findings={"load_bytes_per_s": "much"})
        for record in run["memory.loaded"]
    ]
    blind = Run(run.header, records)
    assert loaded.lines(blind) == {}
    assert loaded.absence(blind) == "only memory without load was measured"


def test_a_knee_is_marked_only_on_a_line_that_is_drawn(run: Run) -> None:
    assert [knee.series for knee in loaded.knees(run)] == list(loaded.lines(run))
    derived = run.select("memory.loaded", kind="derived")[0]
    other = {
        "curves": [{"read_percent": 33, "threads": 9, "knee": {"load_bytes_per_s": 1e9, "latency_ns": 9.0}}]
    }
    changed = [
        *run.select("memory.loaded", kind="batch_mean"),
        msgspec.structs.replace(derived, findings=other),
    ]
    assert loaded.knees(Run(run.header, changed)) == []
    assert "No knee was found" in loaded.alt_text(Run(run.header, changed))


def test_windows_that_lost_their_cpu_do_not_press_the_curves_flat(run: Run) -> None:
    records = list(run["memory.loaded"])
    last = records[-2]
    assert last.summary is not None
    slow = msgspec.structs.replace(last, summary=msgspec.structs.replace(last.summary, p99=4e6))
    drawn = loaded.chart(Run(run.header, [*records[:-2], slow]))
    assert drawn is not None
    assert drawn.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"][1] < 1000
