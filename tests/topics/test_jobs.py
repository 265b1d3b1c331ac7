"""What some jobs would take: by the figures of a run, from the fastest to the slowest repeat."""

from __future__ import annotations

import pytest

from latlab.run.ladder import ladder
from latlab.run.run import Run
from latlab.topics.jobs import Job, jobs
from latlab.topics.storage_blocks import READ, lines


def test_each_job_is_reckoned_from_its_own_figures(run: Run) -> None:
    rungs = {rung.key: rung for rung in ladder(run)}
    reading, files, calls = jobs(run, rungs)
    best = max(lines(run, READ)["cold cache"], key=lambda spot: spot.value)
    assert (reading.low_s, reading.high_s) == (30e9 / best.high, 30e9 / best.low)
    (record,) = run.select("storage.files", engine="psync", operation="write", files=1000)
    assert files.low_s == pytest.approx(min(record.finding("block_means_ns")) * 1e5 / 1e9)
    assert files.high_s == pytest.approx(max(record.finding("block_means_ns")) * 1e5 / 1e9)
    assert (calls.low_s, calls.high_s) == tuple(end * 1e6 / 1e9 for end in rungs["syscall"].interval or ())


def test_a_run_without_their_figures_has_no_jobs(run: Run) -> None:
    assert not list(jobs(Run(run.header, (), run.footer), {}))


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (11.21, 12.64, "11.2–12.6 s"),
        (0.1170, 0.1171, "117 ms"),
        (0.9, 1400.0, "0.9 s – 23 min 20 s"),
        (3600.0, 3600.0, "1 h"),
    ],
)
def test_its_time_is_a_range_where_both_ends_differ(low: float, high: float, told: str) -> None:
    assert Job("waiting", low, high).time == told
