"""What predictions take from a run's figures of the disk, beyond the figure itself."""

from __future__ import annotations

import os
import statistics
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.golden.cases import FILES

from latlab.predict import calibrate, figures, kept, storage
from latlab.predict.cases import Known
from latlab.predict.figures import READ, Depth, Rate
from latlab.predict.job import Options, parse
from latlab.predict.model import Part, Source, Spread
from latlab.predict.place import Limits
from latlab.run.machine import Machine
from latlab.run.run import Run, load

ROOM = Limits(20 << 30, 2 << 30)


@pytest.fixture(scope="module")
def run() -> Run:
    """A quick run on two CPUs, of which one handles the disk's interrupts."""
    return load(FILES["quick"])


def on(run: Run, *cpus: int) -> Run:
    """The same run, where these CPUs handle the interrupts."""
    disks = [{**dict(disk), "interrupt_cpus": list(cpus)} for disk in run.machine.sections("disks")]
    header = msgspec.structs.replace(run.header, machine=Machine({**run.machine, "disks": disks}))
    return Run(header, run.records, run.footer, lines=run.lines)


def means(run: Run, *cpus: int) -> list[float]:
    """Of single blocks at random places, in the rounds on these CPUs."""
    return [
        line.summary.mean
        for line in run.lines
        if line.probe == figures.RANDOM
        and line.cpu in cpus
        and line.summary is not None
        and line.summary.mean
        and line.point.queue_depth == 1
    ]


def of(run: Run) -> float:
    """What a prediction takes for such a block, ns."""
    (record,) = (
        figures.where_programs_wait(run).select(figures.RANDOM, block_bytes=4096, queue_depth=1).measured()
    )
    assert record.summary is not None
    assert record.summary.mean is not None
    return record.summary.mean


def test_a_wait_for_the_disk_is_that_of_the_cpus_it_interrupts(run: Run) -> None:
    for cpu in (0, 1):
        assert min(means(run, cpu)) <= of(on(run, cpu)) <= max(means(run, cpu))
    assert of(on(run, 0)) > 1.3 * of(on(run, 1)), "they differ in this run"


def test_rounds_on_all_cpus_count_where_all_handle_interrupts_or_it_is_unknown(run: Run) -> None:
    assert figures.where_programs_wait(on(run, 0, 1)).records == run.records
    assert figures.where_programs_wait(on(run)).records == run.records


def test_rounds_on_all_cpus_count_for_a_file_which_may_lie_on_another_disk(run: Run) -> None:
    own = on(run, 0)
    settings = msgspec.structs.replace(own.settings, file="/mnt/other/file")
    other = Run(
        msgspec.structs.replace(own.header, settings=settings), own.records, own.footer, lines=own.lines
    )
    assert figures.where_programs_wait(own).records != run.records
    assert figures.where_programs_wait(other).records == run.records


def test_a_figure_without_a_round_there_and_what_is_no_disk_stay(run: Run) -> None:
    placed = figures.where_programs_wait(on(run, 0))
    deep, before = (own.select(figures.RANDOM, queue_depth=8) for own in (placed, run))
    assert [own.value for own in deep] == [own.value for own in before] != []
    for probe in ("memory.*", "kernel.*"):
        assert [own.value for own in placed.select(probe)] == [own.value for own in run.select(probe)]
    assert len(placed.lines) < len(run.lines)


