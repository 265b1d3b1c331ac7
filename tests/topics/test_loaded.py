from __future__ import annotations

import dataclasses
import re

import msgspec
import pytest

from latlab.charts import named
from latlab.findings import MemoryLoaded, MemoryLoadedCurve
from latlab.run.run import Run
from latlab.topics import loaded
from latlab.topics.loaded import CHART, TOPIC, Curves
from latlab.view import vega
from latlab.view.figure import Absent, Measured
from latlab.view.plot import Ends

ENDS = Ends(0.0, 1e12, 0.0, 1e6)


def of(run: Run) -> Curves:
    found = CHART.of(run)
    assert isinstance(found, Curves)
    return found


def test_every_line_begins_idle_and_ascends_in_load(run: Run) -> None:
    found = of(run)
    assert list(found.points) == ["100 % reads, 3 threads", "75 % reads, 3 threads", "50 % reads, 3 threads"]
    for curve in found.points.values():
        assert curve[0].load.value == 0
        assert [point.load.value for point in curve] == sorted(point.load.value for point in curve)
        assert found.idle == curve[0].latency


def test_the_99th_percentile_stands_where_there_are_windows_enough(run: Run) -> None:
    idle, *points = next(iter(of(run).points.values()))
    assert isinstance(idle.p99, Absent)
    assert all((point.p99.value or 0.0) > point.latency.value for point in points)


def test_a_99th_percentile_below_the_median_is_none(run: Run) -> None:
    low = [
        msgspec.structs.replace(record, summary=msgspec.structs.replace(record.summary, p99=0.5))
        for record in run.select("memory.loaded", kind="batch_mean")
        if record.summary is not None
    ]
    curves = of(Run(run.header, low)).points
    assert {point.p99.value for curve in curves.values() for point in curve} == {None}


def test_a_load_that_is_not_known_is_no_point(run: Run) -> None:
    records = [
        msgspec.structs.replace(record, findings={"load_bytes_per_s": "much"})
        for record in run["memory.loaded"]
    ]
    assert CHART.of(Run(run.header, records)) == Absent("only memory without load was measured")


def test_a_knee_is_marked_only_on_a_line_that_is_drawn(run: Run) -> None:
    assert list(of(run).knees) == list(of(run).points)
    derived = run.select("memory.loaded", kind="derived")[0]
    other = {
        "curves": [{"read_percent": 33, "threads": 9, "knee": {"load_bytes_per_s": 1e9, "latency_ns": 9.0}}]
    }
    changed = Run(
        run.header,
        [
            *run.select("memory.loaded", kind="batch_mean"),
            msgspec.structs.replace(derived, findings=other),
        ],
    )
    assert of(changed).knees == {}
    assert "No knee was found" in named("loaded").alt_text(changed)


def test_windows_that_lost_their_cpu_do_not_press_the_curves_flat(run: Run) -> None:
    records = list(run["memory.loaded"])
    last = records[-2]
    assert last.summary is not None
    slow = msgspec.structs.replace(last, summary=msgspec.structs.replace(last.summary, p99=4e6))
    drawn = vega.drawn(loaded.plot(of(Run(run.header, [*records[:-2], slow]))))
    assert drawn is not None
    assert drawn.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"][1] < 1000


def test_without_a_knee_nothing_is_said_of_one(run: Run) -> None:
    reported, alone = (loaded.prose(found).sentences for found in (of(run), of(run)._replace(knees={})))
    assert len(reported) == 2
    assert alone == reported[:1]


def test_what_is_not_known_idle_is_not_compared(run: Run) -> None:
    busy = of(run)
    busy = busy._replace(points={name: own[1:] for name, own in busy.points.items()})
    assert loaded.prose(busy).sentences == ()
    assert not [mark for mark in loaded.plot(busy).marks(ENDS) if mark.kind == "rule"]


def test_a_disturbed_end_is_said_and_has_no_factor(run: Run) -> None:
    found = of(run)
    (name, points), *_ = found.points.items()
    last = points[-1]._replace(latency=dataclasses.replace(points[-1].latency, disturbed=True))
    first, doubt = loaded.prose(found._replace(points={name: [*points[:-1], last]})).sentences
    assert "times as long" not in first
    assert doubt.startswith("Other programs used the CPUs meanwhile")


def curve(idle_ns: float | None, saturated_ns: float, threads: int = 3) -> MemoryLoadedCurve:
    return MemoryLoadedCurve(
        read_percent=100,
        threads=threads,
        idle_ns=idle_ns,
        saturated_ns=saturated_ns,
        peak_bytes_per_s=70e9,
        note="no knee",
    )


@pytest.mark.parametrize(
    ("idle_ns", "saturated_ns", "reported"),
    [(100.0, 149.0, None), (100.0, 150.0, "1.5"), (None, 342.0, None), (0.0, 342.0, None)],
)
def test_load_is_reported_from_half_as_long_again(
    idle_ns: float | None, saturated_ns: float, reported: str | None
) -> None:
    found = loaded.surprise(MemoryLoaded(curves=(curve(idle_ns, saturated_ns),)))
    assert (found and re.findall(r"([\d.]+) times as long", found.text)) == (reported and [reported])


def test_the_slowest_of_several_curves_is_reported_and_each_note_once(run: Run) -> None:
    found = MemoryLoaded(curves=(curve(100.0, 200.0), curve(100.0, 400.0), curve(100.0, 300.0)))
    slowest = loaded.surprise(found)
    assert slowest is not None
    assert "takes 400 ns instead of 100 ns: 4.0 times as long" in slowest.text
    derived = msgspec.structs.replace(
        run.select("memory.loaded", kind="derived")[0], findings=msgspec.to_builtins(found)
    )
    assert list(TOPIC.evidence_of(Run(run.header, [derived]))) == ["no knee."]


def test_a_point_has_the_range_that_its_rounds_tell(run: Run) -> None:
    (at, *_) = next(iter(of(run).points.values()))
    record = run.select("memory.loaded", kind="batch_mean", threads=0)[0]
    assert at.latency == Measured(record.value or 0.0, "ns", record.interval, record.samples)
