"""Transfers: speed-up under its staircase, goodput with a knee, phases with the model."""

from __future__ import annotations

import msgspec
import pytest
from tests.some import some

from latlab.charts import Chart, named
from latlab.run.run import Run
from latlab.topics import network_concurrency, network_phases, network_workers, transfers

CHARTS: tuple[Chart, ...] = tuple(map(named, ("network_workers", "network_concurrency", "network_phases")))


def changed(run: Run, **findings: object) -> Run:
    """The run with other conclusions about transfers."""
    records = [
        msgspec.structs.replace(record, findings={**(record.findings or {}), **findings})
        if (record.probe, record.kind) == ("network.transfer", "derived")
        else record
        for record in run.records
    ]
    return Run(run.header, records)


def test_ten_files_make_a_staircase() -> None:
    assert [network_workers.ceiling(workers) for workers in (1, 5, 6, 9, 10)] == [1, 5, 5, 5, 10]


def test_a_speed_up_stands_under_its_staircase(run: Run) -> None:
    drawn = named("network_workers").chart(run)
    assert drawn is not None
    rows = {
        name: [row.number("speed_up") or 0.0 for row in own]
        for name, own in network_workers.sets(run).items()
    }
    assert "100 KiB, new connections, emulated path" in rows
    assert all(value <= 10 for values in rows.values() for value in values)
    assert "6 workers" not in named("network_workers").alt_text(run)
    assert "4.85 with 6" in named("network_workers").alt_text(run)


def test_every_sweep_has_its_knee(run: Run) -> None:
    found = network_concurrency.sweeps(run)
    assert next(iter(found)) == "100 KiB, new connections, emulated path"
    for sweep in found.values():
        assert sweep.knee in {int(spot.x) for spot in sweep.goodput}
    assert "knee at" in named("network_concurrency").alt_text(run)
    verdicts = {row[-1] for row in named("network_concurrency").table(run).rows}
    assert {"slow-start-bound", "link-bound"} <= verdicts


def test_phases_add_up_and_the_model_stands_beside_the_emulated_path_only(run: Run) -> None:
    drawn = network_phases.drawn(network_phases.singles(run))
    assert set(drawn) == {"emulated", "loopback"}
    for path, own in drawn.items():
        for one in some(own):
            assert sum(one.phases.values()) == pytest.approx(one.time_ns, rel=0.02)
            assert (one.model_ns is not None) == (path == "emulated")


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.id)
def test_conclusions_that_are_damaged_are_not_drawn(run: Run, chart: Chart) -> None:
    for bad in (None, 3, "x", [1, None], [{"path": "\x1b[2J"}], [{"path": "loopback", "file_bytes": -1}]):
        broken = changed(run, ten_files=bad, knees=bad, singles=bad)
        assert chart.chart(broken) is None
        assert chart.absence(broken)


def test_what_is_no_figure_leaves_its_neighbours(run: Run) -> None:
    rows = [dict(row) for row in transfers.rows(run, "ten_files")]
    rows[0]["speed_up"] = float("inf")
    rows[1]["interval"] = [5, 4]
    assert named("network_workers").chart(changed(run, ten_files=rows)) is not None


def test_the_path_is_named_as_its_records_do(run: Run) -> None:
    assert transfers.route_words(run, "emulated").startswith("emulated: 20 ms round trip")
    assert not transfers.route_words(run, "loopback")