def test_a_stream_starts_slowly_and_a_short_one_is_as_slow_as_small_requests(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = Rate(1 << 20, 4e9, 1e9, Source(READ, "cold"), Spread(), start_s=0.005)
    slow = Rate(64 << 10, 0.5e9, 1e9, Source(READ, "direct"), Spread())
    curves = {"buffered-cold": [fast], "direct": [slow]}
    monkeypatch.setattr(figures, "rates", lambda _run, _probe, path: curves[path])
    known = Known(run, ROOM)

    def starting(size: float, count: float = 1) -> float:
        first, _ = storage.streams(known, size, count=count)
        assert first.name == storage.STARTING
        return first.seconds

    assert starting(4e9) == pytest.approx(0.005)
    assert starting(4e9, count=3) == pytest.approx(0.015)
    assert starting(500e3) == pytest.approx(500e3 / 0.5e9 - 500e3 / 4e9)
    curves["buffered-cold"] = [replace(fast, start_s=0.0)]
    (only,) = storage.streams(known, 4e9)
    assert only.seconds == pytest.approx(1.0)


def test_one_slow_visit_of_a_stream_does_not_move_it() -> None:
    own = [
        Rate(block, 2e9, 1e8, Source(READ, str(block)), Spread(), each=(4e9, 3.9e9, 0.9e9))
        for block in (64 << 10, 1 << 20)
    ]
    pooled = figures.pooled(own, 16 << 10)
    assert pooled is not None
    assert pooled.rate == statistics.median(own[0].each)


def test_between_two_sizes_a_call_costs_a_part_of_its_own_and_one_of_each_byte() -> None:
    def rate(block: int, seconds: float) -> Rate:
        return Rate(block, block / seconds, 1.0, Source(READ, ""), Spread())

    curve = [rate(4096, 60e-6), rate(65536, 120e-6)]
    found = figures.at_block(curve, 8192)
    assert 8192 / found.rate == pytest.approx(60e-6 + 60e-6 * 4096 / 61440)


def test_a_new_file_takes_longer_than_one_that_is_overwritten() -> None:
    known = Known(load(FILES["synthetic"]), ROOM)
    own = figures.new_files(known.run)
    assert own is not None
    job = parse(["write", "500MB"], Options(block=1 << 20), lambda _: (0, 0))
    into, new = storage.written(job, known)
    assert (into.name, new.name, new.resource) == (storage.TO_CACHE, storage.NEW, "cpu")
    over = figures.best_block(storage._overwriting(known))
    assert new.seconds == pytest.approx(500e6 / own.rate - 500e6 / over.rate)


def test_of_each_size_the_deepest_measured_depth_counts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def depth(size: int, depth: int, seconds: float) -> Depth:
        return Depth(size, depth, Part("", seconds, Source(figures.RANDOM, ""), Spread()))

    own = [depth(4096, 1, 60e-6), depth(4096, 8, 12e-6), depth(4096, 16, 9e-6), depth(65536, 4, 50e-6)]
    monkeypatch.setattr(figures, "depths", lambda _run, _probe, _name: own)
    found = storage.at_depth(Known(run, ROOM), figures.RANDOM, "", 8192, 8)
    assert found.seconds == pytest.approx(12e-6 + (50e-6 - 12e-6) * 4096 / 61440)


def test_each_job_of_a_calibration_finds_no_file_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []

    def run_it(folder: Path) -> None:
        found.append((folder / "written").exists())
        (folder / "written").write_bytes(b"x")

    kind = calibrate.Kind("write", ("write", "1MB"), Options(), lambda _: None, run_it)
    monkeypatch.setattr(calibrate, "_kinds", lambda: [kind])
    monkeypatch.setattr(calibrate, "_lay_out", lambda _: None)
    monkeypatch.setattr(calibrate, "newest", lambda _probes, _run: load(FILES["standard"]))
    monkeypatch.setattr(kept, "keep", lambda *_, **__: tmp_path)
    said: list[str] = []
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    calibrate.calibrate(str(tmp_path), None, said.append)
    assert found == [False] * 3
    assert not any("load" in line for line in said)
    monkeypatch.setattr(os, "getloadavg", lambda: (64.0, 0.0, 0.0))
    calibrate.calibrate(str(tmp_path), None, said.append)
    assert "load 64.0" in said[-1]


def test_memory_that_is_taken_into_use_is_given_back() -> None:
    calibrate.in_use(0)
    before = _resident()
    calibrate.in_use(64 << 20)
    assert _resident() - before < 32 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
