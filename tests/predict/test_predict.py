"""Answers from a kept run: their parts, their cases, and what is refused instead."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.golden.cases import FILES

from latlab.predict import copy as copying
from latlab.predict import figures, files, from_run, read, refuse, transfers, usual, work, write
from latlab.predict.answer import Prediction, Refused, span
from latlab.predict.cases import Known
from latlab.predict.job import Job, Options, parse
from latlab.predict.kept import LEAST_HALF, Calibration
from latlab.predict.place import Limits, Place
from latlab.predict.refuse import refused
from latlab.predict.transfers import waited
from latlab.run.machine import Machine
from latlab.run.run import Run, load
from latlab.view.figure import Absent, Measured

ROOM = Limits(20 << 30, 2 << 30)


@pytest.fixture(scope="module")
def run() -> Run:
    """A standard run of a virtual machine."""
    return load(FILES["standard"])


@pytest.fixture(scope="module")
def quick() -> Run:
    """A quick run."""
    return load(FILES["quick"])


def job(*words: str, **options: Any) -> Job:  # noqa: ANN401 - whatever fields options have
    return parse(words, Options(**options), lambda _: (0, 0))


def predict(own: Job, run: Run, room: Limits, cached: int | None = None) -> Prediction:
    return work.predict(own, Known(run, room, cached))


def why(own: Job, run: Run, here: Machine, place: Place | None = None) -> Refused | None:
    return refused(own, run, here, place, ROOM)


def test_reading_has_an_answer_for_each_state_of_the_page_cache(run: Run) -> None:
    found = predict(job("read", "3GB"), run, ROOM)
    warm, cold = found.branches
    assert "page cache" in warm.when
    assert warm.range.high < cold.range.low
    printed = found.as_json()
    assert printed["answer"] is None
    assert printed["branches"] == [{"if": own.when, "answer": own.as_json()} for own in (warm, cold)]


def test_what_does_not_fit_into_memory_comes_from_the_disk(run: Run) -> None:
    found = predict(job("read", "30GB"), run, ROOM)
    (only,) = found.branches
    assert only.parts[0].name == "reading from the disk"
    assert any("more than the page cache holds" in note for note in found.notes)
    assert only.extrapolated


def test_what_of_a_file_is_cached_is_read_from_the_cache(run: Run) -> None:
    (only,) = predict(job("read", "3GB"), run, ROOM, cached=1_000_000_000).branches
    assert [part.name for part in only.parts] == ["reading from the page cache", "reading from the disk"]
    (whole,) = predict(job("read", "3GB", cache="cold"), run, ROOM).branches
    assert only.parts[1].seconds == pytest.approx(whole.parts[0].seconds * 2 / 3)


def test_seconds_grow_with_bytes(run: Run) -> None:
    one, ten = (predict(job("read", size, cache="cold"), run, ROOM).branches[0] for size in ("1GB", "10GB"))
    assert ten.range.middle == pytest.approx(10 * one.range.middle)


def test_larger_blocks_past_the_cache_are_a_gain_that_is_said(run: Run) -> None:
    (gain,) = predict(job("read", "100MB", direct=True, block=65536), run, ROOM).gains
    assert gain.how == "--block 1MiB"
    assert gain.factor > 2


def test_writing_waits_for_the_disk_beyond_the_dirty_limit(run: Run) -> None:
    (little,) = predict(job("write", "1GB"), run, ROOM).branches
    assert [part.name for part in little.parts] == ["writing into the page cache"]
    found = predict(job("write", "9GB"), run, ROOM)
    names = [part.name for branch in found.branches for part in branch.parts]
    assert names == ["writing into the page cache", "writing to the disk"]


def test_a_job_whose_figure_is_missing_is_refused_with_what_measures_it(run: Run) -> None:
    bare = Run(run.header, (), run.footer)
    for own, probe in (
        (job("read", "1GB"), "storage.read.sequential"),
        (job("write", "1GB"), "storage.write.sequential"),
        (job("files", "10", "1KB"), "storage.files"),
        (job("scan", "1GB"), "memory.bandwidth"),
        (job("scan", "1GB", random=True), "memory.load.dependent"),
        (job("syscalls", "10"), "kernel.syscall"),
        (job("requests", "10", rtt_s=0.01), "network.transfer"),
    ):
        found = predict(own, bare, ROOM)
        assert found.branches == ()
        assert found.refused is not None
        assert found.refused.lifted_by == f"latlab predict --measure {own.asked}"
        assert probe in work.probes_of(own)


def test_a_path_of_which_nobody_said_anything_is_asked_for(run: Run) -> None:
    for own in (job("requests", "10"), job("transfers", "10", "1MB", rtt_s=0.08)):
        found = predict(own, run, ROOM)
        assert found.refused is not None
        assert "is not given" in found.refused.why


def test_kept_connections_wait_for_fewer_round_trips(run: Run) -> None:
    new, kept = predict(job("requests", "100", rtt_s=0.08), run, ROOM).branches
    assert new.range.middle == pytest.approx(100 * 2 * 0.08, rel=0.05)
    assert kept.range.middle == pytest.approx(100 * 0.08, rel=0.05)


def test_memory_that_is_not_there_is_not_scanned(run: Run) -> None:
    for own, said in (
        (job("scan", "80GB"), "does not fit into memory"),
        (job("read", "80GB", cache="cached"), "cannot be in the page cache"),
    ):
        found = why(own, run, changed(run))
        assert found is not None
        assert said in found.why


def test_the_functions_return_figures(run: Run) -> None:
    cold, warm = read(run, "3 GB"), read(run, "3 GB", cached=True)
    assert isinstance(copying(run, "3 GB", cached=True), Measured)
    assert isinstance(transfers(run, 9, "1 MB", rtt_s=0.02, rate=1e7), Measured)
    assert isinstance(files(run, 1000, "10 kB", reading=True), Measured | Absent)
    assert isinstance(cold, Measured)
    assert isinstance(warm, Measured)
    assert warm.high < cold.low
    assert isinstance(write(Run(run.header, (), run.footer), "3 GB"), Absent)


# ------------------------------------------------------------------------------------------------ the traps

Change = Callable[[dict[str, Any]], object]


def changed(run: Run, *changes: Change) -> Machine:
    """The machine of a run after something of it changed."""
    fields = copy.deepcopy(dict(run.machine._fields))
    for change in changes:
        change(fields)
    return Machine(fields)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["cpu"].update(model_name="Another"), "another machine"),
        (lambda m: m["cpu"].update(logical_cpus=64), "another machine"),
        (lambda m: m["os"].update(kernel_release="5.4.0"), "changed since the run (kernel"),
        (lambda m: m["cpu"].update(power_source="battery"), "power source"),
        (lambda m: m["cpu"].update(governor="powersave"), "frequency governor"),
        (lambda m: m["limits"]["cgroup"].update(memory_limit_bytes=1 << 28), "cgroup's memory limit"),
        (lambda m: m["dir"]["file_system"].update(kind="tmpfs", in_memory=True), "memory, not a disk"),
        (lambda m: m["dir"]["file_system"].update(kind="nfs4", network=True), "a server or a program"),
        (lambda m: m["dir"]["file_system"].update(kind="fuse.sshfs"), "a server or a program"),
        (lambda m: m["dir"]["file_system"].update(source="/dev/other"), "another file system"),
        (lambda m: m["dir"]["file_system"].update(available_bytes=1000), "no room"),
    ],
)
def test_what_makes_an_answer_worthless_is_said_instead(run: Run, change: Change, said: str) -> None:
    own = job("copy", "3GB")
    assert why(own, run, changed(run)) is None
    found = why(own, run, changed(run, change))
    assert found is not None
    assert said in found.why
    assert found.lifted_by


def test_what_memory_takes_does_not_depend_on_the_file_system(run: Run) -> None:
    here = changed(run, lambda m: m["dir"]["file_system"].update(kind="tmpfs"))
    assert why(job("scan", "1GB"), run, here) is None


def test_a_file_with_holes_is_refused(run: Run) -> None:
    place = Place("file", 1 << 30, 1 << 20, 0, 1, 0)
    found = why(job("read", "1GB"), run, changed(run), place)
    assert found is not None
    assert "holes" in found.why


def test_a_file_larger_than_the_memory_of_the_cgroup_is_not_taken_for_cached(run: Run) -> None:
    (only,) = predict(job("read", "3GB"), run, Limits(1 << 28, None)).branches
    assert only.parts[0].name == "reading from the disk"


def test_a_range_that_is_too_wide_is_no_answer(quick: Run) -> None:
    found = from_run(job("read", "3GB", cache="cold"), quick)
    for branch in found.branches:
        assert (branch.answer is None) == (branch.range.high > 4 * branch.range.low)


def test_an_answer_is_printed_as_is_promised(run: Run) -> None:
    printed = json.loads(json.dumps(predict(job("syscalls", "1000000"), run, ROOM).as_json()))
    assert printed["job"] == "syscalls 1 million"
    assert set(printed["answer"]) == {"seconds", "low", "high", "level"}
    # Nothing is promised before jobs were run.
    assert printed["answer"]["level"] is None
    assert set(printed) == {"job", "answer", "branches", "from", "refused"}
    assert printed["branches"] == []
    assert printed["from"] == [{"probe": "kernel.syscall", "point": "getppid"}]
    assert printed["refused"] is None


def test_page_one_has_the_answers_of_three_jobs(run: Run) -> None:
    found = dict(usual(run))
    (cold,) = from_run(job("read", "30GB", cache="cold"), run).branches
    assert found["reading 30 GB from the disk"] == span(cold.range.low, cold.range.high)
    assert found["a million system calls"]
    assert not dict(usual(Run(run.header, (), run.footer)))


def test_a_long_write_on_a_disk_that_nobody_wrote_so_long_is_refused(run: Run) -> None:
    found = why(job("write", "40GB"), run, changed(run))
    assert found is not None
    assert "credits may end earlier" in found.why
    assert "storage.steady" in found.lifted_by


@pytest.mark.parametrize("option", ["compress=zstd:3", "compress"])
def test_a_file_system_that_compresses_is_refused(run: Run, option: str) -> None:
    def compresses(machine: dict[str, Any]) -> None:
        machine["dir"]["file_system"]["options"].append(option)

    found = why(job("read", "3GB"), run, changed(run, compresses))
    assert found is not None
    assert "compresses" in found.why


def test_a_disk_that_others_keep_busy_now_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pressure = tmp_path / "io"
    monkeypatch.setattr(refuse, "_PRESSURE", pressure)
    own = job("read", "3GB", cache="cold")
    assert why(own, run, changed(run)) is None
    pressure.write_text("some avg10=2.10 avg60=0.00 avg300=0.00 total=0\n")
    assert why(own, run, changed(run)) is None
    pressure.write_text("some avg10=63.00 avg60=0.00 avg300=0.00 total=0\n")
    found = why(own, run, changed(run))
    assert found is not None
    assert "wait for a disk 63 % of the time now" in found.why
    assert found.lifted_by == "latlab predict --measure read 3GB --cold"


def test_a_calibrated_answer_says_what_share_it_holds(run: Run) -> None:
    own = job("read", "3GB", cache="cold")
    known = Known(run, ROOM)
    (bare,) = work.predict(own, known).branches
    (wide,) = work.predict(own, known, Calibration(19, 2.0, 0.9, {}, {})).branches
    assert (bare.range.level, wide.range.level) == (None, 0.9)
    assert wide.range.half == pytest.approx(2 * max(bare.range.half, LEAST_HALF))
    # What the longest job of the calibration moved is measured, too.
    far = {"reading from the disk": 3e9}
    (near,) = work.predict(
        own, known, Calibration(19, 2.0, 0.9, far, {"reading from the disk": math.log(2)})
    ).branches
    assert near.range.middle == pytest.approx(2 * bare.range.middle)
    assert bare.extrapolated
    assert not near.extrapolated


def test_blocks_at_random_places_gain_by_depth(run: Run) -> None:
    found = predict(job("random", "20000", "4KiB", reading=True, cache="cold"), run, ROOM)
    (gain,) = found.gains
    assert gain.how.startswith("--depth")
    deep = predict(
        job("random", "20000", "4KiB", reading=True, cache="cold", depth=int(gain.how.split()[1])), run, ROOM
    )
    assert deep.branches[0].range.middle == pytest.approx(found.branches[0].range.middle / gain.factor)


def test_a_folder_of_small_files_costs_what_its_files_cost(run: Run) -> None:
    whole = job("read", "30MB", cache="cached")
    folder = dataclasses.replace(whole, files=3000, path="tree")
    seconds = [
        sum(part.seconds for part in work.cases_of(own, Known(run, ROOM))[0].parts) for own in (folder, whole)
    ]
    assert seconds[0] > seconds[1]
    assert "storage.files" in work.probes_of(folder)


@pytest.mark.parametrize(("kept", "trips"), [(False, 200), (True, 101)])
def test_each_request_waits_for_its_round_trips(*, kept: bool, trips: int) -> None:
    assert waited(100, 1, 0.02, math.inf, kept=kept) == pytest.approx(trips * 0.02)


def test_a_window_grows_until_the_path_is_full() -> None:
    # 14,480 bytes in the first round trip, then twice as many: 1 MB takes six more where nothing limits it.
    assert waited(1, 1_000_000, 0.1, math.inf, kept=False) == pytest.approx((1 + 1 + 6) * 0.1)
    # A path that is full at once adds its bytes alone.
    assert waited(1, 1_000_000, 0.1, 1e5, kept=False) == pytest.approx(0.2 + 10)


def test_memory_that_the_host_has_to_find_is_told_from_slow_first_touches(run: Run) -> None:
    own = run.select("vm.fault", operation="first-write", pages="huge")
    (record,) = (each for each in own if each.value is not None)
    each = figures.found_by_host(run)
    assert each is not None
    assert record.value is not None
    assert each * (2 << 20) > record.value / 1e9
    assert figures.found_by_host(Run(run.header, (), run.footer)) is None


def test_the_page_cache_takes_what_is_read_and_what_is_written() -> None:
    assert work.taken(job("read", "2GB"), cached=500_000_000) == 1_500_000_000
    assert work.taken(job("copy", "2GB")) == 4_000_000_000
    assert work.taken(job("copy", "2GB", cache="cached")) == 2_000_000_000
    assert work.taken(job("random", "100", "4KiB", reading=True)) == 0


def test_a_job_that_takes_memory_says_where_a_host_has_to_find_it(run: Run) -> None:
    def notes(own: Job, cached: int | None = None, *, returned: bool = True) -> str:
        room = dataclasses.replace(ROOM, returned=returned)
        return " ".join(predict(own, run, room, cached).notes)

    words = "free memory goes back to the host"
    for own in (job("read", "2GB", cache="cold"), job("copy", "2GB", cache="cached"), job("write", "1GB")):
        assert words in notes(own)
        assert words not in notes(own, returned=False)
    for own in (job("read", "2GB", cache="cached"), job("read", "2GB", direct=True), job("syscalls", "10")):
        assert words not in notes(own)
    assert words not in notes(job("read", "2GB"), cached=2_000_000_000)
