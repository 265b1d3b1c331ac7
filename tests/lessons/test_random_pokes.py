"""The pokes: statistics of the values kept, a 1-CDF that is one, published figures as printed, bytes."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import msgspec
import pytest

from latlab.lessons import drawing
from latlab.lessons.bench import Bench, Cannot
from latlab.lessons.experiments import random_pokes as lesson
from latlab.lessons.experiments.random_pokes import timed
from latlab.lessons.model import Result
from latlab.lessons.programs import pokes
from latlab.run.model import TailCauses, TailSample
from latlab.run.run import Run, load
from latlab.units import format_ns


def test_the_published_table_is_as_printed(result: Result) -> None:
    for row in result.table("original").rows:
        printed = lesson.PUBLISHED.get(int(row.name.removeprefix("bytes_")), ())
        quoted = [
            row.cells[name].published for name in ("memory_mean", "memory_std", "file_mean", "file_std")
        ]
        assert tuple(each.text for each in quoted if each) == printed
    created = [row.cells["write"].published for row in result.table("creation").rows]
    assert [each.text for each in created if each] == [
        "0.001522 sec",
        "0.007607 sec",
        "0.022258 sec",
        "13.825604 sec",
    ]
    elements = [row.cells["element"].published for row in result.table("sequential").rows]
    assert [each.text for each in elements if each] == ["0.00036", "6.3e-09", "6.9e-09"]


def test_a_byte_takes_an_eighth_of_an_integer(result: Result) -> None:
    measured = [row.cells for row in result.table("sequential").rows if row.cells["byte"].number]
    assert measured
    for cells in measured:
        assert cells["element"].number == pytest.approx(8 * (cells["byte"].number or 0))
        assert cells["rate"].number == pytest.approx(1 / (cells["byte"].number or 1))


def test_the_largest_of_each_are_kept_in_order(result: Result) -> None:
    names = {each.name for each in result.series}
    assert names == {f"{place}_largest_{size}" for place in ("memory", "file") for size in (0, 10**3, 10**6)}
    for each in result.series:
        assert len(each.values) == lesson.KEPT
        assert list(each.values) == sorted(each.values)


def test_mean_and_deviation_are_those_of_the_pokes() -> None:
    poked = timed.Poked((1e-6, 2e-6, 12e-6), 0)
    assert poked.mean == pytest.approx(5e-6)
    assert poked.std == pytest.approx(statistics.pstdev([1e-6, 2e-6, 12e-6]))
    assert poked.slow == 1


def test_a_ccdf_falls_and_says_the_share_that_takes_longer() -> None:
    values = tuple(float(number) for number in range(1, 1001))
    points = lesson.ccdf(values)
    assert points == sorted(points)
    assert [share for _, share in points] == sorted((share for _, share in points), reverse=True)
    for x, share in points:
        assert share == pytest.approx(sum(value > x for value in values) / 1000)


def test_on_linear_axes_the_points_of_a_ccdf_lie_evenly() -> None:
    points = lesson.ccdf(tuple(number / 1000 for number in range(1, 1001)), 10, log=False)
    assert [share for _, share in points] == pytest.approx(
        [0.999, 0.899, 0.799, 0.699, 0.599, 0.499, 0.399, 0.299, 0.199, 0.099]
    )


def test_what_a_few_slow_pokes_make_of_a_mean_is_not_taken_for_pythons_steps() -> None:
    quick = timed.Poked((40e-9,) * 99, 0)
    slowed = timed.Poked((*(50e-9,) * 198, 20e-3), 0)
    found = {("memory", 0): quick, ("memory", 10**3): slowed, ("memory", 10**6): slowed}
    (reason,) = lesson.say(lesson.Found(found)).reasons
    assert "1 KB, 50.0 ns, that is 80 %" in reason


def test_a_histogram_counts_every_poke_in_its_range_once() -> None:
    poked = timed.Poked(tuple(sorted([1e-7] * 5 + [9.9e-7] * 3 + [5e-6] * 2 + [1e-5])), 0)
    pictures = {each.name: each for each in lesson.say(lesson.Found({("memory", 10**6): poked})).pictures}
    for name, pokes_in_it, slower in (("below", 8, "3 of 11 pokes took 1.00 µs"), ("from", 2, "1 of 11")):
        picture = pictures[f"histogram_{name}"]
        assert sum(mark.value for mark in picture.marks if mark.series == "measured") == pokes_in_it
        assert slower in picture.caption


def test_a_bar_of_one_poke_is_seen_beside_one_of_thousands_and_one_of_none_is_not() -> None:
    poked = timed.Poked((*(7e-8,) * 5000, 9e-7), 0)
    picture = next(
        each for each in lesson.say(lesson.Found({("memory", 10**6): poked})).pictures if "below" in each.name
    )
    bars = {mark.value for mark in picture.marks if mark.series == "measured"}
    assert bars == {0, 1, 5000}
    axis = drawing.chart(picture).to_dict()["layer"][0]["encoding"]["x"]
    assert axis["scale"]["type"] == "log"
    assert axis["scale"]["domain"][0] < 1
    assert axis["axis"]["values"] == [1, 10, 100, 1000, 10_000]


def test_every_figure_of_the_notebook_is_drawn(result: Result) -> None:
    names = {picture.name for picture in result.pictures}
    assert names == {"all_sizes", "histogram_below", "histogram_from", "ccdf_linear", "ccdf_loglog"}


def test_memory_and_file_of_every_size_are_a_curve_each() -> None:
    poked = timed.Poked((1e-7, 2e-7), 0)
    sizes = ("Zero", "1KB", "1MB", "1GB")
    found = {(place, size): poked for place in ("memory", "file") for size in timed.SIZES["default"]}
    curves = next(
        each for each in lesson.say(lesson.Found(found)).pictures if each.name == "all_sizes"
    ).series
    assert curves == tuple(f"{size} {place}" for place in ("memory", "file") for size in sizes)


def test_a_poke_in_a_file_writes_back_what_it_read(tmp_path: Path) -> None:
    path, content = tmp_path / "file", bytes(range(256)) * 4
    path.write_bytes(content)
    assert len(pokes.poke_file(path, 1024, 500)) == 500
    assert path.read_bytes() == content


def test_a_poke_beyond_the_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with pytest.raises(AssertionError):
        pokes.poke_file(path, 10**6, 100)


def test_a_file_is_created_with_its_size(tmp_path: Path) -> None:
    pokes.create_file(tmp_path / "file", 3000, 1000)
    assert (tmp_path / "file").stat().st_size == 3000


def test_a_size_that_was_not_asked_for_says_so(result: Result) -> None:
    ten = result["original.bytes_10000000000.file_mean"]
    assert (ten.value, "only with --original" in ten.why) == (None, True)
    assert "--small" in result["original.bytes_1000000000.file_mean"].why
    assert "only with --original" in result["summary.file_10gb.here"].why


def test_each_row_of_the_summary_has_figures_of_one_kind_and_says_which(root: Path) -> None:
    found = {("memory", 10**3): timed.Poked((6e-8,), 0), ("memory", 10**10): timed.Poked((5e-7,), 0)}
    run = load(root / "tests/data/run-small.latlab.jsonl")
    summary = next(
        each for each in lesson.say(lesson.Found(found, native=run)).tables if each.name == "summary"
    )
    rows = {row.name: (row.title, row.cells["here"].shown) for row in summary.rows}
    title, shown = rows["memory_range"]
    assert ("timed alone in Python (medians)" in title, shown) == (True, "60.0 ns – 500 ns")
    title, shown = rows["memory_range_native"]
    batches = [cell.number or 0.0 for size, cell in lesson.native_batches(run) if size]
    ends = " – ".join(format_ns(end(batches) * 1e9) for end in (min, max))
    assert ("native, mean over a batch" in title, shown) == (True, ends)
    assert rows["memory_10gb"][1] == "500 ns"
    assert "for 10 KB" in summary.note


def test_ten_gigabytes_that_would_take_too_long_are_not_written(tmp_path: Path) -> None:
    with Bench("original", directory=tmp_path) as bench:
        bench.room = lambda needed, place=None: None  # type: ignore[method-assign]
        with pytest.raises(Cannot, match="writing it would take"):
            timed.poked_file(bench, 10**10, {10**9: (0.0, timed.LONGEST_S)})
    assert not list(tmp_path.iterdir())


def test_a_file_that_could_not_be_written_whole_is_taken_away_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, size: int, block: int) -> tuple[float, float]:
        path.write_bytes(b"the beginning")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pokes, "create_file", full)
    with Bench("small", directory=tmp_path) as bench:
        with pytest.raises(OSError, match="No space"):
            timed.poked_file(bench, 1000, {})
        assert [path.name for path in bench.folder.iterdir()] == ["lock"]


@pytest.mark.parametrize(("slow", "said"), [(67, "67 %"), (11, "11 %"), (6, "1 in 17"), (0, "none of 100")])
def test_how_often_is_a_share_where_more_than_one_in_ten_is_slow(slow: int, said: str) -> None:
    poked = timed.Poked((*(1e-6,) * (100 - slow), *(20e-6,) * slow), 0)
    tables = {each.name: each for each in lesson.say(lesson.Found({("file", 10**9): poked})).tables}
    assert tables["ten_microseconds"].cell("file_1000000000", "one_in").value == said


def test_more_than_one_slow_poke_in_a_hundred_is_explained_or_said_to_be_unexplained(root: Path) -> None:
    found = {
        ("file", 10**6): timed.Poked((*(3e-6,) * 99, 20e-6), 0),
        ("file", 10**9): timed.Poked((*(3e-6,) * 98, 20e-6, 20e-6), 1),
    }
    (reason,) = lesson.say(lesson.Found(found)).reasons
    assert "2.0 % of the pokes in a file of 1GB took 10 µs or more" in reason
    assert "the reason of at most 50 % of them" in reason
    assert "not measured here: latlab measure --only storage.poke" in reason
    run = load(root / "tests/data/run-small.latlab.jsonl")
    (brought_in,) = run.select("storage.poke", path="buffered-warm", file_bytes=10**9)
    slow = tuple(TailSample(at_ns=0.0, value=2e4, cause="context-switch") for _ in range(12))
    causes = TailCauses(level="perf records", threshold_ns=1e4, causes=())
    native = msgspec.structs.replace(brought_in, tail_threshold=1e4, tail=slow, tail_causes=causes)
    said = lesson.say(lesson.Found(found, native=Run(run.header, (native,), None))).reasons
    (reason,) = [each for each in said if "of the pokes in a file of 1GB" in each]
    assert "has 0.30 % so slow: context switch (12), unexplained (0)" in reason
    assert "large blocks" in reason


def test_where_nothing_was_poked_the_lesson_says_so() -> None:
    said = lesson.say(lesson.Found({}, why=lambda what: f"no {what}"))
    assert said.answer == ("Nothing was measured here, so there is no answer from this machine.",)
    assert not said.pictures
    original = next(each for each in said.tables if each.name == "original")
    assert original.cell("bytes_1000", "file_mean").why == "no pokes in a file of 1KB"


def test_what_moves_and_what_calculates_are_shares_of_the_pokes_shown(result: Result) -> None:
    for arm in ("python", "native"):
        near, far = (result[f"bottleneck.{arm}_{end}"].number for end in ("small", "large"))
        moving = result[f"bottleneck.{arm}_moving"]
        if near is None or far is None:
            assert moving.why
        else:
            assert moving.number == pytest.approx(max(1 - near / far, 0))


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc and /sys")
def test_the_system_is_described_as_the_notebook_has_it() -> None:
    rows = {row.name: row.cells["here"].value for row in lesson.system().rows}
    assert {"processor", "cpus", "memory", "system", "python", "distribution"} <= rows.keys()
    assert all(rows.values())
